"""Who hosts what: the instances of an application, the partitions of its stores that each has, and how far they are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from streamskit.api.client_settings import is_address
from streamskit.common.errors import StreamsError
from streamskit.kafka.topic_partition import TopicPartition


class HostInfo(NamedTuple):
    """Where an instance answers. Mirrors `org.apache.kafka.streams.state.HostInfo`."""

    host: str
    port: int

    @classmethod
    def of(cls, server: str) -> "HostInfo":
        """Return the host and port of an `application_server`, such as "127.0.0.1:8080".

        Raises:
            StreamsError: the text is not a host and a port.
        """
        address = server.removeprefix("http://")
        if not is_address(address):
            raise StreamsError(f"application_server='{server}' names no host and port: write \"127.0.0.1:8080\".")
        host, _, port = address.rpartition(":")
        return cls(host.strip("[]"), int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """The address of its REST layer."""
        return f"http://{self}"


@dataclass(frozen=True)
class StreamsMetadata:
    """What one instance has. Mirrors `org.apache.kafka.streams.StreamsMetadata`; the partitions are of changelogs."""

    host_info: HostInfo
    state_store_names: frozenset[str] = frozenset()
    topic_partitions: frozenset[TopicPartition] = frozenset()
    standby_state_store_names: frozenset[str] = frozenset()
    standby_topic_partitions: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True)
class KeyQueryMetadata:
    """Which instances have a key; the active one is None while there is none.

    Mirrors `org.apache.kafka.streams.KeyQueryMetadata`.
    """

    active_host: HostInfo | None
    standby_hosts: tuple[HostInfo, ...]
    partition: int


@dataclass(frozen=True)
class Hosts:
    """The instances that have one partition of a store: the active one, if any, and its standbys."""

    active: HostInfo | None = None
    standbys: tuple[HostInfo, ...] = ()

    def __iter__(self) -> Iterator[HostInfo]:
        """Yield the instances to ask, the active one first."""
        if self.active is not None:
            yield self.active
        yield from self.standbys


@dataclass(frozen=True)
class Placement:
    """Who hosts what, as the group last agreed: for each changelog and partition the instances that have it."""

    hosts: Mapping[TopicPartition, Hosts] = field(default_factory=dict)
    members: tuple[HostInfo, ...] = ()

    def of(self, topic: str, partition: int) -> Hosts:
        """Return who has a partition of a changelog."""
        return self.hosts.get(TopicPartition(topic, partition), Hosts())


Role = Literal["active", "standby"]


@dataclass(frozen=True)
class TaskState:
    """One partition of a store, or of its changelog topic, on an instance: `restored` of `total` records are there."""

    store: str
    partition: int
    role: Role
    restored: int
    total: int

    @property
    def is_restoring(self) -> bool:
        """Whether it still fills its store from the changelog."""
        return self.restored < self.total


@dataclass(frozen=True)
class InstanceState:
    """An instance: where it answers, as "host:port", whether it is alive, and what it hosts."""

    server: str
    alive: bool
    tasks: Sequence[TaskState]
