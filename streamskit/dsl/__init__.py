"""Kafka Streams' DSL: `StreamsBuilder`, `KStream`, `KTable`, and what lies between."""
