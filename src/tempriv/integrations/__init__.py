"""Other engines: Spark and Redis."""
