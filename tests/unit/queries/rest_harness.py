"""Instances for the tests of the REST layer: real stores and real servers, and a group that is only told."""

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from streamskit.api.windows import SessionWindows, TimeWindows
from streamskit.common.errors import InvalidStateStorePartitionError, StreamsRebalancingError
from streamskit.kafka.topic_partition import TopicPartition
from streamskit.queries import LocalStore, local_store
from streamskit.queries.group.catalogue import QueryableStore
from streamskit.queries.measures import Measure
from streamskit.queries.metadata import HostInfo, Hosts, Placement
from streamskit.queries.queryable_instance import InstanceHealth, PartitionState, StoreUpdate
from streamskit.queries.rest.server import Server, bind
from streamskit.queries.rest_service import RestService
from streamskit.serdes import Serdes
from streamskit.state.stores import Store

PARTITIONS = 4
TIME = 1_704_186_000_000

STORES = {
    store.name: store
    for store in (
        Store("counts", "key-value", Serdes.string(), Serdes.long()),
        Store("numbers", "key-value", Serdes.long(), Serdes.double()),
        Store("blobs", "key-value", Serdes.bytes(), Serdes.bytes()),
        Store("orders", "key-value", Serdes.json("struct<id: bigint>"), Serdes.json("struct<size: int>")),
        Store("users", "key-value", Serdes.uuid(), Serdes.boolean()),
        Store("prices", "versioned", Serdes.string(), Serdes.double(), retention=10_000),
        Store(
            "minutes",
            "window",
            Serdes.string(),
            Serdes.long(),
            TimeWindows.of_size_with_no_grace("1 minute"),
            86_400_000,
        ),
        Store(
            "visits",
            "session",
            Serdes.string(),
            Serdes.long(),
            SessionWindows.of_inactivity_gap_with_no_grace("30 seconds"),
            86_400_000,
        ),
        Store("totals", "key-value", Serdes.string(), Serdes.long()),
        Store("everywhere", "key-value", Serdes.string(), Serdes.string()),
    )
}


class Group:
    """Who hosts what, as all instances are told."""

    def __init__(self) -> None:
        self.members: list[FakeInstance] = []
        self.hosts: dict[int, Hosts] = {}
        self.whole = {name: local_store(store) for name, store in STORES.items()}
        """What one instance would have that has all partitions."""

    def put(
        self, store: str, key: bytes, value: bytes | None, timestamp: int = TIME, partition: int | None = None
    ) -> int:
        """Write a record to all replicas of its partition; the key is as the changelog has it."""
        number = partition_of(inner(store, key)) if partition is None else partition
        if store == "everywhere":
            number = 0
        self.whole[store].take(number, [(key, value, timestamp)])
        for member in self.members:
            if number in member.roles or store == "everywhere":
                member.take(store, key, value, timestamp, number)
        return number


class FakeInstance:
    """An instance as the REST layer knows it."""

    application_id = "app"

    def __init__(self, group: Group, here: HostInfo) -> None:
        self.group, self.here = group, here
        self.roles: dict[int, str] = {}
        self.restoring: set[int] = set()
        self.behind: dict[int, int] = {}
        self.local_stores: dict[str, LocalStore] = {name: local_store(store) for name, store in STORES.items()}
        self.positions: dict[tuple[str, int], int] = {}
        self.listeners: dict[str, list[Callable[[Any], None]]] = {}
        self.how = InstanceHealth("RUNNING", parts={"Spark's Java": True})
        self.measured: list[Measure] = []
        self._changing = threading.Lock()

    @property
    def stores(self) -> dict[str, QueryableStore]:
        return {
            name: QueryableStore(
                store,
                f"app-{name}-changelog",
                routed=name not in ("totals", "everywhere"),
                is_global=name == "everywhere",
                partitions=1 if name == "everywhere" else PARTITIONS,
            )
            for name, store in STORES.items()
        }

    def placement(self) -> Placement:
        hosts = {
            TopicPartition(f"app-{name}-changelog", number): self.group.hosts.get(number, Hosts())
            for name in STORES
            for number in range(PARTITIONS)
        }
        return Placement(hosts, tuple(member.here for member in self.group.members))

    def hosts(self, store: str, partition: int) -> Hosts:
        return self.group.hosts.get(partition, Hosts())

    def partition_of(self, store: str, key: bytes) -> int | None:
        return partition_of(key) if self.stores[store].routed else None

    def states(self, store: str) -> list[PartitionState]:
        roles = {0: "global"} if store == "everywhere" else self.roles
        return [self._state(store, number, role) for number, role in sorted(roles.items())]

    def local(self, store: str, partitions: Collection[int], *, for_all: bool = True) -> LocalStore:
        for number in partitions:
            if store != "everywhere" and number not in self.roles:
                raise InvalidStateStorePartitionError(f"Partition {number} of store '{store}' is not at {self.here}.")
            if number in self.restoring:
                raise StreamsRebalancingError(
                    f"Partition {number} of store '{store}' is being restored. Ask again in a moment."
                )
        return self.local_stores[store].only(partitions)

    def health(self) -> InstanceHealth:
        return self.how

    def measures(self) -> list[Measure]:
        return self.measured

    def subscribe(self, store: str, listener: Callable[[Any], None]) -> Callable[[], None]:
        self.listeners.setdefault(store, []).append(listener)
        return lambda: self.listeners[store].remove(listener)

    def take(self, store: str, key: bytes, value: bytes | None, timestamp: int, partition: int) -> None:
        with self._changing:
            offset = self.positions.get((store, partition), 0)
            self.positions[store, partition] = offset + 1
            local = self.local_stores[store]
            local.take(partition, [(key, value, timestamp)], offset + 1)
        if self.roles.get(partition) == "active" or store == "everywhere":
            read_key, read_value = STORES[store].key.deserialize, STORES[store].value.deserialize
            known = key if STORES[store].kind in ("key-value", "versioned") else inner(store, key)
            try:
                told = StoreUpdate(read_key(known), read_value(value), timestamp, partition, offset)
            except ValueError as failure:
                told = StoreUpdate(None, None, timestamp, partition, offset, str(failure))
            for listener in list(self.listeners.get(store, [])):
                listener(told)

    def _state(self, store: str, number: int, role: str) -> PartitionState:
        position = self.positions.get((store, number), 0)
        return PartitionState(
            number, role, position, position + self.behind.get(number, 0), number not in self.restoring
        )


class Cluster:
    """A few instances of one application, each with a server on loopback.

    `owners` says for each instance which partitions it has, and as what: `[{0: "active"}, {0: "standby"}]`.
    """

    def __init__(self, *owners: dict[int, str], token: str | None = None, service: RestService | None = None) -> None:
        self.group = Group()
        self.servers: list[Server] = []
        for roles in owners:
            bound = bind("127.0.0.1")
            instance = FakeInstance(self.group, HostInfo(*bound.getsockname()[:2]))
            instance.roles = dict(roles)
            self.group.members.append(instance)
            self.servers.append(Server(instance, bound, token, service))
        for number in range(PARTITIONS):
            here = {role: tuple(m.here for m in self.instances if m.roles.get(number) == role) for role in ROLES}
            self.group.hosts[number] = Hosts(next(iter(here["active"]), None), here["standby"])
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self.http = httpx.Client(headers=headers, trust_env=False, timeout=20)

    @property
    def instances(self) -> list[FakeInstance]:
        return self.group.members

    def url(self, instance: int = 0) -> str:
        return self.servers[instance].address.url

    def get(self, path: str, instance: int = 0, **headers: str) -> httpx.Response:
        return self.http.get(self.url(instance) + path, headers=headers)


ROLES = ("active", "standby")
ALL_ACTIVE = dict.fromkeys(range(PARTITIONS), "active")


@contextmanager
def cluster(*owners: dict[int, str], token: str | None = None, service: RestService | None = None) -> Iterator[Cluster]:
    """Run a cluster while the block runs."""
    made = Cluster(*owners, token=token, service=service)
    for server in made.servers:
        server.start()
    try:
        yield made
    finally:
        made.http.close()
        for server in made.servers:
            server.stop()


def partition_of(key: bytes) -> int:
    """Return the partition of a key."""
    return sum(key) % PARTITIONS


def inner(store: str, key: bytes) -> bytes:
    """Return the key of a changelog's key, without its window."""
    times = {"window": 12, "session": 16}.get(STORES[store].kind, 0)
    return key[: len(key) - times]


def long(number: int) -> bytes:
    """Return eight bytes."""
    return number.to_bytes(8, "big", signed=True)


def windowed(key: str, start: int) -> bytes:
    """Return the key of a window in a changelog."""
    return key.encode() + long(start) + bytes(4)


def session(key: str, start: int, end: int) -> bytes:
    """Return the key of a session in a changelog."""
    return key.encode() + long(end) + long(start)
