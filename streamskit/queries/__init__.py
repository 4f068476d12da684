"""Interactive queries: the stores of a running application, read from Python."""

from streamskit.queries.group.catalogue import Catalogue, QueryableStore
from streamskit.queries.instance import Instance
from streamskit.queries.replica import Replica
from streamskit.state.local import LocalKeyValueStore, LocalStore
from streamskit.state.read_only import VersionedRecord
from streamskit.state.stores import KeyValue
from streamskit.state.timed import (
    LocalSessionStore,
    LocalVersionedStore,
    LocalWindowStore,
    TimedStore,
    local_store,
)

__all__ = [
    "Catalogue",
    "Instance",
    "KeyValue",
    "LocalKeyValueStore",
    "LocalSessionStore",
    "LocalStore",
    "LocalVersionedStore",
    "LocalWindowStore",
    "QueryableStore",
    "Replica",
    "TimedStore",
    "VersionedRecord",
    "local_store",
]
