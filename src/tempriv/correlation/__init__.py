"""Loss under temporal correlation: Markov chains, exact loss, bounds, budgets for a target."""
