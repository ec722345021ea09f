"""A made-up table to try things on: hourly readings of six homes over four weeks."""

from pathlib import Path

METERS = Path(__file__).with_name("meters.csv")
