"""Interactive queries: the stores of a running application, read from Python."""

from streamskit.interactive.kinds import local_store
from streamskit.interactive.replica import Replica
from streamskit.interactive.stores import KeyValueStore, LocalStore, VersionedStore
from streamskit.interactive.timed_stores import SessionStore, TimedStore, WindowStore
from streamskit.stores import KeyValue

__all__ = [
    "KeyValue",
    "KeyValueStore",
    "LocalStore",
    "Replica",
    "SessionStore",
    "TimedStore",
    "VersionedStore",
    "WindowStore",
    "local_store",
]
