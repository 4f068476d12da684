"""Which local store goes with which kind of store."""

from collections.abc import Callable

from streamskit.state.local import LocalKeyValueStore, LocalStore
from streamskit.state.storage import Storage
from streamskit.state.stores import Store
from streamskit.state.timed import LocalSessionStore, LocalWindowStore
from streamskit.state.versioned import LocalVersionedStore

KINDS = {"window": LocalWindowStore, "session": LocalSessionStore, "versioned": LocalVersionedStore}


def local_store(store: Store, make: Callable[[int], Storage] | None = None) -> LocalStore:
    """Return a local store of the right kind.

    Args:
        store: what it is to hold.
        make: makes the storage of a partition; in memory when not given.
    """
    return KINDS.get(store.kind, LocalKeyValueStore)(store, make)
