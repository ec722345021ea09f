"""Tables in and rows out: reading, grids, clocks, Arrow, CSV, counts of events."""
