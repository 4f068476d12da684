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
    """The partitioner of a sink: its function, and the serdes that wrote the key and the value that it is given."""

    partition: Partition
    key: Serde
    value: Serde


class Choice(NamedTuple):
    """What became of a record at a partitioner.

    `partitions` are those that there are of the chosen ones, None if the default partitioner is to choose. `error` says
    what was wrong, and `kind` which handler decides about it.
    """

    partitions: list[int] | None
    error: str | None = None
    kind: str | None = None


@dataclass(frozen=True)
class StreamPartitioners:
    """Calls the partitioners of sinks for records that are about to be written.

    A partitioner that fails is a failure of processing, and one that chooses a partition beyond those that there are
    lets the writing fail, as in Kafka Streams.

    Args:
        sinks: the partitioners, by the name of their sink.
        counts: how many partitions each topic has; None in a test driver whose topics have one.
        bootstrap_servers: who is asked about a topic that was made later; a test driver has nobody to ask.
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
            Exception: the partitioner has failed, and no handler takes that.
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
"""How many partitions topics have that were not there when the application started, as far as this process knows."""
