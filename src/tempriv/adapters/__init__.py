"""Other engines that carry the same mechanisms; each loads its engine only when it is asked for."""
