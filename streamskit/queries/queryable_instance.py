"""What the REST layer asks of the instance it speaks for."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from streamskit.queries.group.catalogue import QueryableStore
from streamskit.queries.measures import Measure
from streamskit.queries.metadata import HostInfo, Hosts, Placement
from streamskit.state.local import LocalStore

ANSWERING = ("active", "global")
"""The roles in which an instance answers queries."""


@dataclass(frozen=True)
class PartitionState:
    """A partition of a store on this instance.

    `role` is "active", "standby" or "global"; `position` is the offset that was read up to and `end` the offset where
    the changelog ends, as far as is known; `ready` says that it has caught up with the end that the changelog had when
    reading began.
    """

    partition: int
    role: str
    position: int
    end: int
    ready: bool

    @property
    def lag(self) -> int:
        """How many offsets of the changelog are not in the store yet."""
        return max(0, self.end - self.position)


@dataclass(frozen=True)
class InstanceHealth:
    """The health of an instance, or of the application that it is part of.

    `state` is the application's, empty where none runs in this process; `failure` says why there are no answers, and
    `waits_for` why there are none yet; both are empty where all is well. `parts` says of each part whether it lives.
    """

    state: str = ""
    failure: str = ""
    waits_for: str = ""
    parts: Mapping[str, bool] = field(default_factory=dict)


class StoreUpdate(NamedTuple):
    """One update of a store: `value` is None where the row was deleted; `offset` is its place in the changelog.

    An update that the store's serdes cannot read has neither key nor value, and `error` says why. `previous` is the
    offset of the update before it in the partition, if that is known: a changelog has offsets without an update, such
    as the ends of transactions.
    """

    key: Any
    value: Any
    timestamp: int
    partition: int
    offset: int
    error: str = ""
    previous: int | None = None


class QueryableInstance(Protocol):
    """An instance: what it has itself, and where the rest is."""

    application_id: str
    here: HostInfo

    @property
    def stores(self) -> Mapping[str, QueryableStore]:
        """All stores of the application by name."""

    def placement(self) -> Placement:
        """Return who hosts what."""

    def hosts(self, store: str, partition: int) -> Hosts:
        """Return who has a partition of a store."""

    def partition_of(self, store: str, key: bytes) -> int | None:
        """Return the partition where the row of a key is; None where that does not follow from the key."""

    def states(self, store: str) -> list[PartitionState]:
        """Return the partitions of a store that this instance has, with how far they are."""

    def local(self, store: str, partitions: Collection[int], *, for_all: bool = True) -> LocalStore:
        """Return some partitions of a store, as they are here; for this instance alone, or for all of them.

        Raises:
            InvalidStateStoreError: one of them is not here, or not ready; the kind of error says which.
        """

    def measures(self) -> Iterable[Measure]:
        """Return what is measured here now: of its stores, and of the application that it is a part of."""

    def health(self) -> InstanceHealth:
        """Return the health of the instance."""

    def subscribe(self, store: str, listener: Callable[[StoreUpdate], None]) -> Callable[[], None]:
        """Call `listener`, in a thread of the instance, with each update of the partitions active here.

        Returns a function that ends it. The listener has to be quick and must not raise.
        """
