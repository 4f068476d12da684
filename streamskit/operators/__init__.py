"""Kafka Streams' stateful operators as plain Python algorithms: bytes in, bytes out, one record after the other."""

from streamskit.operators.aggregate import CountFold, Fold
from streamskit.operators.foreign_key_join import ForeignKeyAnswer, ForeignKeyRegister, ForeignKeyResolve
from streamskit.operators.pages import PageStore
from streamskit.operators.partition_time import PartitionTime
from streamskit.operators.processors import Entrance, Member, RunProcessors, Way
from streamskit.operators.records import NOTE, OUT_OF_ORDER, STORE_ONLY, Output, Record, Source
from streamskit.operators.session_aggregate import SessionFold
from streamskit.operators.session_store import SessionStore
from streamskit.operators.stores import KeyValueStore
from streamskit.operators.stream_join import StreamJoin
from streamskit.operators.stream_table_join import TableLookup
from streamskit.operators.stream_task import Operator, Stage, Task
from streamskit.operators.suppress import Suppress
from streamskit.operators.table_join import TableJoin
from streamskit.operators.table_source import LatestValue, TableFold
from streamskit.operators.versioned_store import VersionedStore
from streamskit.operators.window_aggregate import WindowFold
from streamskit.operators.window_store import WindowStore

__all__ = [
    "NOTE",
    "OUT_OF_ORDER",
    "STORE_ONLY",
    "CountFold",
    "Entrance",
    "Fold",
    "ForeignKeyAnswer",
    "ForeignKeyRegister",
    "ForeignKeyResolve",
    "KeyValueStore",
    "LatestValue",
    "Member",
    "Operator",
    "Output",
    "PageStore",
    "PartitionTime",
    "Record",
    "RunProcessors",
    "SessionFold",
    "SessionStore",
    "Source",
    "Stage",
    "StreamJoin",
    "Suppress",
    "TableFold",
    "TableJoin",
    "TableLookup",
    "Task",
    "VersionedStore",
    "Way",
    "WindowFold",
    "WindowStore",
]
