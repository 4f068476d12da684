"""streamskit: the Kafka Streams DSL in Python, on Spark Structured Streaming, over a real Kafka broker."""

from streamskit.builder import StreamsBuilder
from streamskit.errors import (
    BrokerError,
    InvalidStateStoreError,
    SetupError,
    StreamsError,
    StreamsKitError,
    TopologyError,
)
from streamskit.kstream import KGroupedStream, KStream, Materialized, TimeWindowedKStream
from streamskit.ktable import KTable
from streamskit.runtime import KafkaStreams, State
from streamskit.serdes import Serde, Serdes
from streamskit.testing import TopologyTestDriver
from streamskit.topology import Topology
from streamskit.windows import TimeWindows, Windowed

__version__ = "0.1.0"

__all__ = [
    "BrokerError",
    "InvalidStateStoreError",
    "KGroupedStream",
    "KStream",
    "KTable",
    "KafkaStreams",
    "Materialized",
    "Serde",
    "Serdes",
    "SetupError",
    "State",
    "StreamsBuilder",
    "StreamsError",
    "StreamsKitError",
    "TimeWindowedKStream",
    "TimeWindows",
    "Topology",
    "TopologyError",
    "TopologyTestDriver",
    "Windowed",
]
