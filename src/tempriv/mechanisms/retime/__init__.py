"""Mechanisms that perturb the pace or the times of readings."""
