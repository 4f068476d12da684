"""Which local store goes with which kind of store."""

from collections.abc import Callable

from streamskit.state.local import KeyValueStore, LocalStore
from streamskit.state.storage import Storage
from streamskit.state.stores import Store
from streamskit.state.timed import SessionStore, WindowStore
from streamskit.state.versioned import VersionedStore

KINDS = {"window": WindowStore, "session": SessionStore, "versioned": VersionedStore}


def local_store(store: Store, make: Callable[[int], Storage] | None = None) -> LocalStore:
    """Return a local store of the right kind.

    Args:
        store: what it is to hold.
        make: makes the storage of a partition; in memory when not given.
    """
    return KINDS.get(store.kind, KeyValueStore)(store, make)
