"""A topology, running: `KafkaStreams` and its states."""

from streamskit.runtime.states import State
from streamskit.runtime.streams import KafkaStreams

__all__ = ["KafkaStreams", "State"]
