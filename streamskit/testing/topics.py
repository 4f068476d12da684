"""The topics of a `TopologyTestDriver`: a test pipes records into some, and reads from others what came out."""

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from streamskit.api.headers import Headers, headers_of
from streamskit.common.durations import Duration, to_milliseconds, whole_milliseconds
from streamskit.common.errors import StreamsError
from streamskit.execution.record_columns import LARGEST_TIME
from streamskit.serdes import Serde
from streamskit.state.stores import KeyValue
from streamskit.testing.memory import Raw
from streamskit.testing.partitions import TopicPartitions


class TestRecord(NamedTuple):
    """A record that a topology has written. Mirrors `org.apache.kafka.streams.test.TestRecord`."""

    key: Any
    value: Any
    timestamp: int
    headers: Headers = ()


TestRecord.__test__ = False  # type: ignore[attr-defined]  # not a test class, whatever pytest makes of the name


LENGTHS = range(2, 6)
"""How many arguments of `TestInputTopic.pipe_input` a record may give."""


class _TopicsClock:
    def __repr__(self) -> str:
        return "the topic's clock"


THE_CLOCK: Any = _TopicsClock()
"""Stands for a timestamp that a test does not give."""


class TestInputTopic:
    """An input topic, to pipe records into. Mirrors `org.apache.kafka.streams.TestInputTopic`."""

    __test__ = False

    def __init__(
        self,
        name: str,
        key: Serde,
        value: Serde,
        pipe: Callable[[list[Raw]], None],
        partitions: TopicPartitions,
        *,
        start_timestamp: int = 0,
        auto_advance: Duration = 0,
    ) -> None:
        self._name, self._key, self._value = name, key, value
        self._pipe, self._partitions = pipe, partitions
        self._now, self._step = _whole(start_timestamp), to_milliseconds(auto_advance, "auto_advance")

    def advance_time(self, duration: Duration) -> None:
        """Move the topic's clock forward, which times the records that are piped without a timestamp.

        Raises:
            ValueError: it is no duration, or negative.

        >>> with TopologyTestDriver(topology) as driver:
        ...     orders = driver.create_input_topic("orders", auto_advance="1 second")
        ...     orders.pipe_records([("a", "Kafka"), ("b", "Kafka")])
        ...     orders.advance_time("1 minute")
        ...     orders.pipe_input("c", "Kafka")
        ...     times = [record.timestamp for record in driver.create_output_topic("out").read_records_to_list()]
        ...     assert times == [0, 1000, 62_000]

        Mirrors `TestInputTopic#advanceTime`.
        """
        self._now += to_milliseconds(duration, "duration")

    def pipe_input(
        self,
        key: Any,
        value: Any,
        timestamp: int = THE_CLOCK,
        headers: Headers = (),
        partition: int | None = None,
    ) -> None:
        """Send one record through the topology and wait until it has been processed.

        Args:
            key: the key, or None.
            value: the value, or None for a tombstone.
            timestamp: milliseconds since 1970; without it, the topic's clock, which stands at 0 unless you set it.
            headers: pairs of a name and bytes; as in Kafka, None may stand for bytes.
            partition: which partition of the topic it goes to; the key decides (by murmur2) if none is given.

        Raises:
            StreamsError: a node failed on the record, the timestamp is no int or too large for milliseconds, the
                headers are not such pairs, or the topic has no such partition.
        """
        self._pipe([self._raw(key, value, timestamp, headers, partition)])

    def pipe_records(self, records: list[tuple[Any, ...]]) -> None:
        """Send many records, one after another; each is a tuple of the arguments of `pipe_input`, or the first few.

        A record cache is flushed after the last record, as an application's is when it commits.

        Raises:
            StreamsError: as in `pipe_input`, or a record is no tuple of two to five arguments; then none is sent.
        """
        if wrong := [
            record for record in records if not isinstance(record, tuple | list) or len(record) not in LENGTHS
        ]:
            raise StreamsError(f"{wrong[0]!r} is no record: give tuples such as (key, value, timestamp).")
        self._pipe([self._raw(*record) for record in records])

    def _raw(
        self,
        key: Any,
        value: Any,
        timestamp: int = THE_CLOCK,
        headers: Headers = (),
        partition: int | None = None,
    ) -> Raw:
        if partition is not None:
            self._partitions.check(self._name, partition)
        key_bytes, value_bytes = self._key.serialize(key), self._value.serialize(value)
        time = self._now if timestamp is THE_CLOCK else _whole(timestamp)
        raw = Raw(self._name, key_bytes, value_bytes, time, headers_of(headers), partition)
        if timestamp is THE_CLOCK:
            self._now += self._step
        return raw


def _whole(timestamp: Any) -> int:
    """Return a timestamp; one before 1970 is left to the source's timestamp extractor."""
    if (whole := whole_milliseconds(timestamp)) is None:
        raise StreamsError(
            f"A record cannot have the timestamp {timestamp!r}: give it whole milliseconds since 1970, an int."
        )
    if whole > LARGEST_TIME:
        raise StreamsError(f"A record has the timestamp {whole}, which is no time: give it milliseconds since 1970.")
    return whole


class TestOutputTopic:
    """An output topic, to read records from. Mirrors `org.apache.kafka.streams.TestOutputTopic`."""

    __test__ = False

    def __init__(self, name: str, key: Serde, value: Serde, records: deque[Raw], partitions: TopicPartitions) -> None:
        self._name, self._key, self._value = name, key, value
        self._records, self._partitions = records, partitions

    def is_empty(self) -> bool:
        """Return whether there is no record left to read."""
        return not self._records

    def read_record(self) -> TestRecord:
        """Return the next record.

        Raises:
            StreamsError: there is none.
        """
        if not self._records:
            raise StreamsError(f"Topic '{self._name}' has no more records: ask is_empty() first.")
        return self._record(self._records.popleft())

    def read_key_value(self) -> KeyValue:
        """Return key and value of the next record.

        Raises:
            StreamsError: there is none.
        """
        return KeyValue(*self.read_record()[:2])

    def read_value(self) -> Any:
        """Return the value of the next record.

        Raises:
            StreamsError: there is none.
        """
        return self.read_record().value

    def read_records_to_list(self) -> list[TestRecord]:
        """Return all records that are left."""
        return [self.read_record() for _ in range(len(self._records))]

    def read_key_values_to_list(self) -> list[KeyValue]:
        """Return key and value of all records that are left.

        >>> with TopologyTestDriver(topology) as driver:
        ...     driver.create_input_topic("orders").pipe_input("key", "Kafka")
        ...     assert driver.create_output_topic("out").read_key_values_to_list() == [("key", "Kafka")]
        """
        return [KeyValue(record.key, record.value) for record in self.read_records_to_list()]

    def read_values_to_list(self) -> list[Any]:
        """Return the values of all records that are left."""
        return [record.value for record in self.read_records_to_list()]

    def read_key_values_to_map(self) -> dict[Any, Any]:
        """Return the last value of each key among the records that are left: what a table of them has.

        Raises:
            StreamsError: keys are JSON objects or lists, which a dict cannot have as keys.
        """
        records = self.read_records_to_list()
        try:
            return {record.key: record.value for record in records}
        except TypeError:
            raise StreamsError(
                f"Topic '{self._name}' has keys that a dict cannot have, such as {records[0].key!r}: read them with "
                "read_key_values_to_list()."
            ) from None

    def get_queue_size(self) -> int:
        """Return how many records are left to read."""
        return len(self._records)

    def read_records_by_partition(self) -> dict[int, list[TestRecord]]:
        """Return all records that are left, by partition number; a partition without records has an empty list."""
        found: dict[int, list[TestRecord]] = {number: [] for number in range(self._partitions.count(self._name))}
        while self._records:
            raw = self._records.popleft()
            found[raw.partition or 0].append(self._record(raw))
        return found

    def _record(self, raw: Raw) -> TestRecord:
        key, value = self._key.deserialize(raw.key), self._value.deserialize(raw.value)
        return TestRecord(key, value, raw.timestamp, raw.headers)
