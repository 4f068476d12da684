"""The ends of topics: where they are, and the last records before them. Nothing is read while nobody looks."""

import time
from collections import deque
from collections.abc import Iterable, Mapping
from heapq import merge

import confluent_kafka
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from streamskit.api.client_settings import BootstrapServers
from streamskit.common.errors import BrokerError
from streamskit.kafka.client_libraries import client_log, for_librdkafka
from streamskit.kafka.connection import reachable
from streamskit.kafka.topic_partition import TopicPartition
from streamskit.kafka.topic_reader import Offsets, PartitionReader, TopicRecord, topic_record
from streamskit.kafka.topics import TopicIdentity, identities

FIRST, END = OffsetSpec.earliest(), OffsetSpec.latest()  # type: ignore[no-untyped-call]
ANSWER_SECONDS, LOOK_SECONDS = 5.0, 2.0
"""How long a request may take, and how long one look goes on reading."""


class Ends:
    """Says where topics end; connects when asked, until it is closed.

    Args:
        bootstrap_servers: the broker's address.

    >>> ends = Ends("localhost:9092")  # doctest: +SKIP
    >>> ends.ask(["trades"])  # doctest: +SKIP
    {'trades': {0: 25, 1: 31}}
    """

    def __init__(self, bootstrap_servers: BootstrapServers) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._admin: AdminClient | None = None

    def ask(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        """Return the offset after the last record of each partition; a topic that does not exist is left out.

        Raises:
            BrokerError: the broker does not answer.
        """
        found: dict[str, dict[int, int]] = {topic: {} for topic in topics}
        try:
            for where, offset in self._offsets(self._partitions_of(found), END).items():
                found[where.topic][where.partition] = offset
        except KafkaException as failure:
            raise self._lost(failure) from failure
        return {topic: ends for topic, ends in found.items() if ends}

    def close(self) -> None:
        """Close the connection, if there is one."""
        self._admin = None

    def _partitions_of(self, topics: Iterable[str]) -> list[TopicPartition]:
        there = self._connected().list_topics(timeout=ANSWER_SECONDS).topics
        return [
            TopicPartition(topic, number) for topic in topics if topic in there for number in there[topic].partitions
        ]

    def _offsets(self, partitions: Iterable[TopicPartition], spec: OffsetSpec) -> Offsets:
        asked = {confluent_kafka.TopicPartition(*where): spec for where in partitions}
        if not asked:
            return {}
        answers = self._connected().list_offsets(asked, request_timeout=ANSWER_SECONDS)
        return {TopicPartition(where.topic, where.partition): each.result().offset for where, each in answers.items()}

    def _connected(self) -> AdminClient:
        if self._admin is None:
            with reachable(self._bootstrap_servers):
                self._admin = AdminClient(for_librdkafka(self._bootstrap_servers, "admin"), logger=client_log)
        return self._admin

    def _lost(self, failure: KafkaException) -> BrokerError:
        self.close()
        return BrokerError(f"the broker at {self._bootstrap_servers} does not answer ({failure.args[0].str()})")


class Tail(Ends):
    """Keeps the last records of topics, undecoded; older ones are skipped, not read.

    Args:
        bootstrap_servers: the broker's address.
        topics: what to read.
        keep: how many records of each partition.

    >>> tail = Tail("localhost:9092", ["trades"], keep=200)  # doctest: +SKIP
    >>> tail.look()  # doctest: +SKIP
    >>> [record.value for record in tail.records()]  # doctest: +SKIP
    """

    def __init__(self, bootstrap_servers: BootstrapServers, topics: Iterable[str], keep: int) -> None:
        super().__init__(bootstrap_servers)
        self._topics, self._keep = list(topics), keep
        self._reader: PartitionReader[TopicRecord] | None = None
        self._ids: dict[str, str] = {}
        self._next: Offsets = {}
        self._looks = 0
        self._kept: dict[TopicPartition, deque[tuple[int, TopicRecord]]] = {}
        self.ends: Offsets = {}

    @property
    def partitions(self) -> list[int]:
        """The numbers of the partitions."""
        return sorted({where.partition for where in self.ends})

    def look(self) -> None:
        """Read on to the ends as they are now.

        Raises:
            BrokerError: the broker does not answer, has no such topic, or does not allow it to be read.
        """
        try:
            # Before the ends: those of a topic that is made again in between are forgotten at the next look.
            there = self._identities()
            self._forget_former(there)
            partitions = [TopicPartition(topic, number) for topic in there for number in range(there[topic].partitions)]
            self.ends = self._offsets(partitions, END)
            self._check_there()
            self._looks += 1
            self._read()
        except KafkaException as failure:
            raise self._lost(failure) from failure

    def records(self, partition: int | None = None) -> list[TopicRecord]:
        """Return the kept records of one partition, or of all, in the order they came.

        Across partitions that order is unknown: what one look found is merged by the records' timestamps.
        """
        chosen = [kept for where, kept in self._kept.items() if partition in (None, where.partition)]
        merged = merge(*chosen, key=lambda pair: (pair[0], pair[1].timestamp))
        return [record for _, record in merged]

    def before(self, partition: int | None = None) -> int:
        """Return how many offsets lie before the first record that is kept."""
        firsts = [kept[0][1].offset for where, kept in self._kept.items() if kept and partition in (None, where[1])]
        return sum(firsts)

    def _forget_former(self, there: Mapping[str, TopicIdentity]) -> None:
        """Forget what was read of topics that were deleted and made again since."""
        for topic, found in there.items():
            if self._ids.setdefault(topic, found.id) != found.id:
                self._ids[topic] = found.id
                for where in [where for where in self._next if where.topic == topic]:
                    del self._next[where], self._kept[where]

    def _identities(self) -> Mapping[str, TopicIdentity]:
        return identities(self._connected(), self._topics, ANSWER_SECONDS) if self._topics else {}

    def _check_there(self) -> None:
        missing = [topic for topic in self._topics if not any(where.topic == topic for where in self.ends)]
        if missing:
            raise BrokerError(f"the broker at {self._bootstrap_servers} has no topic {missing[0]!r}")

    def close(self) -> None:
        super().close()
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _read(self) -> None:
        unread = self._skip()
        if not unread:
            return
        reader = self._reader = self._reader or PartitionReader(
            self._bootstrap_servers, topic_record, "read_uncommitted"
        )
        # Only for the time of a look: a client goes on fetching what is assigned to it.
        reader.assign({where: self._next[where] for where in unread})
        read, deadline = unread, time.monotonic() + LOOK_SECONDS
        try:
            while unread and time.monotonic() < deadline:
                batch = reader.poll(0.1)
                for where, records in batch.records.items():
                    self._kept[where].extend((self._looks, record) for record in records)
                # The position, not the last record, says how far it is read: transaction markers have offsets too.
                self._next |= batch.positions
                unread = {where for where in unread if self._next[where] < self.ends[where]}
        finally:
            reader.unassign(read)

    def _skip(self) -> set[TopicPartition]:
        """Set where to read on, and return the partitions that have something to read."""
        first = self._offsets(self.ends, FIRST)
        for where, end in self.ends.items():
            kept = self._kept.setdefault(where, deque(maxlen=self._keep))
            if end < self._next.get(where, 0):
                kept.clear()  # its records were lost, or the topic was made again since it was identified
                del self._next[where]
            self._next[where] = max(self._next.get(where, 0), end - self._keep, first[where])
        return {where for where, end in self.ends.items() if self._next[where] < end}
