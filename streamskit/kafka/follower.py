"""Follows topics: a thread that hands every record on as it comes, and outlives a broker that goes and comes back."""

import threading
from collections.abc import Callable, Iterable
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError, KafkaTimeoutError, UnknownTopicOrPartitionError

from streamskit.common.errors import StreamsError
from streamskit.kafka.progress import ReadingProgress, join

Offsets = dict[TopicPartition, int]

RETRY_SECONDS = 1.0
READY_SECONDS = 30.0


class TopicFollower:
    """Reads all partitions of topics in a thread of its own, without a consumer group: what is committed there.

    Args:
        bootstrap_servers: the broker's address.
        topics: what to read.
        take: called with each partition that has new records, and these, in order.
        what: who is served, for sentences such as "The stores could not be read".
        from_now: whether to begin with the records that come from now on, instead of the first that are there.
        failed: called with the reason when no more records will come, though nobody asked to stop.

    >>> follower = TopicFollower("localhost:9092", ["trades"], lambda partition, records: print(records), "The prints")
    >>> follower.start()
    """

    def __init__(
        self,
        bootstrap_servers: str,
        topics: Iterable[str],
        take: Callable[[TopicPartition, list[Any]], None],
        what: str,
        *,
        from_now: bool = False,
        failed: Callable[[StreamsError], None] = lambda failure: None,
    ) -> None:
        self._bootstrap_servers, self._topics = bootstrap_servers, list(topics)
        self._take, self._what, self._from_now, self._failed = take, what, from_now, failed
        self._progress = ReadingProgress[TopicPartition](what)
        self._ready, self._stopping = threading.Event(), self._progress.stopping
        self._thread = threading.Thread(target=self._run, name=f"streamskit: {what}", daemon=True)

    def start(self) -> None:
        """Begin to read, and return once it is known where.

        Raises:
            StreamsError: the broker does not say where the topics end.
        """
        if not self._topics:
            return
        self._thread.start()
        if not self._ready.wait(READY_SECONDS):
            self._stopping.set()
            raise StreamsError(
                f"{self._what}: the broker at {self._bootstrap_servers} did not say within {READY_SECONDS:.0f} s "
                f"where the topics begin ({', '.join(self._topics)}). Is it busy? Start again when it is not."
            )
        self._progress.raise_failure()

    def stop(self, timeout: float = 10.0) -> None:
        """Stop reading, and wait for the thread to end, at most so many seconds."""
        self._stopping.set()
        join(self._thread, timeout)

    def wait_for(self, offsets: Offsets, deadline: float, check: Callable[[], None] = lambda: None) -> None:
        """Wait until all records before the given offsets were taken; see `ReadingProgress.wait_for`."""
        self._progress.wait_for(offsets, deadline, check)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    self._follow()
                except KafkaError as failure:
                    if not failure.retriable:
                        raise
                    self._stopping.wait(RETRY_SECONDS)
        except Exception as failure:
            failed = StreamsError(
                f"{self._what} could not be read on from their topics ({', '.join(self._topics)}): {failure}"
            )
            self._progress.failure = failed
            self._ready.set()
            self._failed(failed)

    def _follow(self) -> None:
        """Read from where it stopped last time, until told to stop."""
        consumer = KafkaConsumer(
            bootstrap_servers=self._bootstrap_servers.split(","),
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            # By default a client waits longer and longer before it looks again, half a minute in the end.
            reconnect_backoff_max_ms=1000,
        )
        try:
            partitions = [partition for topic in self._topics for partition in _partitions(consumer, topic)]
            consumer.assign(partitions)
            self._seek(consumer, partitions)
            while not self._stopping.is_set():
                for partition, records in consumer.poll(timeout_ms=100).items():
                    self._take(partition, records)
                    if self._stopping.is_set():
                        return  # the last of them may not have been taken
                self._note(consumer, partitions)
        finally:
            consumer.close(autocommit=False, timeout_ms=1000)

    def _seek(self, consumer: KafkaConsumer, partitions: list[TopicPartition]) -> None:
        if known := self._progress.positions:
            for partition in partitions:
                consumer.seek(partition, known.get(partition, 0))
            return
        if self._from_now:
            consumer.seek_to_end(*partitions)
        else:
            consumer.seek_to_beginning(*partitions)
        positions = {partition: consumer.position(partition, READY_SECONDS * 1000) for partition in partitions}
        if None in positions.values():
            raise KafkaTimeoutError("no answer where the topics begin")
        self._progress.move(positions)
        self._ready.set()

    def _note(self, consumer: KafkaConsumer, partitions: list[TopicPartition]) -> None:
        """Remember how far each partition was read, be it by records or by the gaps between them."""
        positions = {partition: consumer.position(partition, timeout_ms=0) for partition in partitions}
        self._progress.move({where: offset for where, offset in positions.items() if offset is not None})


def _partitions(consumer: KafkaConsumer, topic: str) -> list[TopicPartition]:
    numbers = consumer.partitions_for_topic(topic)
    if not numbers:
        raise UnknownTopicOrPartitionError(topic)
    return [TopicPartition(topic, number) for number in sorted(numbers)]
