"""streamskit: the Kafka Streams DSL in Python, on Spark Structured Streaming, over a real Kafka broker."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamskit.builder import StreamsBuilder as StreamsBuilder
    from streamskit.environment.doctor import doctor as doctor
    from streamskit.errors import BrokerError as BrokerError
    from streamskit.errors import InvalidStateStoreError as InvalidStateStoreError
    from streamskit.errors import SetupError as SetupError
    from streamskit.errors import StreamsError as StreamsError
    from streamskit.errors import StreamsKitError as StreamsKitError
    from streamskit.errors import TopologyError as TopologyError
    from streamskit.kstream import KGroupedStream as KGroupedStream
    from streamskit.kstream import KStream as KStream
    from streamskit.kstream import Materialized as Materialized
    from streamskit.kstream import TimeWindowedKStream as TimeWindowedKStream
    from streamskit.ktable import KTable as KTable
    from streamskit.runtime import KafkaStreams as KafkaStreams
    from streamskit.runtime import State as State
    from streamskit.serdes import Serde as Serde
    from streamskit.serdes import Serdes as Serdes
    from streamskit.testing import TopologyTestDriver as TopologyTestDriver
    from streamskit.topology import Topology as Topology
    from streamskit.windows import TimeWindows as TimeWindows
    from streamskit.windows import Windowed as Windowed

__version__ = "0.1.0"

WHERE = {
    "builder": ("StreamsBuilder",),
    "environment.doctor": ("doctor",),
    "errors": (
        "BrokerError",
        "InvalidStateStoreError",
        "SetupError",
        "StreamsError",
        "StreamsKitError",
        "TopologyError",
    ),
    "kstream": ("KGroupedStream", "KStream", "Materialized", "TimeWindowedKStream"),
    "ktable": ("KTable",),
    "runtime": ("KafkaStreams", "State"),
    "serdes": ("Serde", "Serdes"),
    "testing": ("TopologyTestDriver",),
    "topology": ("Topology",),
    "windows": ("TimeWindows", "Windowed"),
}
"""Which module holds which public name."""

_MODULES = {name: module for module, names in WHERE.items() for name in names}

__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    # Names are fetched when they are asked for, so that the doctor runs even where Spark or pandas is broken.
    if name not in _MODULES:
        raise AttributeError(f"module 'streamskit' has no attribute '{name}'")
    return getattr(importlib.import_module(f"streamskit.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
