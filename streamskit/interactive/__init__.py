"""Interactive queries: the stores of a running application, read from Python."""

from streamskit.interactive.replica import Replica
from streamskit.interactive.stores import KeyValue, KeyValueStore, LocalStore, WindowStore, local_store

__all__ = ["KeyValue", "KeyValueStore", "LocalStore", "Replica", "WindowStore", "local_store"]
