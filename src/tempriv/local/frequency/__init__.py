"""Frequency oracles: shares of values from randomized reports."""
