"""streamskit: the Kafka Streams DSL in Python, on Spark Structured Streaming, over a real Kafka broker."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamskit.branching import BranchedKStream as BranchedKStream
    from streamskit.builder import StreamsBuilder as StreamsBuilder
    from streamskit.cluster import Cluster as Cluster
    from streamskit.cogrouped import CogroupedKStream as CogroupedKStream
    from streamskit.environment.doctor import doctor as doctor
    from streamskit.errors import BrokerError as BrokerError
    from streamskit.errors import InvalidStateStoreError as InvalidStateStoreError
    from streamskit.errors import InvalidStateStorePartitionError as InvalidStateStorePartitionError
    from streamskit.errors import SetupError as SetupError
    from streamskit.errors import StateStoreMigratedError as StateStoreMigratedError
    from streamskit.errors import StateStoreNotAvailableError as StateStoreNotAvailableError
    from streamskit.errors import StreamsError as StreamsError
    from streamskit.errors import StreamsKitError as StreamsKitError
    from streamskit.errors import StreamsNotStartedError as StreamsNotStartedError
    from streamskit.errors import StreamsRebalancingError as StreamsRebalancingError
    from streamskit.errors import TopologyError as TopologyError
    from streamskit.errors import UnknownStateStoreError as UnknownStateStoreError
    from streamskit.grouped import KGroupedStream as KGroupedStream
    from streamskit.grouped import SessionWindowedKStream as SessionWindowedKStream
    from streamskit.grouped import TimeWindowedKStream as TimeWindowedKStream
    from streamskit.grouped_table import KGroupedTable as KGroupedTable
    from streamskit.handlers import DeadLetter as DeadLetter
    from streamskit.handlers import ErrorHandlerContext as ErrorHandlerContext
    from streamskit.handlers import LogAndContinue as LogAndContinue
    from streamskit.handlers import LogAndFail as LogAndFail
    from streamskit.handlers import Response as Response
    from streamskit.interactive.client import QueryClient as QueryClient
    from streamskit.interactive.instances import Instances as Instances
    from streamskit.interactive.metadata import HostInfo as HostInfo
    from streamskit.interactive.metadata import KeyQueryMetadata as KeyQueryMetadata
    from streamskit.interactive.metadata import StreamsMetadata as StreamsMetadata
    from streamskit.interactive.stores.versioned import VersionedRecord as VersionedRecord
    from streamskit.kstream import KStream as KStream
    from streamskit.ktable import GlobalKTable as GlobalKTable
    from streamskit.ktable import KTable as KTable
    from streamskit.labs import check as check
    from streamskit.labs import hint as hint
    from streamskit.labs import progress as progress
    from streamskit.labs import reset as reset
    from streamskit.labs import try_out as try_out
    from streamskit.options import BufferConfig as BufferConfig
    from streamskit.options import EmitStrategy as EmitStrategy
    from streamskit.options import Materialized as Materialized
    from streamskit.options import Suppressed as Suppressed
    from streamskit.processor import Cancellable as Cancellable
    from streamskit.processor import FixedKeyProcessor as FixedKeyProcessor
    from streamskit.processor import FixedKeyRecord as FixedKeyRecord
    from streamskit.processor import Processor as Processor
    from streamskit.processor import ProcessorContext as ProcessorContext
    from streamskit.processor import PunctuationType as PunctuationType
    from streamskit.processor import Record as Record
    from streamskit.processor import RecordMetadata as RecordMetadata
    from streamskit.runtime import KafkaStreams as KafkaStreams
    from streamskit.runtime import MaxFailures as MaxFailures
    from streamskit.runtime import State as State
    from streamskit.runtime import UncaughtExceptionResponse as UncaughtExceptionResponse
    from streamskit.serdes import RegistryError as RegistryError
    from streamskit.serdes import SchemaRegistry as SchemaRegistry
    from streamskit.serdes import Serde as Serde
    from streamskit.serdes import Serdes as Serdes
    from streamskit.stores import KeyValue as KeyValue
    from streamskit.stores import Stores as Stores
    from streamskit.stores import ValueAndTimestamp as ValueAndTimestamp
    from streamskit.testing import TopologyTestDriver as TopologyTestDriver
    from streamskit.timestamps import TimestampExtractor as TimestampExtractor
    from streamskit.topology import Topology as Topology
    from streamskit.windows import JoinWindows as JoinWindows
    from streamskit.windows import SessionWindows as SessionWindows
    from streamskit.windows import SlidingWindows as SlidingWindows
    from streamskit.windows import TimeWindows as TimeWindows
    from streamskit.windows import Windowed as Windowed

__version__ = "0.1.0"

WHERE = {
    "branching": ("BranchedKStream",),
    "builder": ("StreamsBuilder",),
    "cluster": ("Cluster",),
    "cogrouped": ("CogroupedKStream",),
    "environment.doctor": ("doctor",),
    "errors": (
        "BrokerError",
        "InvalidStateStoreError",
        "InvalidStateStorePartitionError",
        "SetupError",
        "StateStoreMigratedError",
        "StateStoreNotAvailableError",
        "StreamsError",
        "StreamsKitError",
        "StreamsNotStartedError",
        "StreamsRebalancingError",
        "TopologyError",
        "UnknownStateStoreError",
    ),
    "grouped": (
        "KGroupedStream",
        "SessionWindowedKStream",
        "TimeWindowedKStream",
    ),
    "grouped_table": ("KGroupedTable",),
    "handlers": ("DeadLetter", "ErrorHandlerContext", "LogAndContinue", "LogAndFail", "Response"),
    "interactive.client": ("QueryClient",),
    "interactive.instances": ("Instances",),
    "interactive.metadata": (
        "HostInfo",
        "KeyQueryMetadata",
        "StreamsMetadata",
    ),
    "interactive.stores.versioned": ("VersionedRecord",),
    "kstream": ("KStream",),
    "ktable": (
        "GlobalKTable",
        "KTable",
    ),
    "labs": ("check", "hint", "progress", "reset", "try_out"),
    "options": (
        "BufferConfig",
        "EmitStrategy",
        "Materialized",
        "Suppressed",
    ),
    "processor": (
        "Cancellable",
        "FixedKeyProcessor",
        "FixedKeyRecord",
        "Processor",
        "ProcessorContext",
        "PunctuationType",
        "Record",
        "RecordMetadata",
    ),
    "runtime": (
        "KafkaStreams",
        "MaxFailures",
        "State",
        "UncaughtExceptionResponse",
    ),
    "serdes": (
        "RegistryError",
        "SchemaRegistry",
        "Serde",
        "Serdes",
    ),
    "stores": ("KeyValue", "Stores", "ValueAndTimestamp"),
    "testing": ("TopologyTestDriver",),
    "timestamps": ("TimestampExtractor",),
    "topology": ("Topology",),
    "windows": (
        "JoinWindows",
        "SessionWindows",
        "SlidingWindows",
        "TimeWindows",
        "Windowed",
    ),
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
