"""Attacks that show what a release gives away."""
