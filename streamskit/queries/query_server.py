"""An instance with its REST layer: it shares the stores of an application with others, and answers queries."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamskit.api.streams_config import StreamsConfig
from streamskit.common.errors import InvalidStateStorePartitionError
from streamskit.kafka.topic_reader import Offsets
from streamskit.queries.group.catalogue import Catalogue
from streamskit.queries.instance import Instance
from streamskit.queries.metadata import HostInfo


class QueryServer:
    """An `Instance` with its REST layer, within a `KafkaStreams` or in a process of its own.

    Args:
        catalogue: the application's stores.
        config: where and how to answer.
        state_dir: returns the folder for stores on the disk, of where it answers, or None to keep them in memory;
            `stores` in the application's folder when not given.
        keeps: says, for a topic and the key and value of a record, whether the stores take it.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        config: StreamsConfig,
        state_dir: Callable[[HostInfo], Path | None] | None = None,
        keeps: Callable[[str, bytes | None, bytes | None], bool] = lambda topic, key, value: True,
    ) -> None:
        from streamskit.queries.rest import server as rest

        server = HostInfo.of(config.application_server or "")
        listen = HostInfo.of(config.listen) if config.listen else server
        socket = rest.bind(listen.host, listen.port)
        self.here = HostInfo(server.host, server.port or socket.getsockname()[1])
        self.instance = Instance(
            catalogue,
            config.connection,
            self.here,
            state_dir=config.folder / "stores" if state_dir is None else state_dir(self.here),
            num_standby_replicas=config.num_standby_replicas,
            session_timeout=config.session_timeout,
            keeps=keeps,
        )
        self._server = rest.Server(self.instance, socket, config.token)

    def start(self) -> None:
        """Answer, and join the other instances.

        Raises:
            StreamsError: the broker or the folder of the stores cannot be had.
        """
        self._server.start()
        self.instance.start()

    def stop(self) -> None:
        """Leave the others, and answer no more."""
        self.instance.stop()
        self._server.stop()

    def wait_for(self, offsets: Offsets, deadline: float, check: Callable[[], None] = lambda: None) -> None:
        """Wait until the partitions that are here hold all updates before the given offsets, as `Replica` does."""
        self.instance.wait_for(offsets, deadline, check)

    def say_stopped(self, why: str) -> None:
        """Tell those who look at the stores why no more updates come, unless they were told already."""
        self.instance.say_stopped(why)

    @property
    def lives(self) -> bool:
        """Whether the changelogs are read; also before the start and after the end."""
        return self.instance.lives

    def store(self, name: str) -> "HostedView":
        """Return the part of a store that is here."""
        return HostedView(self.instance, name)


BY_KEY = ("get", "fetch", "backward_fetch", "entry", "fetch_session", "find_sessions")
"""The questions about one key, which only the instance that hosts it can answer."""


class HostedView:
    """The partitions of a store for which this instance answers, as `streams.store(name)` gives them.

    Lists have the rows that are here, as in Kafka Streams. A question about a key that another instance hosts raises an
    error that says where to ask, in place of an answer that looks as if there were no such key.
    """

    def __init__(self, instance: Instance, name: str) -> None:
        self._instance, self._name = instance, name

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

    def _check(self, key: Any) -> None:
        described = self._instance.stores[self._name]
        partition = self._instance.partition_of(self._name, described.store.key.serialize(key) or b"")
        if partition is not None and partition not in self._partitions():
            owner = self._instance.hosts(self._name, partition).active
            place = f'QueryClient("{owner.url}").store("{self._name}")' if owner else "another instance, in a moment"
            raise InvalidStateStorePartitionError(
                f"The key {key!r} of store '{self._name}' is in partition {partition}, which is not at "
                f"{self._instance.here}: ask {place}."
            )

    def _partitions(self) -> list[int]:
        states = self._instance.states(self._name)
        return [state.partition for state in states if state.role in ("active", "global")]

    def _here(self) -> Any:
        # In this process the last known value is an answer, also while the broker is away, as in Kafka Streams.
        return self._instance.local(self._name, self._partitions(), for_all=False)
