"""Figures of releases, advice, attacks, budgets, leakage and shapes."""
