"""Checks that a promise holds: exact by enumeration, statistical by many runs."""
