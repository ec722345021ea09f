"""Made-up tables to try things on: readings of homes, visits of a clinic. No real person's data."""

from pathlib import Path

METERS = Path(__file__).with_name("meters.csv")
"""Hourly readings of six homes over four weeks, as a file of the package."""
