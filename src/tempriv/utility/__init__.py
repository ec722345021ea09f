"""What a release is still good for: costs, tasks and advice."""
