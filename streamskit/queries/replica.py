"""A replica: all stores of an application, whole, kept up to date from their changelog topics."""

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from confluent_kafka import Message

from streamskit.api.client_settings import BootstrapServers
from streamskit.common.errors import StreamsError
from streamskit.kafka.topic_partition import TopicPartition
from streamskit.kafka.topic_reader import Offsets, TopicReader
from streamskit.queries.restore_listener import Restorations

R = TypeVar("R")
R_contra = TypeVar("R_contra", contravariant=True)


class Copy(Protocol[R_contra]):
    """A copy of a store, or what stands before it and makes rows of a topic's records."""

    name: str
    stopped: str

    def take(self, partition: int, records: Sequence[R_contra], position: int = 0) -> None:
        """Take in records of a topic."""

    def clear(self, partition: int) -> None:
        """Empty a partition: its topic is read again from the start."""


class Replica(Generic[R]):
    """Reads changelog topics into local stores, in a thread of its own.

    Args:
        bootstrap_servers: the broker's address.
        stores: for each changelog the stores that it fills.
        convert: makes of a message what the stores take, or None to leave it out.
        failed: called with the reason when no more updates will come, though nobody asked to stop.

    Mirrors the standby task of Kafka Streams, which keeps a copy of a store the same way.
    """

    def __init__(
        self,
        bootstrap_servers: BootstrapServers,
        stores: Mapping[str, Sequence[Copy[R]]],
        convert: Callable[[Message], R | None],
        failed: Callable[[StreamsError], None] = lambda failure: None,
    ) -> None:
        self._stores, self._failed = stores, failed
        self.restorations = Restorations(lambda where: [store.name for store in stores[where.topic]])
        self._reader = TopicReader(
            bootstrap_servers,
            self._take,
            "The stores",
            convert,
            restart=self._restart,
            followed=lambda where: self.restorations.begin(where, *self._reader.restored_from(where)),
            failed=self._stopped_by,
        )

    def start(self) -> None:
        """Begin to read the changelogs from their start.

        Raises:
            StreamsError: the broker does not say where they begin.
        """
        if self._stores:
            self._reader.start(self._stores)

    def stop(self, seconds: float = 10.0) -> None:
        """Stop reading, and wait at most this many seconds for that; the stores keep what they have."""
        self._reader.stop(seconds)
        self.say_stopped("The application is closed; these are the last values it had.")

    def widen(self, counts: Mapping[str, int]) -> None:
        """Read partitions that were added to topics since the start.

        Args:
            counts: how many partitions topics have now.
        """
        self._reader.widen({topic: counts[topic] for topic in self._stores if topic in counts})

    @property
    def lives(self) -> bool:
        """Whether the changelogs are read; also before the start and after the end."""
        return self._reader.lives

    def wait_for(self, offsets: Offsets, deadline: float, check: Callable[[], None] = lambda: None) -> None:
        """Wait until the stores hold all updates before the given offsets.

        Args:
            offsets: for each partition of a changelog the offset to reach.
            deadline: when to give up, as `time.monotonic()` counts.
            check: called now and then; it may raise an error to end the wait.

        Raises:
            StreamsError: they don't by the deadline, or reading has failed.
        """
        self._reader.wait_for(offsets, deadline, check)

    def _stopped_by(self, failure: StreamsError) -> None:
        self.say_stopped(f"No more updates come: {failure}")
        self._failed(failure)

    def say_stopped(self, why: str) -> None:
        """Have the stores say why no more updates come, unless they already do."""
        for stores in self._stores.values():
            for store in stores:
                store.stopped = store.stopped or why

    def _take(self, where: TopicPartition, records: list[R], offsets: list[int], position: int) -> None:
        for store in self._stores[where.topic]:
            store.take(where.partition, records, position)
        self.restorations.take(where, offsets, position)

    def _restart(self, where: TopicPartition) -> None:
        for store in self._stores[where.topic]:
            store.clear(where.partition)
