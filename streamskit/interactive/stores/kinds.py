"""Which local store goes with which kind of store."""

from collections.abc import Callable

from streamskit.interactive.stores.local import KeyValueStore, LocalStore
from streamskit.interactive.stores.storage import Storage
from streamskit.interactive.stores.timed import SessionStore, WindowStore
from streamskit.interactive.stores.versioned import VersionedStore
from streamskit.topology import Store

KINDS = {"window": WindowStore, "session": SessionStore, "versioned": VersionedStore}


def local_store(store: Store, make: Callable[[int], Storage] | None = None) -> LocalStore:
    """Return a local store of the right kind.

    Args:
        store: what it is to hold.
        make: makes the storage of a partition; in memory when not given.
    """
    return KINDS.get(store.kind, KeyValueStore)(store, make)
