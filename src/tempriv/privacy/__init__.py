"""What is guaranteed: units, guarantees, sensitivity, their JSON form."""
