"""All of it together: a broker, the catalogue, listeners, two applications, and further instances of the first."""

import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from examples.music import dead_letters
from examples.music.driver import announce_songs, listeners
from examples.music.schemas import LETTERS, TOPICS, registry
from examples.music.service import service
from examples.music.topology import topology
from streamskit import Instances, KafkaStreams, LogAndContinue, StreamsError, Topology
from streamskit.broker import Broker, EmbeddedBroker, ExternalBroker
from streamskit.datasets import Feed

NAME = "kafka-music"
PARTITIONS = 2
SESSION_TIMEOUT = "6 seconds"


class Music:
    """The whole service, from `start()` to `stop()`.

    Args:
        port: where the first instance answers; 0 takes a free one.
        instances: how many instances there are; all but the first only answer queries.
        per_second: how many plays a second.
        seed: of the plays.
        bootstrap_servers: a broker that is there; one of its own when not given.
        songs_everywhere: see `topology`.
        state_dir: where its checkpoints are. The service goes on from them, and leaves topics and listeners to others.
            When not given it begins anew, with a catalogue and listeners of its own, and keeps nothing.
        host: at which address the first instance listens.
        client_settings: a properties file with what lets clients in, if `bootstrap_servers` are a secured cluster's.
    """

    def __init__(
        self,
        port: int = 0,
        instances: int = 2,
        per_second: float = 20.0,
        seed: int = 7,
        bootstrap_servers: str | None = None,
        songs_everywhere: bool = False,
        state_dir: Path | None = None,
        host: str = "127.0.0.1",
        client_settings: Path | None = None,
    ) -> None:
        self._port, self._count, self._per_second, self._seed = port, instances, per_second, seed
        self._songs_everywhere, self._state_dir, self._host = songs_everywhere, state_dir, host
        self.feed: Feed
        self.broker: Broker = (
            ExternalBroker(bootstrap_servers, client_settings) if bootstrap_servers else EmbeddedBroker()
        )
        self._client_settings = client_settings
        self._running = ExitStack()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything, and return when plays are on their way.

        Raises:
            StreamsKitError: a part does not start; those that did are stopped again.
        """
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self) -> None:
        if not self.has_listeners and registry.is_mock:
            raise StreamsError(
                "With state_dir other programs write the plays, and their schemas are not in this process's mock "
                "registry: name a real one in the environment, SCHEMA_REGISTRY_URL=http://host:8081."
            )
        self._running.enter_context(self.broker)
        if self._state_dir is None:
            folder = self._running.enter_context(tempfile.TemporaryDirectory(prefix="kafka-music-"))
            self.broker.delete_topics(*TOPICS, missing_ok=True)
        else:
            folder = str(self._state_dir)
        if missing := sorted({*TOPICS} - {*self.broker.topics()}):
            self.broker.create_topics(*missing, partitions=PARTITIONS)
        if self.has_listeners:
            announce_songs(self.broker)
        self.letters = self._run(dead_letters.topology(), f"{NAME}-letters", folder)
        self.streams = self._run(
            topology(self._songs_everywhere),
            NAME,
            folder,
            application_server=f"{self._host}:{self._port}",
            rest_service=service,
            num_standby_replicas=1,
            session_timeout=SESSION_TIMEOUT,
            deserialization_handler=LogAndContinue(LETTERS),
            processing_handler=LogAndContinue(LETTERS),
        )
        self.instances = self._running.enter_context(
            Instances(
                NAME,
                self.broker.bootstrap_servers,
                client_settings=self._client_settings,
                standby_replicas=1,
                session_timeout=SESSION_TIMEOUT,
                applications=Path(folder),
                serdes=["examples.music.charts:ChartSerde"],
                rest_service="examples.music.service:service",
            )
        )
        for _ in range(self._count - 1):
            self.instances.start()
        if self.has_listeners:
            self.feed = self._running.enter_context(listeners(self.broker, self._per_second, self._seed))

    def _run(self, topology_: Topology, name: str, folder: str, **settings: Any) -> KafkaStreams:
        streams = KafkaStreams(
            topology_,
            name,
            self.broker.bootstrap_servers,
            client_settings=self._client_settings,
            state_dir=folder,
            commit_interval="500 ms",
            **settings,
        )
        if self.has_listeners:
            streams.clean_up()  # a broker that is not our own may know a service of this name
        return self._running.enter_context(streams)

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{self.streams.application_server}/"

    @property
    def has_listeners(self) -> bool:
        """Whether it sends plays itself."""
        return self._state_dir is None

    def trouble(self) -> str | None:
        """Return why it cannot go on, if so."""
        failures = [self.streams.failure, self.letters.failure, self.feed.trouble if self.has_listeners else None]
        return next((str(failure) for failure in failures if failure), None)

    def stop(self) -> None:
        """Stop everything, the last first."""
        self._running.close()
