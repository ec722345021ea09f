"""Composition of privacy losses: sums, Renyi, loss distributions, shuffling, filters, plans."""
