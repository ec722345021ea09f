"""Frequent shapes of many people's series (PrivShape)."""
