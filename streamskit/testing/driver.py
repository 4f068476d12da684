"""`TopologyTestDriver`: a topology run one record at a time, without a broker."""

from collections import defaultdict, deque
from typing import Any, NamedTuple

from streamskit.environment.session import spark_session
from streamskit.errors import StreamsError, TopologyError
from streamskit.interactive import LocalStore, local_store
from streamskit.lowering import plan
from streamskit.runtime.failures import explain
from streamskit.serdes import Serde, Serdes
from streamskit.testing.memory import MemoryQuery, Raw
from streamskit.topology import Topology


class TestRecord(NamedTuple):
    """A record that came out of a topology. Mirrors `org.apache.kafka.streams.test.TestRecord`."""

    key: Any
    value: Any
    timestamp: int
    headers: tuple[tuple[str, bytes], ...] = ()


TestRecord.__test__ = False  # type: ignore[attr-defined]  # no test class, whatever pytest thinks of the name


class TopologyTestDriver:
    """Runs a topology on records that a test pipes in, each in a micro-batch of its own, on the plan that runs live.

    Args:
        topology: what to run.
        application_id: the name to run it under.

    >>> with TopologyTestDriver(topology) as driver:
    ...     driver.create_input_topic("orders").pipe_input("key", "value", timestamp=0)
    ...     driver.create_output_topic("out").read_records_to_list()

    Mirrors `org.apache.kafka.streams.TopologyTestDriver`.
    """

    def __init__(self, topology: Topology, application_id: str = "test") -> None:
        self.topology = topology
        self._plans = plan(topology, application_id)
        self._stores = {store.name: local_store(store) for store in topology.stores.values()}
        self._changelogs = {plan_.changelog(store): store.name for plan_ in self._plans for store in plan_.stores}
        self._outputs: dict[str, deque[Raw]] = defaultdict(deque)
        self._clock = 0
        spark = spark_session()
        self._queries = [MemoryQuery(spark, plan_) for plan_ in self._plans]

    def __enter__(self) -> "TopologyTestDriver":
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def create_input_topic(self, name: str, key: Serde | None = None, value: Serde | None = None) -> "TestInputTopic":
        """Return the way into a source topic; keys and values are text unless serdes are given.

        Raises:
            TopologyError: the topology does not read that topic.
        """
        known = [topic for source in self.topology.sources for topic in source.topics]
        if name not in known:
            raise TopologyError(f"The topology reads no topic '{name}'; it reads: {', '.join(known)}.")
        return TestInputTopic(self, name, key or Serdes.string(), value or Serdes.string())

    def create_output_topic(self, name: str, key: Serde | None = None, value: Serde | None = None) -> "TestOutputTopic":
        """Return the way out of a sink topic; the serdes are the sink's own unless others are given.

        Raises:
            TopologyError: the topology does not write that topic.
        """
        sinks = {sink.topic: sink for sink in self.topology.sinks}
        if name not in sinks:
            raise TopologyError(f"The topology writes no topic '{name}'; it writes: {', '.join(sinks)}.")
        return TestOutputTopic(self, name, key or sinks[name].key, value or sinks[name].value)

    def state_store(self, name: str) -> LocalStore:
        """Return a store by name, to be read. Mirrors `TopologyTestDriver#getStateStore`."""
        return self._stores[self.topology.store(name).name]

    def dropped(self) -> int:
        """Return how many records were dropped: too late (once for each window missed), or without a key or value."""
        return sum(query.dropped() for query in self._queries)

    def close(self) -> None:
        """Stop the queries and forget all state."""
        for query in self._queries:
            query.stop()

    def _pipe(self, records: list[Raw]) -> None:
        for plan_, query in zip(self._plans, self._queries, strict=True):
            mine = [record for record in records if any(record.topic in source.topics for source in plan_.sources)]
            if not mine:
                continue
            try:
                written = query.run(mine)
            except Exception as failure:
                raise explain(failure, plan_) from failure
            self._take(written, plan_.windowed_topics())

    def _take(self, written: list[Raw], windowed: dict[str, int]) -> None:
        # Kafka Streams updates the windows of a record from the earliest on; their keys are the same but for the start.
        for record in sorted(written, key=lambda record: record.key or b"" if record.topic in windowed else b""):
            if record.topic in self._changelogs:
                store = self._stores[self._changelogs[record.topic]]
                store.apply(record.key or b"", record.value, record.timestamp)
            else:
                self._outputs[record.topic].append(record)


class TestInputTopic:
    """The way into a topic. Mirrors `org.apache.kafka.streams.TestInputTopic`."""

    __test__ = False

    def __init__(self, driver: TopologyTestDriver, name: str, key: Serde, value: Serde) -> None:
        self._driver, self._name, self._key, self._value = driver, name, key, value

    def pipe_input(self, key: Any, value: Any, timestamp: int = 0, headers: tuple[tuple[str, bytes], ...] = ()) -> None:
        """Send one record through the topology and wait until it has come out.

        Args:
            key: the key, or None.
            value: the value, or None for a tombstone.
            timestamp: milliseconds since 1970.
            headers: pairs of a name and bytes.

        Raises:
            StreamsError: a node failed on the record.
        """
        self._driver._pipe([self._raw(key, value, timestamp, headers)])

    def pipe_records(self, records: list[tuple[Any, ...]]) -> None:
        """Send many records, each (key, value, timestamp) or (key, value), as one micro-batch."""
        self._driver._pipe([self._raw(*record) for record in records])

    def _raw(self, key: Any, value: Any, timestamp: int = 0, headers: tuple[tuple[str, bytes], ...] = ()) -> Raw:
        return Raw(self._name, self._key.serialize(key), self._value.serialize(value), timestamp, tuple(headers))


class TestOutputTopic:
    """The way out of a topic. Mirrors `org.apache.kafka.streams.TestOutputTopic`."""

    __test__ = False

    def __init__(self, driver: TopologyTestDriver, name: str, key: Serde, value: Serde) -> None:
        self._records, self._name, self._key, self._value = driver._outputs[name], name, key, value

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
        raw = self._records.popleft()
        key, value = self._key.deserialize(raw.key), self._value.deserialize(raw.value)
        return TestRecord(key, value, raw.timestamp, raw.headers)

    def read_records_to_list(self) -> list[TestRecord]:
        """Return all records that are left."""
        return [self.read_record() for _ in range(len(self._records))]
