"""`TopicPartition`: one partition of a topic."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """One partition of a topic. Mirrors `org.apache.kafka.common.TopicPartition`."""

    topic: str
    partition: int
