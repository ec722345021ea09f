"""Choosing and marking a person's significant moments; dummy landmarks."""
