"""Checks that a promise holds: exact, by enumeration."""
