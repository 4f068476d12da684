"""`StateRestoreListener`: is notified while local stores are restored from their changelogs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streamskit.common.errors import StreamsError
from streamskit.kafka.topic_partition import TopicPartition


class StateRestoreListener(ABC):
    """Is notified while the local stores of an application are restored from their changelogs, by partition.

    These are the stores that `KafkaStreams.store` and the REST layer answer from. The state that queries go on with is
    in Spark's checkpoint, and is not read from changelogs. The listener is called in the threads that read the
    changelogs, so it must be quick; an exception that it raises ends the reading.

    >>> class Telling(StateRestoreListener):
    ...     def on_restore_start(self, topic_partition, store_name, starting_offset, ending_offset):
    ...         print(f"{store_name} {topic_partition.partition}: {ending_offset - starting_offset} offsets to go")
    ...
    ...     def on_batch_restored(self, topic_partition, store_name, batch_end_offset, num_restored):
    ...         print(f"{store_name} {topic_partition.partition}: {num_restored} records more")
    ...
    ...     def on_restore_end(self, topic_partition, store_name, total_restored):
    ...         print(f"{store_name} {topic_partition.partition}: {total_restored} records in all")
    ...
    >>> streams.set_global_state_restore_listener(Telling())  # doctest: +SKIP

    Mirrors `org.apache.kafka.streams.processor.StateRestoreListener`.
    """

    @abstractmethod
    def on_restore_start(
        self, topic_partition: TopicPartition, store_name: str, starting_offset: int, ending_offset: int
    ) -> None:
        """Called before the first record of a partition; also where there is none to read.

        Args:
            topic_partition: the partition of the changelog.
            store_name: the store that it fills.
            starting_offset: where reading begins.
            ending_offset: the offset after the present last record, up to which the partition is restored.
        """

    @abstractmethod
    def on_batch_restored(
        self, topic_partition: TopicPartition, store_name: str, batch_end_offset: int, num_restored: int
    ) -> None:
        """Called after some records.

        Args:
            topic_partition: the partition of the changelog.
            store_name: the store that it fills.
            batch_end_offset: the offset of the last of them.
            num_restored: how many they are.
        """

    @abstractmethod
    def on_restore_end(self, topic_partition: TopicPartition, store_name: str, total_restored: int) -> None:
        """Called when a partition is restored: it can be queried now.

        Args:
            topic_partition: the partition of the changelog.
            store_name: the store that it fills.
            total_restored: how many records that took.
        """

    def on_restore_suspended(  # noqa: B027  # overriding it is optional
        self, topic_partition: TopicPartition, store_name: str, total_restored: int
    ) -> None:
        """Called when a partition is given up before it was restored, as another instance gets it."""


@dataclass
class Restoration:
    """The restoration of a partition: up to which offset it goes, and how many records it has taken so far."""

    end: int
    total: int = 0


class Restorations:
    """Notifies the listener, if there is one, while partitions are restored, in the thread that reads them.

    Args:
        stores: returns the names of the stores that a partition fills.
    """

    def __init__(self, stores: Callable[[TopicPartition], Sequence[str]]) -> None:
        self.listener: StateRestoreListener | None = None
        self._stores = stores
        self._under_way: dict[TopicPartition, Restoration] = {}

    def begin(self, where: TopicPartition, start: int, end: int) -> None:
        """Report that a partition is read from one offset up to another, which it may have reached already."""
        self._under_way[where] = Restoration(end)
        self._tell(where, lambda listener, store: listener.on_restore_start(where, store, start, end))
        self._end_if_done(where, start)

    def take(self, where: TopicPartition, offsets: Sequence[int], position: int) -> None:
        """Report records that were taken, as far as they belong to the restoration.

        Args:
            where: the partition.
            offsets: those of the records.
            position: the offset to go on from.
        """
        if (restored := self._under_way.get(where)) is None:
            return
        if before := [offset for offset in offsets if offset < restored.end]:
            restored.total += len(before)
            last, count = before[-1], len(before)
            self._tell(where, lambda listener, store: listener.on_batch_restored(where, store, last, count))
        self._end_if_done(where, position)

    def suspend(self, where: TopicPartition) -> None:
        """Report that a partition is given up, if it was not restored yet."""
        if (restored := self._under_way.pop(where, None)) is not None:
            self._tell(where, lambda listener, store: listener.on_restore_suspended(where, store, restored.total))

    def _end_if_done(self, where: TopicPartition, position: int) -> None:
        if position >= self._under_way[where].end:
            total = self._under_way.pop(where).total
            self._tell(where, lambda listener, store: listener.on_restore_end(where, store, total))

    def _tell(self, where: TopicPartition, call: Callable[[StateRestoreListener, str], None]) -> None:
        if self.listener is None:
            return
        for store in self._stores(where):
            try:
                call(self.listener, store)
            except Exception as failure:
                raise StreamsError(
                    f"The restore listener raised {type(failure).__name__}: {failure} (store '{store}', partition "
                    f"{where.partition} of {where.topic})."
                ) from failure
