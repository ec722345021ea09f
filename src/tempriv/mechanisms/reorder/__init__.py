"""Mechanisms that move rows in time and leave values exact."""
