"""Interactive queries: the stores of a running application, read from Python."""

from streamskit.queries.group.catalogue import Catalogue, CatalogueEntry
from streamskit.queries.instance import Instance
from streamskit.queries.replica import Replica
from streamskit.state.kinds import local_store
from streamskit.state.local import LocalKeyValueStore, LocalStore
from streamskit.state.stores import KeyValue
from streamskit.state.timed import LocalSessionStore, LocalWindowStore, TimedStore
from streamskit.state.versioned import LocalVersionedStore, VersionedRecord

__all__ = [
    "Catalogue",
    "CatalogueEntry",
    "Instance",
    "KeyValue",
    "LocalKeyValueStore",
    "LocalSessionStore",
    "LocalStore",
    "LocalVersionedStore",
    "LocalWindowStore",
    "Replica",
    "TimedStore",
    "VersionedRecord",
    "local_store",
]
