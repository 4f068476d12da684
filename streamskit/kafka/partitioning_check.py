"""Which partitioner has written a topic: Kafka's own (murmur2), or the default one of librdkafka (CRC32).

Topics that are joined need the records of a key in the same partition. Java's clients, kafka-python and streamskit put
a key where murmur2 says. librdkafka, which the clients for Python, Go, C# and C++ are built on, uses CRC32 unless it is
configured with `partitioner=murmur2_random`.
"""

import time
import zlib
from collections.abc import Iterable
from typing import NamedTuple

from confluent_kafka import Message

from streamskit.api.client_settings import BootstrapServers
from streamskit.kafka.topic_partition import TopicPartition, partition_for
from streamskit.kafka.topic_reader import PartitionReader

RECORDS = 200
"""How many of the last records of each partition are looked at."""

SECONDS = 10.0
"""How long the records of a topic may take to come."""

FEWEST_KEYS = 20
FITS, FITS_NOT = 0.95, 0.8

Keyed = tuple[bytes, int]
"""A key, and the partition in which it lies."""


class Partitioning(NamedTuple):
    """What a topic's keys reveal about its producer: which share of them is where each partitioner puts them."""

    topic: str
    partitions: int
    keys: int
    murmur2: float
    crc32: float

    @property
    def is_librdkafkas(self) -> bool:
        """Whether librdkafka's default partitioner has written it, beyond doubt."""
        return self.partitions > 1 and self.keys >= FEWEST_KEYS and self.crc32 >= FITS and self.murmur2 < FITS_NOT

    def __str__(self) -> str:
        fit = f"of {self.keys} keys, {self.murmur2:.0%} lie where murmur2 puts them, {self.crc32:.0%} where CRC32 does"
        return f"'{self.topic}' ({self.partitions} partitions): {fit}"


ADVICE = (
    "Have the producer set partitioner=murmur2_random (a setting of librdkafka and of all clients on it) and write the "
    "topic anew, or put .repartition() behind the stream before it is joined."
)


def judge(topic: str, partitions: int, records: Iterable[Keyed]) -> Partitioning:
    """Return how the partitions of records fit the two partitioners.

    >>> keys = [str(number).encode() for number in range(100)]
    >>> str(judge("trades", 4, [(key, partition_for(key, 4)) for key in keys]))
    "'trades' (4 partitions): of 100 keys, 100% lie where murmur2 puts them, 38% where CRC32 does"
    """
    seen = set(records)
    keys = len(seen) or 1
    return Partitioning(
        topic,
        partitions,
        len({key for key, _ in seen}),
        sum(partition_for(key, partitions) == partition for key, partition in seen) / keys,
        sum(zlib.crc32(key) % partitions == partition for key, partition in seen) / keys,
    )


def look_at(servers: BootstrapServers, topic: str) -> Partitioning:
    """Look at the last records of a topic that have a key.

    Raises:
        KafkaException: there is no such topic, or no broker answers.
        NoRightError: the broker does not allow it to be read.
    """
    reader = PartitionReader(servers, _keyed, "read_uncommitted")
    try:
        partitions = reader.partitions(topic)
        return judge(topic, len(partitions), _last(reader, partitions) if len(partitions) > 1 else ())
    finally:
        reader.close()


def _last(reader: PartitionReader[Keyed], partitions: Iterable[TopicPartition]) -> list[Keyed]:
    deadline, ends, found = time.monotonic() + SECONDS, dict[TopicPartition, int](), list[Keyed]()
    for where in partitions:
        first, end = reader.extent(where)
        if first < end:
            reader.assign({where: max(first, end - RECORDS)})
            ends[where] = end
    while ends and time.monotonic() < deadline:
        batch = reader.poll(0.5)
        found += [record for records in batch.records.values() for record in records]
        done = [where for where, position in batch.positions.items() if position >= ends[where]]
        reader.unassign(done)
        for where in done:
            del ends[where]
    return found


def _keyed(message: Message) -> Keyed | None:
    key = message.key()
    # To librdkafka an empty key is like no key: such a record goes anywhere.
    return (key, message.partition() or 0) if isinstance(key, bytes) and key else None
