"""Which partition a key belongs to: the one where Kafka's producers put it."""

from kafka.partitioner.default import murmur2


def partition_for(key: bytes, partitions: int) -> int:
    """Return the partition of a key. Mirrors `org.apache.kafka.clients.producer.internals.BuiltInPartitioner`."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
