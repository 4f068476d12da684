"""Interactive queries: the stores of a running application, read from Python."""

from streamskit.interactive.group.catalogue import Catalogue, CatalogueEntry
from streamskit.interactive.instance import Instance
from streamskit.interactive.replica import Replica
from streamskit.interactive.stores.kinds import local_store
from streamskit.interactive.stores.local import KeyValueStore, LocalStore
from streamskit.interactive.stores.timed import SessionStore, TimedStore, WindowStore
from streamskit.interactive.stores.versioned import VersionedRecord, VersionedStore
from streamskit.stores import KeyValue

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
