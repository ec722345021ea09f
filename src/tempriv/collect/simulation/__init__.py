"""A fleet of simulated devices over a network with faults."""
