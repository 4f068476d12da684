"""Several instances of an application within this process: real stores, real HTTP, and a simulated group."""

import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.request import ProxyHandler, build_opener

from streamskit.common.errors import InvalidStateStorePartitionError
from streamskit.kafka.topic_partition import TopicPartition, partition_for
from streamskit.queries import LocalStore, local_store
from streamskit.queries.group.catalogue import QueryableStore
from streamskit.queries.metadata import HostInfo, Hosts, Placement
from streamskit.queries.queryable_instance import InstanceHealth, PartitionState
from streamskit.queries.rest_service import RestService
from streamskit.serdes import Serdes
from streamskit.state.stores import Store

APPLICATION = "trades-app"


class LocalInstances:
    """Instances that share one store, of texts and whole numbers, each with some of its partitions.

    There are no replicas: the partitions of a killed instance have no owner.

    Args:
        store: the store's name.
        rows: what it holds.
        count: how many instances there are.
        partitions: how many partitions the store has.
        behind: how many updates of the store's second partition have not been read yet; of the others, fewer.
        folder: where to keep the rows on the disk; in memory when not given.
        updates: how often each row is written, the last time with its value.
        service: routes that they have beside the built-in ones.

    >>> with LocalInstances("totals", {"KO": 42, "PG": 7}) as instances:
    ...     instances.ask("/state/keyvalue/totals/KO")["value"]
    42
    """

    def __init__(
        self,
        store: str,
        rows: Mapping[str, int],
        count: int = 3,
        partitions: int = 4,
        behind: int = 0,
        folder: Path | None = None,
        updates: int = 1,
        service: RestService | None = None,
    ) -> None:
        from streamskit.queries.rest.server import Server, bind  # FastAPI is loaded where it is needed only

        sockets = [bind("127.0.0.1") for _ in range(count)]
        hosts = [HostInfo(*each.getsockname()[:2]) for each in sockets]
        owners = {partition: hosts[partition % count] for partition in range(partitions)}
        self._instances = [_Instance(store, owners, here, behind, folder) for here in hosts]
        self._fill(rows, partitions, updates)
        self._servers = [
            Server(each, bound, service=service) for each, bound in zip(self._instances, sockets, strict=True)
        ]
        self._killed: set[int] = set()
        for server in self._servers:
            server.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def urls(self) -> list[str]:
        """Where the instances answer, those that were killed too."""
        return [server.address.url for server in self._servers]

    def store(self, instance: int) -> Any:
        """Return the store as one of the instances has it: `streams.store(name)` of an application."""
        from streamskit.queries.hosted_view import HostedView

        told: Any = self._instances[instance]
        return HostedView(told, told.name)

    def owner(self, key: str) -> int:
        """Return which instance has a key."""
        first = self._instances[0]
        hosts = [each.here for each in self._instances]
        return hosts.index(first.owners[partition_for(key.encode(), len(first.owners))])

    def ask(self, path: str) -> Any:
        """Return the JSON that the first instance that lives answers.

        Raises:
            HTTPError: it answers with another status than 200.
        """
        alive = next(url for number, url in enumerate(self.urls) if number not in self._killed)
        with build_opener(ProxyHandler({})).open(alive + path, timeout=10) as answer:
            return json.load(answer)

    def kill(self, instance: int) -> None:
        """Stop an instance from answering; the others still believe that it has its partitions."""
        self._servers[instance].stop()
        self._killed.add(instance)

    def close(self) -> None:
        """Stop all that answer."""
        for server in self._servers:
            server.stop()
        for instance in self._instances:
            instance.close()

    def _fill(self, rows: Mapping[str, int], partitions: int, updates: int) -> None:
        long = Serdes.long()
        by_partition: dict[int, list[tuple[bytes, int]]] = {number: [] for number in range(partitions)}
        for key, value in rows.items():
            by_partition[partition_for(key.encode(), partitions)].append((key.encode(), value))
        for number, some in by_partition.items():
            held = next(each for each in self._instances if each.owners[number] == each.here).held
            for older in reversed(range(updates)):
                held.take(number, [(key, long.serialize(value - older), 0) for key, value in some], len(some))


class _Instance:
    """An instance as the REST layer knows it; see `Hosting`."""

    application_id = APPLICATION

    def __init__(
        self, store: str, owners: Mapping[int, HostInfo], here: HostInfo, behind: int, folder: Path | None
    ) -> None:
        self.name, self.owners, self.here, self._behind = store, owners, here, behind
        kept = Store(store, "key-value", Serdes.string(), Serdes.long())
        self.held: LocalStore = local_store(kept, _on_disk(folder) if folder else None)
        changelog = f"{APPLICATION}-{store}-changelog"
        self.stores = {store: QueryableStore(kept, changelog, partitions=len(owners))}

    def placement(self) -> Placement:
        changelog = self.stores[self.name].changelog
        hosts = {TopicPartition(changelog, number): Hosts(owner) for number, owner in self.owners.items()}
        return Placement(hosts, tuple(dict.fromkeys(self.owners.values())))

    def hosts(self, store: str, partition: int) -> Hosts:
        return Hosts(self.owners[partition])

    def partition_of(self, store: str, key: bytes) -> int | None:
        return partition_for(key, len(self.owners))

    def states(self, store: str) -> list[PartitionState]:
        return [self._state(number) for number, owner in self.owners.items() if owner == self.here]

    def local(self, store: str, partitions: Collection[int], *, for_all: bool = True) -> LocalStore:
        for number in partitions:
            if self.owners[number] != self.here:
                raise InvalidStateStorePartitionError(f"Partition {number} of store '{store}' is not at {self.here}.")
        return self.held.only(partitions)

    def measures(self) -> tuple[()]:
        """There is nothing to measure."""
        return ()

    def health(self) -> InstanceHealth:
        return InstanceHealth()

    def subscribe(self, store: str, listener: Callable[[Any], None]) -> Callable[[], None]:
        return lambda: None

    def close(self) -> None:
        """Close the files."""
        for number in self.owners:
            storage = self.held.drop(number)
            if storage is not None:
                storage.close()

    def _state(self, partition: int) -> PartitionState:
        position = self.held.open(partition).position
        return PartitionState(partition, "active", position, position + max(0, self._behind - abs(partition - 1)), True)


def _on_disk(folder: Path) -> Callable[[int], Any]:
    from streamskit.state.rocksdb import RocksStorage

    return lambda number: RocksStorage(folder / str(number))
