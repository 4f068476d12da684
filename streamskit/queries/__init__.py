"""Interactive queries: the stores of a running application, read from Python."""

from streamskit.queries.group.catalogue import Catalogue, CatalogueEntry
from streamskit.queries.instance import Instance
from streamskit.queries.replica import Replica
from streamskit.state.kinds import local_store
from streamskit.state.local import KeyValueStore, LocalStore
from streamskit.state.stores import KeyValue
from streamskit.state.timed import SessionStore, TimedStore, WindowStore
from streamskit.state.versioned import VersionedRecord, VersionedStore

__all__ = [
    "Catalogue",
    "CatalogueEntry",
    "Instance",
    "KeyValue",
    "KeyValueStore",
    "LocalStore",
    "Replica",
    "SessionStore",
    "TimedStore",
    "VersionedRecord",
    "VersionedStore",
    "WindowStore",
    "local_store",
]
