"""Noise on single values: numbers, categories, locations."""
