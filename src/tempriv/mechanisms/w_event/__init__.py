"""Budgets over sliding windows (w-event privacy)."""
