"""The device's side of a collection: client, answers, limits, home."""
