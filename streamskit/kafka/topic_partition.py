"""`TopicPartition`: one partition of a topic, and which of them a key belongs to."""

from typing import NamedTuple

from kafka.partitioner.default import murmur2

ChangelogRecord = tuple[bytes, bytes | None, int]
"""A record of a changelog: key, value, timestamp."""


class TopicPartition(NamedTuple):
    """One partition of a topic. Mirrors `org.apache.kafka.common.TopicPartition`."""

    topic: str
    partition: int


def partition_for(key: bytes, partitions: int) -> int:
    """Return the partition of a key. Mirrors `org.apache.kafka.clients.producer.internals.BuiltInPartitioner`."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
