"""Processors on a broker with three partitions: a task each, with its stores, its clocks, and its restarts."""

import time
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import (
    FixedKeyProcessor,
    FixedKeyRecord,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    Serdes,
    Stores,
    StreamsBuilder,
    Topology,
    Windowed,
)
from streamskit.broker.base import Broker
from tests.integration.conftest import Run

pytestmark = [pytest.mark.broker, pytest.mark.spark]

STRING, LONG = Serdes.string(), Serdes.long()


@pytest.fixture(autouse=True)
def topics(broker: Broker, name: str) -> None:
    broker.create_topics(f"{name}-in", f"{name}-other", f"{name}-out", partitions=3)


def send(broker: Broker, topic: str, *records: tuple[int, str, str, int]) -> None:
    """Write records, each (partition, key, value, timestamp)."""
    names = ("partition", "key", "value", "timestamp")
    broker.produce(topic, [dict(zip(names, record, strict=True)) for record in records])


def received(broker: Broker, name: str, **serdes: Any) -> list[tuple[str, Any]]:
    return [(record.key, record.value) for record in broker.records(f"{name}-out", **serdes)]


class Remember(Processor):
    """Keeps for each key the values that it has seen, and counts records and micro-batches in fields."""

    def __init__(self) -> None:
        self.records = 0

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.seen = context.state_store("seen")
        context.schedule(100, PunctuationType.STREAM_TIME, self.tick)

    def process(self, record: Record) -> None:
        self.records += 1
        self.seen.put(record.key, (self.seen.get(record.key) or "") + record.value)
        partition = self.context.record_metadata().partition
        said = f"{self.seen.get(record.key)}: record {self.records} of partition {partition}"
        self.context.forward(record.with_value(said))

    def tick(self, time: int) -> None:
        self.context.forward(Record("tick", f"at {time} after {self.records}", time))


def remembering(name: str) -> Topology:
    builder = StreamsBuilder()
    seen = Stores.persistent_key_value_store("seen", STRING, STRING)
    builder.stream(f"{name}-in").process(Remember, stores=[seen]).to(f"{name}-out")
    return builder.build()


def test_state_belongs_to_a_partition_and_not_to_a_key(broker: Broker, run: Run, name: str) -> None:
    send(broker, f"{name}-in", (0, "k", "a", 10), (1, "k", "b", 20), (0, "k", "c", 30), (2, "other", "d", 40))
    run(remembering(name)).await_processed("120 seconds")
    assert sorted(value for key, value in received(broker, name) if key != "tick") == [
        "a: record 1 of partition 0",
        "ac: record 2 of partition 0",
        "b: record 1 of partition 1",
        "d: record 1 of partition 2",
    ]
    # Each task has a stream time of its own, and so its own first punctuation.
    assert sorted(value for key, value in received(broker, name) if key == "tick") == [
        "at 10 after 1",
        "at 20 after 1",
        "at 40 after 1",
    ]


def test_after_a_restart_stores_are_as_they_were_and_fields_and_schedules_begin_anew(
    broker: Broker, run: Run, name: str
) -> None:
    send(broker, f"{name}-in", (0, "k", "a", 110), (0, "k", "b", 120))
    first = run(remembering(name))
    first.await_processed("120 seconds")
    send(broker, f"{name}-in", (0, "k", "c", 130))
    first.await_processed()
    first.close()
    send(broker, f"{name}-in", (0, "k", "d", 140))
    second = run(remembering(name))
    second.await_processed("120 seconds")
    made = received(broker, name)
    assert [value for key, value in made if key == "k"] == [
        "a: record 1 of partition 0",
        "ab: record 2 of partition 0",
        "abc: record 3 of partition 0",
        "abcd: record 1 of partition 0",
    ]
    # Stream time is where it was, so that the new schedule is due before the first record.
    assert [value for key, value in made if key == "tick"] == ["at 110 after 1", "at 130 after 0"]
    assert second.store("seen").get("k") == "abcd"


class Source(Processor):
    """Adds to each value which record it comes of."""

    def process(self, record: Record) -> None:
        source = self.context.record_metadata()
        self.context.forward(record.with_value(f"{record.value} of {source.partition}@{source.offset}"))


def test_behind_a_cache_a_processor_is_told_of_the_record_that_made_each_update(
    broker: Broker, run: Run, name: str
) -> None:
    builder = StreamsBuilder()
    texts = builder.stream(f"{name}-in").group_by_key().reduce(lambda text, value: text + value)
    texts.to_stream().process(Source).to(f"{name}-out")
    send(
        broker,
        f"{name}-in",
        (0, "a", "1", 10),
        (0, "b", "2", 20),
        (0, "a", "3", 30),
        (0, "c", "4", 25),
        (1, "d", "5", 40),
    )
    run(builder.build(), statestore_cache_max_bytes=1_000_000).await_processed("120 seconds")
    assert sorted(received(broker, name)) == [
        ("a", "13 of 0@2"),
        ("b", "2 of 0@1"),
        ("c", "4 of 0@3"),
        ("d", "5 of 1@0"),
    ]


class ToOne(FixedKeyProcessor):
    """Forwards a record to the step that is named by its key, and to all if no step has that name."""

    def process(self, record: FixedKeyRecord) -> None:
        self.context.forward(record, None if record.key == "all" else record.key)


def test_each_aggregate_that_spark_computes_gets_what_a_processor_forwards_to_it_and_no_more(
    broker: Broker, run: Run, name: str
) -> None:
    builder = StreamsBuilder()
    grouped = builder.stream(f"{name}-in", value=LONG).process_values(ToOne).group_by_key()
    grouped.aggregate(lambda v: F.sum(v), "sums", name="sum")
    grouped.aggregate(lambda v: F.max(v), "most", name="max")
    broker.produce(f"{name}-in", [("all", 1), ("max", 2), ("sum", 3), ("all", 5), ("sum", 6)])
    streams = run(builder.build())
    streams.await_processed("120 seconds")
    assert {store: dict(streams.store(store).all()) for store in ("sums", "most")} == {
        "sums": {"all": 6, "sum": 9}, "most": {"all": 5, "max": 2},
    }  # fmt: skip


class Heartbeat(Processor):
    """Says by the wall clock how many records its task has seen."""

    count = 0

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        context.schedule("500 ms", PunctuationType.WALL_CLOCK_TIME, self.beat)

    def beat(self, time: int) -> None:
        self.context.forward(Record("beat", f"{self.count}", time))

    def process(self, record: Record) -> None:
        self.count += 1
        self.context.forward(record)


def test_by_the_wall_clock_processors_are_called_though_no_records_come(broker: Broker, run: Run, name: str) -> None:
    builder = StreamsBuilder()
    builder.stream(f"{name}-in").process(Heartbeat, name="heartbeat").to(f"{name}-out")
    send(broker, f"{name}-in", (0, "k", "a", 10), (0, "k", "b", 20))
    streams = run(builder.build())
    streams.await_processed("120 seconds")
    before = streams.metrics()["records"].sum()
    deadline = time.monotonic() + 60
    while (beats := counted(broker, name)).get("2", 0) < 3 or beats.get("0", 0) < 6:
        assert time.monotonic() < deadline, beats
        time.sleep(0.3)
    assert [record for record in received(broker, name) if record[0] == "k"] == [("k", "a"), ("k", "b")]
    began = min(record.timestamp for record in broker.records(f"{name}-out") if record.key == "beat")
    assert abs(time.time() * 1000 - began) < 120_000
    # The clock is no record of a topic: it neither counts as one nor hinders those who wait for them.
    send(broker, f"{name}-in", (1, "k", "c", 30))
    streams.await_processed("60 seconds")
    assert ("k", "c") in received(broker, name)
    assert (before, streams.metrics()["records"].sum()) == (2, 3)
    assert "heartbeat: Python" in streams.explain()


def counted(broker: Broker, name: str) -> dict[str, int]:
    """Return how many heartbeats have said how many records."""
    beats = [value for key, value in received(broker, name) if key == "beat"]
    return {said: beats.count(said) for said in beats}


class Keep(Processor):
    """Writes each record into a store of each kind."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.rows, self.windows, self.sessions = map(context.state_store, ("rows", "windows", "sessions"))

    def process(self, record: Record) -> None:
        time = record.timestamp
        self.rows.put(record.key, record.value)
        self.windows.put(record.key, record.value, time - time % 10)
        self.sessions.put(Windowed(record.key, time, time + 5), record.value)
        if record.value == "gone":
            self.rows.delete(record.key)
            self.sessions.remove(Windowed(record.key, time, time + 5))


def test_the_changelogs_of_a_processors_stores_fill_the_stores_that_are_queried(
    broker: Broker, run: Run, name: str
) -> None:
    builder = StreamsBuilder()
    stores = [
        Stores.persistent_key_value_store("rows", STRING, STRING),
        Stores.persistent_window_store("windows", "1 hour", 10, STRING, STRING),
        Stores.persistent_session_store("sessions", "1 hour", STRING, STRING),
    ]
    builder.stream(f"{name}-in").process(Keep, stores=stores)
    keys = [(key, f"{key}{number}", 10 * number + 3) for number in range(5) for key in "abc"]
    broker.produce(f"{name}-in", [*keys, ("a", "gone", 60)])
    streams = run(builder.build())
    streams.await_processed("120 seconds")
    rows, windows, sessions = map(streams.store, ("rows", "windows", "sessions"))
    assert (rows.get("a"), rows.get("b"), rows.get("c")) == (None, "b4", "c4")
    for key in "abc":
        in_order = [(10 * number, f"{key}{number}") for number in range(5)]
        assert windows.fetch(key, 0, 50) == in_order
        assert sessions.fetch(key) == [(Windowed(key, start + 3, start + 8), value) for start, value in in_order]
    assert windows.fetch("a", 60) == "gone"


class Ask(Processor):
    """Answers with what another processor has put into the store that they share."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.seen = context.state_store("seen")

    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(f"{self.seen.get(record.key)}"))


def test_two_processors_share_a_store_partition_by_partition(broker: Broker, run: Run, name: str) -> None:
    broker.create_topics(f"{name}-in-2", partitions=3)
    topology = Topology().add_source("write", f"{name}-in", f"{name}-in-2").add_processor("remember", Remember, "write")
    topology.add_source("ask", f"{name}-other").add_processor("answer", Ask, "ask")
    seen = Stores.in_memory_key_value_store("seen", STRING, STRING)
    topology.add_state_store(seen, "remember", "answer").add_sink("sink", f"{name}-out", "answer")
    send(broker, f"{name}-in", (0, "k", "a", 10))
    send(broker, f"{name}-in-2", (1, "k", "b", 20))
    streams = run(topology)
    streams.await_processed("120 seconds")
    send(broker, f"{name}-other", (0, "k", "?", 30), (1, "k", "?", 30), (2, "k", "?", 30))
    streams.await_processed()
    assert sorted(received(broker, name)) == [("k", "None"), ("k", "a"), ("k", "b")]


class Hoard(Processor):
    """Keeps every value under itself; "how many" asks for all of them."""

    def process(self, record: Record) -> None:
        store = self.context.state_store("hoard")
        if record.value == "how many":
            found = [key for key, _ in store.all()]
            self.context.forward(record.with_value(f"{len(found)} in order: {found == sorted(found)}"))
        else:
            store.put(record.value, record.value)


def test_a_store_of_thousands_of_rows_is_read_whole_in_the_next_batch_and_after_a_restart(
    broker: Broker, run: Run, name: str
) -> None:
    builder = StreamsBuilder()
    hoard = Stores.persistent_key_value_store("hoard", STRING, STRING)
    builder.stream(f"{name}-in").process(Hoard, stores=[hoard]).to(f"{name}-out")
    topology = builder.build()
    send(broker, f"{name}-in", *((0, "k", f"{number} {'x' * 50}", 10) for number in range(5000)))
    first = run(topology)
    first.await_processed("120 seconds")
    send(broker, f"{name}-in", (0, "k", "how many", 20))
    first.await_processed()
    send(broker, f"{name}-in", (0, "k", "one more", 30))
    first.await_processed()
    first.close()
    send(broker, f"{name}-in", (0, "k", "how many", 40))
    run(topology).await_processed("120 seconds")
    assert [value for _, value in received(broker, name)] == ["5000 in order: True", "5001 in order: True"]
