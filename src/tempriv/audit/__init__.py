"""Checks of guarantees: exact enumeration, statistical audits, attacks."""
