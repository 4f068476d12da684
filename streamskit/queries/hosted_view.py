"""The part of a store that an instance hosts, as a program sees it."""

import copy
from collections.abc import Collection, Sequence
from typing import Any, Self

from streamskit.common.errors import InvalidStateStorePartitionError, StreamsError
from streamskit.queries.queryable_instance import ANSWERING, QueryableInstance
from streamskit.state.stores import KeyValue

BY_KEY = (
    *("get", "entry", "versions", "backward_versions", "versions_between"),
    *("fetch", "backward_fetch", "fetch_session", "find_sessions", "backward_find_sessions"),
)
"""The questions about one key, which only the instance that hosts it can answer."""


class HostedView:
    """The partitions of a store for which this instance answers, as `streams.store(name)` gives them.

    Lists have the rows that are here, as in Kafka Streams. A question about a key that another instance hosts raises an
    error that says where to ask, in place of an answer that looks as if there were no such key.

    Args:
        instance: the instance.
        name: the store's name.
        standing_in: partitions that it also answers for as a standby, if it has them.
        for_all: whether to speak for all instances: see `Instance.local`.
    """

    _timestamped = False

    def __init__(
        self, instance: QueryableInstance, name: str, standing_in: Collection[int] = (), for_all: bool = False
    ) -> None:
        self._instance, self._name = instance, name
        self._standing_in, self._for_all = standing_in, for_all

    def __repr__(self) -> str:
        return f"<store '{self._name}' at {self._instance.here}, partitions {self._partitions()}>"

    def __len__(self) -> int:
        return len(self._here())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in BY_KEY:
            return getattr(self._here(), name)

        def asked(key: Any, *rest: Any, **named: Any) -> Any:
            self._check(key)
            return getattr(self._here(), name)(key, *rest, **named)

        return asked

    # Since Python 3.12 a check for a protocol, such as that of a view, does not see what __getattr__ would return.

    @property
    def name(self) -> str:
        """The store's name."""
        return self._name

    @property
    def kind(self) -> str:
        """Which kind of store it is, such as "key-value" or "window"."""
        return self._instance.stores[self._name].store.kind

    def all(self) -> Sequence[KeyValue]:
        """Return every row that is here."""
        rows: Sequence[KeyValue] = self._here().all()
        return rows

    @property
    def stopped(self) -> str:
        """Why no more updates come, as a sentence; "" while they may."""
        try:
            return str(self._here().stopped)
        except StreamsError:
            return self._instance.health().failure  # nothing where it may answer again

    def with_timestamps(self) -> Self:
        """Return a view whose values come with the time they were set, as the stores have it."""
        view = copy.copy(self)
        view._timestamped = True
        return view

    def _check(self, key: Any) -> None:
        described = self._instance.stores[self._name]
        partition = self._instance.partition_of(self._name, described.store.key.serialize(key) or b"")
        if partition is not None and not described.is_global and partition not in self._partitions():
            self._here()  # an instance that answers no more says so
            owner = self._instance.hosts(self._name, partition).active
            place = f'QueryClient("{owner.url}").store("{self._name}")' if owner else "another instance, in a moment"
            raise InvalidStateStorePartitionError(
                f"The key {key!r} of store '{self._name}' is in partition {partition}, which is not at "
                f"{self._instance.here}: ask {place}."
            )

    def _partitions(self) -> list[int]:
        states = self._instance.states(self._name)
        return [state.partition for state in states if state.role in ANSWERING or state.partition in self._standing_in]

    def _here(self) -> Any:
        found = self._instance.local(self._name, self._partitions(), for_all=self._for_all)
        return found.with_timestamps() if self._timestamped else found
