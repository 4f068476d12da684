"""The picture of a topology."""
