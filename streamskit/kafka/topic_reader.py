"""Reads partitions of topics without a consumer group: up to an end, or on and on in a thread.

All readers here are built on librdkafka, which reads many times as fast as a client in pure Python; kafka-python is for
what librdkafka lacks: a custom assignor in a consumer group. Three traits of librdkafka shape this module. A position
is known from a message or from an end-of-partition event, and only the latter reveals offsets without a record (markers
of transactions, compacted records). A broker that goes away is no error: the client connects again by itself. And a
consumer belongs to the thread that uses it, so that other threads hand it jobs to run there.
"""

import logging
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing, suppress
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from streamskit.api.client_settings import BootstrapServers
from streamskit.common.errors import StreamsError
from streamskit.kafka.access import Right, no_right
from streamskit.kafka.client_libraries import client_log, for_librdkafka
from streamskit.kafka.topic_partition import ChangelogRecord, TopicPartition

logger = logging.getLogger("streamskit")

AT_ONCE = 2_000
"""How many records are taken at a time."""

REQUEST_SECONDS = 30.0
"""How long a broker may take to say where a topic is; on a busy machine that is long."""

Isolation: TypeAlias = Literal["read_uncommitted", "read_committed"]
Offsets = dict[TopicPartition, int]
FATAL = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)
LEADERLESS = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
)
"""What a broker says of a partition whose leader has just changed: its topic is new, or the broker was away."""
OUT_OF_RANGE = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)

R = TypeVar("R")


class TopicRecord(NamedTuple):
    """A record as it lies in a topic; the timestamp is in milliseconds since 1970."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]


def topic_record(message: Message) -> TopicRecord:
    """Return a message with all its fields."""
    return TopicRecord(
        message.topic() or "", message.partition() or 0, message.offset() or 0, message.timestamp()[1],
        message.key(), message.value(), message.headers() or [],  # type: ignore[arg-type]
    )  # fmt: skip


def changelog_record(message: Message) -> ChangelogRecord | None:
    """Return a message of a changelog; None for one without a key, for which no table has a row."""
    key = message.key()
    return None if key is None else (key, message.value(), message.timestamp()[1])


def changelog_records(
    keeps: Callable[[str, bytes | None, bytes | None], bool],
) -> Callable[[Message], ChangelogRecord | None]:
    """Return a function that reads a message of a changelog; None for one that `keeps` leaves out.

    Args:
        keeps: takes the topic, the key and the value.
    """

    def read(message: Message) -> ChangelogRecord | None:
        kept = keeps(message.topic() or "", message.key(), message.value())
        return changelog_record(message) if kept else None

    return read


def topic_records(keeps: Callable[[str, bytes | None, bytes | None], bool]) -> Callable[[Message], TopicRecord | None]:
    """Return a function that reads a message with all its fields; None for one that `keeps` leaves out.

    Args:
        keeps: takes the topic, the key and the value.
    """

    def read(message: Message) -> TopicRecord | None:
        kept = keeps(message.topic() or "", message.key(), message.value())
        return topic_record(message) if kept else None

    return read


class Batch(Generic[R]):
    """What one poll has brought: by partition the records, their offsets, and the offset to go on from."""

    def __init__(self) -> None:
        self.records: dict[TopicPartition, list[R]] = defaultdict(list)
        self.offsets: dict[TopicPartition, list[int]] = defaultdict(list)
        self.positions: Offsets = {}


class PartitionReader(Generic[R]):
    """A consumer of partitions that are assigned by hand.

    Args:
        bootstrap_servers: the broker's address.
        convert: makes a record of a message, or None to leave it out.
        isolation: whether to read what a transaction has not committed.
        out_of_range: called when a partition lacks the offset to go on from; reading restarts at its first offset.
    """

    def __init__(
        self,
        bootstrap_servers: BootstrapServers,
        convert: Callable[[Message], R | None],
        isolation: Isolation = "read_committed",
        out_of_range: Callable[[TopicPartition], None] = lambda where: None,
    ) -> None:
        self._servers, self._convert, self._out_of_range = bootstrap_servers, convert, out_of_range
        self._assigned: set[TopicPartition] = set()
        self._consumer = Consumer(
            for_librdkafka(bootstrap_servers, "consumer")
            | {
                "group.id": "unused: partitions are assigned by hand",
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "reconnect.backoff.max.ms": 1000,
                "allow.auto.create.topics": False,
                # Readers keep all of it, or process it at once: the queue before them need not hold much.
                "queued.max.messages.kbytes": 32 * 1024,
            },
            logger=client_log,
        )

    def close(self) -> None:
        """Let go of the connections."""
        self._consumer.close()

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of a topic.

        Raises:
            KafkaException: there is no such topic, or no broker answers.
            NoRightError: the broker does not allow it to be read.
        """
        described = self._consumer.list_topics(topic, REQUEST_SECONDS).topics[topic]
        if described.error is not None:
            if described.error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise no_right(self._servers, Right("Read", "topic", topic))
            raise KafkaException(described.error)
        return [TopicPartition(topic, number) for number in sorted(described.partitions)]

    def extent(self, where: TopicPartition, cached: bool = False) -> tuple[int, int]:
        """Return the first offset of a partition and the one after its last record, as the isolation shows it.

        Raises:
            KafkaException: the broker does not say so.
        """
        deadline = time.monotonic() + REQUEST_SECONDS
        while True:
            left = max(0.1, deadline - time.monotonic())
            try:
                extent = self._consumer.get_watermark_offsets(_native(where), left, cached=cached)
            except KafkaException as failure:
                if time.monotonic() > deadline or not self._may_pass(failure.args[0].code(), where):
                    raise
                time.sleep(0.1)
                continue
            if extent is None:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
            return extent

    def _may_pass(self, code: int, where: TopicPartition) -> bool:
        """Return whether an error is over soon: the leader has just changed, or the client has yet to know it all."""
        is_new = code == KafkaError._UNKNOWN_PARTITION and where in self.partitions(where.topic)  # and learns of it
        return is_new or code in LEADERLESS

    def assign(self, starts: Mapping[TopicPartition, int]) -> None:
        """Read further partitions, from the given offsets."""
        self._consumer.incremental_assign([_native(where, start) for where, start in starts.items()])
        self._assigned |= starts.keys()

    def unassign(self, partitions: Collection[TopicPartition]) -> None:
        """Stop reading partitions."""
        assigned = self._assigned.intersection(partitions)
        self._consumer.incremental_unassign([_native(where) for where in assigned])
        self._assigned -= assigned

    def poll(self, seconds: float) -> Batch[R]:
        """Return what has come, after waiting for at most so many seconds.

        Raises:
            KafkaException: a partition cannot be read, and trying again would not help.
            NoRightError: the broker does not allow it.
        """
        batch, convert = Batch[R](), self._convert
        first = self._consumer.poll(seconds)
        if first is None:
            return batch
        # Messages of one partition come one after the other, many at a time: what they share is looked up once.
        where, is_assigned = TopicPartition("", -1), False
        for message in [first, *self._consumer.consume(AT_ONCE, 0)]:
            if message.partition() != where.partition or message.topic() != where.topic:
                where = TopicPartition(message.topic() or "", message.partition() or 0)
                is_assigned = where in self._assigned
            if not is_assigned:
                continue  # it was on its way when the partition was given up
            if (error := message.error()) is not None:
                self._heed(where, error, message, batch)
                continue
            offset = message.offset() or 0
            batch.positions[where] = offset + 1
            if (record := convert(message)) is not None:
                batch.records[where].append(record)
                batch.offsets[where].append(offset)
        return batch

    def _heed(self, where: TopicPartition, error: KafkaError, message: Message, batch: Batch[R]) -> None:
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            batch.positions[where] = max(message.offset() or 0, batch.positions.get(where, 0))
        elif code in OUT_OF_RANGE:
            self._out_of_range(where)
            batch.records.pop(where, None)
            batch.offsets.pop(where, None)
            first, _ = self.extent(where)
            self.unassign([where])
            self.assign({where: first})
            batch.positions[where] = first
        elif code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise no_right(self._servers, Right("Read", "topic", where.topic))
        elif code in FATAL:
            raise KafkaException(error)


class TopicReader(Generic[R]):
    """Follows partitions, which may come and go, in a thread of its own; it outlives a broker that is away.

    Args:
        bootstrap_servers: the broker's address.
        take: called in the reader's thread with a partition, its new records, their offsets, and the offset to go on
            from.
        who: whom it reads for, for sentences such as "The stores could not be read".
        convert: makes a record of a message, or None to leave it out.
        restart: called when a partition lacks the offset to go on from: it is read again from its first.
        moved: called in the reader's thread each time after `positions` has changed by what was read.
        followed: called in the reader's thread with a partition that is followed from now on.
        failed: called with the reason when no more will be read, though nobody asked to stop.

    >>> reader = TopicReader("localhost:9092", print, "The prints", topic_record)  # doctest: +SKIP
    >>> reader.start(["trades"])  # doctest: +SKIP
    """

    def __init__(
        self,
        bootstrap_servers: BootstrapServers,
        take: Callable[[TopicPartition, list[R], list[int], int], None],
        who: str,
        convert: Callable[[Message], R | None],
        *,
        restart: Callable[[TopicPartition], None] = lambda where: None,
        moved: Callable[[], None] = lambda: None,
        followed: Callable[[TopicPartition], None] = lambda where: None,
        failed: Callable[[StreamsError], None] = lambda failure: None,
    ) -> None:
        self._bootstrap_servers, self._take, self._who = bootstrap_servers, take, who
        self._convert, self._restart, self._moved_on, self._failed = convert, restart, moved, failed
        self._followed = followed
        self.positions: Offsets = {}
        self.ends: Offsets = {}
        self._goals: Offsets = {}
        self._firsts: Offsets = {}
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._moved, self._stopping, self._ended = threading.Condition(), threading.Event(), threading.Event()
        self._failure: StreamsError | None = None
        self._thread = threading.Thread(target=self._run, name=f"streamskit: {who}", daemon=True)

    def start(self, topics: Iterable[str] = (), starts: Offsets | None = None) -> None:
        """Begin to read, and return once the offsets to begin at are known.

        Args:
            topics: topics of which all partitions are followed.
            starts: the offsets to begin with; a partition that is not named is read from its first record.

        Raises:
            StreamsError: the broker does not say where the topics begin and end, or no client can be made.
        """
        self._thread.start()
        names = list(topics)
        if not names:
            return

        def follow_all() -> None:
            partitions = [where for topic in names for where in self._reader.partitions(topic)]
            self.follow({where: (starts or {}).get(where, 0) for where in partitions})

        try:
            self.do(follow_all).result()
        except KafkaException as failure:
            raise StreamsError(
                f"{self._who}: the broker at {self._bootstrap_servers} does not say where their topics begin "
                f"({', '.join(names)}): {failure.args[0].str()}. Start again when it answers."
            ) from failure

    @property
    def lives(self) -> bool:
        """Whether its thread is doing its work; also true before it is started, and after `stop` was called."""
        return self._thread.ident is None or self._thread.is_alive() or self._stopping.is_set()

    def stop(self, timeout: float = 10.0) -> None:
        """Stop reading, and wait for the thread to end, at most so many seconds."""
        self._stopping.set()
        if self._thread.is_alive() and not self.is_this_thread:
            self._thread.join(timeout)

    @property
    def is_this_thread(self) -> bool:
        """Whether the caller is the reader's own thread, which must not wait for itself."""
        return self._thread is threading.current_thread()

    def do(self, job: Callable[[], Any]) -> Future[Any]:
        """Run a function in the reader's thread, between two portions of records.

        Once the thread has ended, what is returned holds a StreamsError.
        """
        done: Future[Any] = Future()
        self._jobs.put((job, done))
        if self._ended.is_set():
            self._refuse_jobs()
        return done

    def follow(self, starts: Offsets) -> None:
        """Follow partitions from offsets on; to be called in the reader's thread.

        Raises:
            KafkaException: the broker does not say where they end.
        """
        extents = {where: self._reader.extent(where) for where in starts}
        ends = {where: end for where, (_, end) in extents.items()}
        self.ends |= ends
        self._goals |= ends
        self._reader.assign(starts)
        self._move(starts)
        self._firsts |= {where: first for where, (first, _) in extents.items()}
        for where in starts:
            self._followed(where)

    def widen(self, counts: Mapping[str, int]) -> None:
        """Follow partitions that were added to topics, from their first records on.

        A broker that does not say where they end is asked again by the next call.

        Args:
            counts: how many partitions each followed topic has now.
        """
        there = [TopicPartition(topic, number) for topic, count in counts.items() for number in range(count)]

        def follow_new() -> None:
            self.follow({where: 0 for where in there if where not in self.positions})

        if any(where not in self.positions for where in there):
            self.do(follow_new)

    def unfollow(self, partitions: Collection[TopicPartition]) -> None:
        """Stop following partitions; to be called in the reader's thread."""
        self._reader.unassign(partitions)
        for where in partitions:
            for each in (self.positions, self.ends, self._goals, self._firsts):
                each.pop(where, None)

    def begin_anew(self, partitions: Collection[TopicPartition]) -> None:
        """Read partitions again, whose topic was made anew; to be called in the reader's thread, also a second time.

        Raises:
            KafkaException: the broker does not say where they end.
        """
        self.unfollow(partitions)  # before the records are dropped, as in `_start_over`
        for where in partitions:
            self._restart(where)
        self.follow(dict.fromkeys(partitions, 0))

    def restored_from(self, where: TopicPartition) -> tuple[int, int]:
        """Return the offset from which a partition is still to be read, and the one at which it counts as restored.

        To be called in the reader's thread.
        """
        start = max(self.positions.get(where, 0), self._firsts.get(where, 0))
        return start, max(start, self._goals.get(where, 0))

    def is_ready(self, where: TopicPartition) -> bool:
        """Whether all that a partition held when it was first followed has been taken."""
        goal = self._goals.get(where)
        return goal is not None and self.positions.get(where, 0) >= goal

    def wait_for(self, offsets: Offsets, deadline: float, check: Callable[[], None] = lambda: None) -> None:
        """Wait until all records before the given offsets were taken.

        Args:
            offsets: for each partition the offset to reach.
            deadline: when to give up, as `time.monotonic()` counts.
            check: called now and then; it may raise an error to end the wait.

        Raises:
            StreamsError: they were not by the deadline, or no more will be.
        """
        with self._moved:
            while behind := sum(max(0, end - self.positions.get(where, 0)) for where, end in offsets.items()):
                check()
                missing = "1 record" if behind == 1 else f"{behind} records"
                if self._failure is not None:
                    raise StreamsError(str(self._failure)) from self._failure
                if self._stopping.is_set():
                    raise StreamsError(f"{self._who} are {missing} behind, and stopped: nothing reads on.")
                if time.monotonic() > deadline:
                    raise StreamsError(f"{self._who} are still {missing} behind their topics: wait longer.")
                self._moved.wait(0.1)

    def _run(self) -> None:
        try:
            self._reader = PartitionReader(self._bootstrap_servers, self._convert, out_of_range=self._start_over)
            with closing(self._reader):
                while not self._stopping.is_set():
                    self._do_jobs()
                    self._read()
        except Exception as failure:
            topics = ", ".join(sorted({where.topic for where in self._goals}))
            named = f" ({topics})" if topics else ""
            self._failure = StreamsError(f"{self._who} could not be read on from their topics{named}: {failure}")
            self._failure.__cause__ = failure
            logger.debug("%s", self._failure, exc_info=True)
            self._failed(self._failure)
        finally:
            self._ended.set()
            self._refuse_jobs()

    def _do_jobs(self) -> None:
        for job, done in self._waiting():
            try:
                done.set_result(job())
            except Exception as failure:
                done.set_exception(failure)

    def _refuse_jobs(self) -> None:
        for _, done in self._waiting():
            done.set_exception(self._failure or StreamsError(f"{self._who} are not read any more."))

    def _waiting(self) -> Iterator[tuple[Callable[[], Any], Future[Any]]]:
        """Yield the jobs that nobody has taken yet, without those that were cancelled."""
        with suppress(queue.Empty):
            while True:
                job, done = self._jobs.get_nowait()
                if done.set_running_or_notify_cancel():  # from now on it cannot be cancelled
                    yield job, done

    def _read(self) -> None:
        batch = self._reader.poll(0.05)
        for where, position in batch.positions.items():
            self._take(where, batch.records[where], batch.offsets[where], position)
            if self._stopping.is_set():
                return  # the last of them may not have been taken
            known = self._reader.extent(where, cached=True)[1]
            self.ends[where] = max(known, position, self.ends.get(where, 0))
        if batch.positions:
            self._move(batch.positions)
            self._moved_on()

    def _start_over(self, where: TopicPartition) -> None:
        self._move({where: 0})  # before the records are dropped: no waiter may find them gone and think they were read
        self._restart(where)
        # A topic that was made anew may end before the old one did.
        self._firsts[where], end = self._reader.extent(where)
        self._goals[where] = self.ends[where] = end

    def _move(self, positions: Offsets) -> None:
        with self._moved:
            self.positions.update(positions)
            self._moved.notify_all()


def _native(where: TopicPartition, offset: int | None = None) -> confluent_kafka.TopicPartition:
    return confluent_kafka.TopicPartition(*where) if offset is None else confluent_kafka.TopicPartition(*where, offset)
