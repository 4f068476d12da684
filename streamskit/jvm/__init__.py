"""Scala classes that Spark's Java runs, and the Columns made of them."""
