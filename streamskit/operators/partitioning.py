"""Which partitions the records of sinks go to: users' partitioners, called with plain Python values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from streamskit.api.client_settings import BootstrapServers
from streamskit.api.error_handlers import LONGEST_MESSAGE, Handlers, exception_name, fails
from streamskit.api.stream_partitioner import Partition, beyond, chosen
from streamskit.common.errors import StreamsError
from streamskit.operators.error_handling import attribute_failure
from streamskit.serdes import Serde


@dataclass(frozen=True)
class SinkPartitioner:
    """The partitioner of a sink: its function, and the serdes of the key and value that it gets."""

    partition: Partition
    key: Serde
    value: Serde


class Choice(NamedTuple):
    """What a partitioner decided about a record.

    `partitions` are the chosen ones that exist; None if the default partitioner is to choose. `error` says what was
    wrong, and `kind` which handler decides about it.
    """

    partitions: list[int] | None
    error: str | None = None
    kind: str | None = None


@dataclass(frozen=True)
class StreamPartitioners:
    """Calls the partitioners of sinks for records that are about to be written.

    A partitioner that fails is a processing failure; one that chooses a partition that does not exist is a production
    failure, as in Kafka Streams.

    Args:
        sinks: the partitioners, by the name of their sink.
        counts: how many partitions each topic has; None in a test driver whose topics have one.
        bootstrap_servers: the brokers to query about topics created later; a test driver has none.
        handlers: decide about failures.

    Mirrors the partitioner's part of `org.apache.kafka.streams.processor.internals.RecordCollectorImpl#send`.
    """

    sinks: Mapping[str, SinkPartitioner]
    counts: Mapping[str, int] | None
    bootstrap_servers: BootstrapServers
    handlers: Handlers

    def choose(self, sink: str, topic: str, key: bytes | None, value: bytes | None) -> Choice:
        """Return where a record goes.

        Raises:
            Exception: the partitioner failed, and no handler accepts that.
        """
        its = self.sinks[sink]
        try:
            count = self._count(topic)
            found = chosen(its.partition, topic, its.key.deserialize(key), its.value.deserialize(value), count)
        except Exception as failure:
            attribute_failure(failure, sink)
            if fails(self.handlers.processing):
                raise
            return Choice([], f"{exception_name(failure)}: {failure}"[:LONGEST_MESSAGE], "processing")
        absent = [number for number in found or () if number >= count]
        if not absent:
            return Choice(found)
        wrong = f"{beyond(topic, absent, count)}."
        if fails(self.handlers.production):
            refusal = StreamsError(wrong)
            attribute_failure(refusal, sink)
            raise refusal
        there = [number for number in found or () if number < count]
        return Choice(there, f"UnknownTopicOrPartitionException: {wrong}", "production")

    def _count(self, topic: str) -> int:
        if self.counts is None:
            return 1
        if (count := self.counts.get(topic) or _later.get(topic)) is not None:
            return count
        if not self.bootstrap_servers:
            return 1
        from streamskit.kafka.topics import list_topics  # seldom needed, and slow to import

        _later.update(list_topics(self.bootstrap_servers, internal=False))
        if topic not in _later:
            raise StreamsError(f"there is no topic '{topic}', so its number of partitions is unknown. Create it first.")
        return _later[topic]


_later: dict[str, int] = {}
"""The number of partitions of topics that did not exist when the application started, as far as this process knows."""
