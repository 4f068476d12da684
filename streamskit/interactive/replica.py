"""A replica: the stores of an application, kept up to date from their changelog topics."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafka import TopicPartition

from streamskit.broker.following import Offsets, TopicFollower
from streamskit.errors import StreamsError
from streamskit.interactive.stores import LocalStore


class Replica:
    """Consumes changelog topics into local stores, in a thread of its own.

    Args:
        bootstrap_servers: the broker's address.
        stores: for each changelog the stores that it fills.

    Mirrors the standby task of Kafka Streams, which keeps a copy of a store the same way.
    """

    def __init__(self, bootstrap_servers: str, stores: Mapping[str, Sequence[LocalStore]]) -> None:
        self._stores = stores
        self._follower = TopicFollower(bootstrap_servers, stores, self._take, "The stores", failed=self._say_failed)

    def start(self) -> None:
        """Begin to read the changelogs from their start."""
        self._follower.start()

    def stop(self) -> None:
        """Stop reading; the stores keep what they have."""
        self._follower.stop()
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
        self._follower.wait_for(offsets, deadline, check)

    def say_stopped(self, why: str) -> None:
        """Tell those who look at the stores why no more updates come, unless they were told already."""
        for store in self._all():
            store.stopped = store.stopped or why

    def _say_failed(self, failure: StreamsError) -> None:
        self.say_stopped(f"No more updates come: {failure}")

    def _all(self) -> list[LocalStore]:
        return [store for stores in self._stores.values() for store in stores]

    def _take(self, partition: TopicPartition, records: list[Any]) -> None:
        for store in self._stores[partition.topic]:
            for record in records:
                if record.key is not None:  # a global table has no row for one without
                    store.apply(record.key, record.value, record.timestamp, partition.partition)
