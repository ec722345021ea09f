"""The one source of randomness: keys, keystreams and exact samplers."""
