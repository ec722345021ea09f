"""Durable charges against limits."""
