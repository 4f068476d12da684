"""The course's data, made from a seed: the same call gives the same records on every machine."""
