"""A replica: all stores of an application, whole, kept up to date from their changelog topics."""

from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import KafkaException

from streamskit.common.errors import StreamsError
from streamskit.kafka.changelog_reader import ChangelogReader, Offsets, Record
from streamskit.kafka.topic_partition import TopicPartition
from streamskit.state.local import LocalStore


class Replica:
    """Reads changelog topics into local stores, in a thread of its own.

    Args:
        bootstrap_servers: the broker's address.
        stores: for each changelog the stores that it fills.

    Mirrors the standby task of Kafka Streams, which keeps a copy of a store the same way.
    """

    def __init__(self, bootstrap_servers: str, stores: Mapping[str, Sequence[LocalStore]]) -> None:
        self._bootstrap_servers, self._stores = bootstrap_servers, stores
        self._reader = ChangelogReader(bootstrap_servers, self._take, self._restart, "The stores", self._say_failed)

    def start(self) -> None:
        """Begin to read the changelogs from their start.

        Raises:
            StreamsError: the broker does not say where they begin.
        """
        if not self._stores:
            return
        self._reader.start()
        try:
            self._reader.do(self._follow_all).result()
        except KafkaException as failure:
            raise StreamsError(
                f"The stores: the broker at {self._bootstrap_servers} does not say where their topics begin "
                f"({', '.join(self._stores)}): {failure.args[0].str()}. Start again when it answers."
            ) from failure

    def stop(self) -> None:
        """Stop reading; the stores keep what they have."""
        self._reader.stop()
        self.say_stopped("The application is closed; these are the last values it had.")

    def wait_for(self, offsets: Offsets, deadline: float, check: Callable[[], None] = lambda: None) -> None:
        """Wait until the stores hold all updates before the given offsets.

        Args:
            offsets: for each partition of a changelog the offset to reach.
            deadline: when to give up, as `time.monotonic()` counts.
            check: called now and then, to end the waiting by an error of its own.

        Raises:
            StreamsError: they don't by the deadline, or reading has failed.
        """
        self._reader.wait_for(offsets, deadline, check)

    def say_stopped(self, why: str) -> None:
        """Tell those who look at the stores why no more updates come, unless they were told already."""
        for store in self._all():
            store.stopped = store.stopped or why

    def _follow_all(self) -> None:
        self._reader.follow({where: 0 for topic in self._stores for where in self._reader.partitions(topic)})

    def _say_failed(self, failure: StreamsError) -> None:
        self.say_stopped(f"No more updates come: {failure}")

    def _all(self) -> list[LocalStore]:
        return [store for stores in self._stores.values() for store in stores]

    def _take(self, where: TopicPartition, records: list[Record], offsets: list[int], position: int) -> None:
        for store in self._stores[where.topic]:
            store.take(where.partition, records, position)

    def _restart(self, where: TopicPartition) -> None:
        for store in self._stores[where.topic]:
            store.clear(where.partition)
