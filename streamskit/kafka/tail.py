"""The ends of topics: where they are, and the last records before them. Nothing is read while nobody looks."""

import time
from collections import deque
from collections.abc import Iterable, Mapping
from heapq import merge
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from streamskit.common.errors import BrokerError
from streamskit.kafka.connection import reachable

ANSWER_SECONDS, LOOK_SECONDS = 5.0, 2.0
"""How long a request may take, and how long one look goes on reading."""


class Ends:
    """Says where topics end; connects when asked, until it is closed.

    Args:
        bootstrap_servers: the broker's address.

    >>> ends = Ends("localhost:9092")
    >>> ends.ask(["trades"])
    {'trades': {0: 25, 1: 31}}
    """

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._consumer: KafkaConsumer | None = None

    def ask(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        """Return the offset after the last record of each partition; a topic that is not there is left out.

        Raises:
            BrokerError: the broker does not answer.
        """
        found: dict[str, dict[int, int]] = {topic: {} for topic in topics}
        try:
            for where, offset in self._end_offsets(found).items():
                found[where.topic][where.partition] = offset
        except KafkaError as failure:
            raise self._lost(failure) from failure
        return {topic: ends for topic, ends in found.items() if ends}

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._consumer is not None:
            self._consumer.close(autocommit=False, timeout_ms=1000)
            self._consumer = None

    def _end_offsets(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        consumer = self._connected()
        there = consumer.topics()
        partitions = [
            TopicPartition(topic, number)
            for topic in topics
            if topic in there
            for number in sorted(consumer.partitions_for_topic(topic) or ())
        ]
        return dict(consumer.end_offsets(partitions)) if partitions else {}

    def _connected(self) -> KafkaConsumer:
        if self._consumer is None:
            with reachable(self._bootstrap_servers):
                self._consumer = KafkaConsumer(
                    bootstrap_servers=self._bootstrap_servers.split(","),
                    bootstrap_timeout_ms=int(ANSWER_SECONDS * 1000),
                    request_timeout_ms=int(ANSWER_SECONDS * 1000),
                    enable_auto_commit=False,
                    auto_offset_reset="earliest",
                    allow_auto_create_topics=False,
                    fetch_max_wait_ms=50,
                    reconnect_backoff_max_ms=1000,
                    retry_backoff_ms=20,  # also the wait before each look-up of topics
                    metrics_enabled=False,
                )
        return self._consumer

    def _lost(self, failure: Exception) -> BrokerError:
        self.close()
        return BrokerError(f"the broker at {self._bootstrap_servers} does not answer ({failure})")


class Tail(Ends):
    """Keeps the last records of topics, as raw as they came; what is older is skipped, not read.

    Args:
        bootstrap_servers: the broker's address.
        topics: what to read.
        keep: how many records of each partition.

    >>> tail = Tail("localhost:9092", ["trades"], keep=200)
    >>> tail.look()
    >>> [record.value for record in tail.records()]
    """

    def __init__(self, bootstrap_servers: str, topics: Iterable[str], keep: int) -> None:
        super().__init__(bootstrap_servers)
        self._topics, self._keep = list(topics), keep
        self._next: dict[TopicPartition, int] = {}
        self._looks = 0
        self._kept: dict[TopicPartition, deque[tuple[int, Any]]] = {}
        self.ends: Mapping[TopicPartition, int] = {}

    @property
    def partitions(self) -> list[int]:
        """The numbers of the partitions."""
        return sorted({where.partition for where in self.ends})

    def look(self) -> None:
        """Read on to the ends as they are now.

        Raises:
            BrokerError: the broker does not answer, or has no such topic.
        """
        try:
            self.ends = self._end_offsets(self._topics)
            self._check_there()
            self._looks += 1
            self._read()
        except KafkaError as failure:
            raise self._lost(failure) from failure

    def records(self, partition: int | None = None) -> list[Any]:
        """Return what is kept, of one partition or all, in the order it came.

        Between partitions nobody knows that order: what one look found is merged by the records' times.
        """
        chosen = [kept for where, kept in self._kept.items() if partition in (None, where.partition)]
        merged = merge(*chosen, key=lambda pair: (pair[0], pair[1].timestamp))
        return [record for _, record in merged]

    def before(self, partition: int | None = None) -> int:
        """Return how many offsets lie before the first record that is kept."""
        firsts = [kept[0][1].offset for where, kept in self._kept.items() if kept and partition in (None, where[1])]
        return sum(firsts)

    def _check_there(self) -> None:
        missing = [topic for topic in self._topics if not any(where.topic == topic for where in self.ends)]
        if missing:
            raise BrokerError(f"the broker at {self._bootstrap_servers} has no topic {missing[0]!r}")

    def _read(self) -> None:
        consumer = self._connected()
        unread = self._seek(consumer)
        deadline = time.monotonic() + LOOK_SECONDS
        while unread and time.monotonic() < deadline:
            for where, records in consumer.poll(timeout_ms=100).items():
                self._kept[where].extend((self._looks, record) for record in records)
            # The position, not the last record, says how far it is read: transaction markers have offsets too.
            self._next |= {where: consumer.position(where) for where in unread}
            unread = {where for where in unread if self._next[where] < self.ends[where]}

    def _seek(self, consumer: KafkaConsumer) -> set[TopicPartition]:
        """Set where to read on, and return the partitions that have something to read."""
        if consumer.assignment() != set(self.ends):
            consumer.assign(list(self.ends))
        first = consumer.beginning_offsets(list(self.ends))
        for where, end in self.ends.items():
            kept = self._kept.setdefault(where, deque(maxlen=self._keep))
            if end < self._next.get(where, 0):
                kept.clear()  # the topic was deleted and made again
                del self._next[where]
            self._next[where] = max(self._next.get(where, 0), end - self._keep, first[where])
            consumer.seek(where, self._next[where])
        return {where for where, end in self.ends.items() if self._next[where] < end}
