"""Statistics of people: one bounded vector a person in, one release out (central model)."""
