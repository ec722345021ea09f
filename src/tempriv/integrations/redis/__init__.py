"""Redis streams as a source and a sink."""
