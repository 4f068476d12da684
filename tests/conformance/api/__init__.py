"""Kafka Streams' public API beside that of streamskit: what was recorded, what a person says, and the page of both."""
