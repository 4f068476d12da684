"""Which local store goes with which kind of store."""

from streamskit.interactive.stores import KeyValueStore, LocalStore, VersionedStore
from streamskit.interactive.timed_stores import SessionStore, WindowStore
from streamskit.topology import Store

KINDS = {"window": WindowStore, "session": SessionStore, "versioned": VersionedStore}


def local_store(store: Store) -> LocalStore:
    """Return an empty local store of the right kind."""
    return KINDS.get(store.kind, KeyValueStore)(store)
