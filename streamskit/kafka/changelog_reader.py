"""Reads partitions of changelogs in a thread of its own, and tells how far it is."""

import logging
import queue
import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Place

from streamskit.common.errors import StreamsError
from streamskit.kafka.progress import ReadingProgress, join
from streamskit.kafka.topic_partition import TopicPartition

logger = logging.getLogger("streamskit")
# librdkafka says of every lost connection so; what matters is raised or shown as a state.
client_log = logging.getLogger("streamskit.librdkafka")
client_log.addHandler(logging.NullHandler())
client_log.propagate = False

AT_ONCE = 2_000
"""How many records are taken at a time."""

REQUEST_SECONDS = 10.0

Record = tuple[bytes, bytes | None, int]
Offsets = dict[TopicPartition, int]
FATAL = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION,
         KafkaError.TOPIC_AUTHORIZATION_FAILED)  # fmt: skip


class ChangelogReader:
    """Follows partitions, which may come and go, without a consumer group.

    Args:
        bootstrap_servers: the broker's address.
        take: called in the reader's thread with a partition, its new records (key, value, timestamp), their offsets,
            and the offset to go on from.
        restart: called when the changelog does not hold what it was to go on with: the partition begins anew.
        what: who is served, for sentences such as "The stores could not be read".
        failed: called with the reason when no more will be read, though nobody asked to stop.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        take: Callable[[TopicPartition, list[Record], list[int], int], None],
        restart: Callable[[TopicPartition], None],
        what: str,
        failed: Callable[[StreamsError], None] = lambda failure: None,
    ) -> None:
        self._take, self._restart, self._what, self._failed = take, restart, what, failed
        self._bootstrap_servers = bootstrap_servers
        self._progress = ReadingProgress[TopicPartition](what)
        self.positions = self._progress.positions
        self.ends: Offsets = {}
        self._goals: Offsets = {}
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._stopping = self._progress.stopping
        self._thread = threading.Thread(target=self._run, name=f"streamskit: {what}", daemon=True)

    def start(self) -> None:
        """Begin to read what there is to follow."""
        self._thread.start()

    def stop(self, timeout: float = 10.0) -> None:
        """Stop reading, and wait for the thread to end, at most so many seconds."""
        self._stopping.set()
        join(self._thread, timeout)

    def do(self, job: Callable[[], Any]) -> Future[Any]:
        """Run a function in the reader's thread, between two portions of records."""
        done: Future[Any] = Future()
        self._jobs.put((job, done))
        return done

    def follow(self, starts: Offsets) -> None:
        """Follow partitions from offsets on; to be called in the reader's thread.

        Raises:
            KafkaException: the broker does not say where they end.
        """
        for where in starts:
            _, self.ends[where] = self._consumer.get_watermark_offsets(Place(*where), REQUEST_SECONDS)
        self._goals |= {where: self.ends[where] for where in starts}
        self._consumer.incremental_assign([Place(*where, start) for where, start in starts.items()])
        self._progress.move(starts)

    def unfollow(self, partitions: list[TopicPartition]) -> None:
        """Follow partitions no more; to be called in the reader's thread."""
        self._consumer.incremental_unassign([Place(*where) for where in partitions])
        self._progress.forget(partitions)
        for where in partitions:
            self.ends.pop(where, None)
            self._goals.pop(where, None)

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of a topic; to be called in the reader's thread.

        Raises:
            KafkaException: there is no such topic, or no broker answers.
        """
        described = self._consumer.list_topics(topic, REQUEST_SECONDS).topics[topic]
        if described.error is not None:
            raise KafkaException(described.error)
        return [TopicPartition(topic, number) for number in sorted(described.partitions)]

    def is_ready(self, where: TopicPartition) -> bool:
        """Whether all that a partition held when it was first followed was taken."""
        goal = self._goals.get(where)
        return goal is not None and self.positions.get(where, 0) >= goal

    def wait_for(self, offsets: Offsets, deadline: float, check: Callable[[], None] = lambda: None) -> None:
        """Wait until all records before the given offsets were taken; see `ReadingProgress.wait_for`."""
        self._progress.wait_for(offsets, deadline, check)

    def _run(self) -> None:
        self._consumer = Consumer(self._settings(), logger=client_log)
        try:
            while not self._stopping.is_set():
                self._do_jobs()
                self._read()
        except Exception as failure:
            self._progress.failure = failed = StreamsError(
                f"{self._what} could not be read on from their topics: {failure}"
            )
            logger.debug("%s", failed, exc_info=True)
            self._failed(failed)
        finally:
            self._consumer.close()
            self._do_jobs(StreamsError(f"{self._what} are not read any more."))

    def _settings(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self._bootstrap_servers,
            "group.id": "unused: partitions are assigned by hand",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "reconnect.backoff.max.ms": 1000,
            "allow.auto.create.topics": False,
            # A local copy keeps all that is read: a queue before it need not hold much.
            "queued.max.messages.kbytes": 32 * 1024,
        }

    def _do_jobs(self, refusal: StreamsError | None = None) -> None:
        while not self._jobs.empty():
            job, done = self._jobs.get()
            try:
                if refusal is not None:
                    raise refusal
                done.set_result(job())
            except Exception as failure:
                done.set_exception(failure)

    def _read(self) -> None:
        first = self._consumer.poll(0.05)
        if first is None:
            return
        records: dict[TopicPartition, list[Record]] = defaultdict(list)
        offsets: dict[TopicPartition, list[int]] = defaultdict(list)
        positions: Offsets = {}
        for message in [first, *self._consumer.consume(AT_ONCE, 0)]:
            where = TopicPartition(message.topic() or "", message.partition() or 0)
            if where not in self._goals:
                continue  # it was on its way when the partition was given up
            if (error := message.error()) is not None:
                self._heed(where, error, message, positions)
                continue
            positions[where] = (message.offset() or 0) + 1
            if (key := message.key()) is not None:  # a global table has no row for one without
                records[where].append((key, message.value(), message.timestamp()[1]))
                offsets[where].append(positions[where] - 1)
        for where, position in positions.items():
            self._take(where, records[where], offsets[where], position)
        self._note_ends(positions)
        self._progress.move(positions)

    def _heed(self, where: TopicPartition, error: KafkaError, message: Message, positions: Offsets) -> None:
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            positions[where] = max(message.offset() or 0, positions.get(where, 0))
            self.ends[where] = max(self.ends.get(where, 0), positions[where])
        elif code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            self._restart(where)
            first, _ = self._consumer.get_watermark_offsets(Place(*where), REQUEST_SECONDS)
            self._consumer.incremental_unassign([Place(*where)])
            self._consumer.incremental_assign([Place(*where, first)])
            self._progress.move({where: first})
        elif code in FATAL:
            raise KafkaException(error)

    def _note_ends(self, positions: Offsets) -> None:
        for where, position in positions.items():
            _, end = self._consumer.get_watermark_offsets(Place(*where), cached=True)
            self.ends[where] = max(end, position, self.ends.get(where, 0))
