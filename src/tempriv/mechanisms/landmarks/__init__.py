"""Mechanisms that share a budget over landmarks and any one other reading."""
