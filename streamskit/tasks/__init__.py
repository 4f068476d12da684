"""Kafka Streams' stateful operators as plain Python algorithms: bytes in, bytes out, one record after the other."""

from streamskit.tasks.folds import CountFold, Fold
from streamskit.tasks.foreign_key import ForeignKeyAnswer, ForeignKeyRegister, ForeignKeyResolve
from streamskit.tasks.lookup import TableLookup
from streamskit.tasks.pages import PageStore
from streamskit.tasks.partition_time import PartitionTime
from streamskit.tasks.processing import Entrance, Member, RunProcessors, Way
from streamskit.tasks.records import NOTE, OUT_OF_ORDER, STORE_ONLY, Output, Record, Source
from streamskit.tasks.session_store import SessionStore
from streamskit.tasks.sessions import SessionFold
from streamskit.tasks.stage import Operator, Stage, Task
from streamskit.tasks.stores import KeyValueStore
from streamskit.tasks.stream_join import StreamJoin
from streamskit.tasks.suppress import Suppress
from streamskit.tasks.table_join import TableJoin
from streamskit.tasks.tables import LatestValue, TableFold
from streamskit.tasks.versioned_store import VersionedStore
from streamskit.tasks.window_store import WindowStore
from streamskit.tasks.windows import WindowFold

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
