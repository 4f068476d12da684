"""Clients that talk to a Kafka broker, wherever it runs."""
