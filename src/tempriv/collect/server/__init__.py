"""The server of a collection: service, database, routes, results."""
