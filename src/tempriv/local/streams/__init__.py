"""Shares of values over time, reported by devices."""
