"""Speed, as ratios to a yardstick measured in the same run on one core."""
