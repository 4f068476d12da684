"""Kafka Music as a service: charts of the songs that are played most. `python -m examples.music` runs it."""
