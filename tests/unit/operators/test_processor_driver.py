"""Processors in a TopologyTestDriver: with the DSL and without, beside tables, and when they fail."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import (
    FixedKeyProcessor,
    FixedKeyRecord,
    LogAndContinue,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    Serdes,
    Stores,
    StreamsBuilder,
    StreamsError,
    TimeWindows,
    Topology,
    TopologyTestDriver,
    ValueAndTimestamp,
)
from streamskit.serdes import SerdeError
from tests.unit.operators.processor_harness import LONG, STRING, key_value
from tests.unit.operators.test_processor_routing import Pass, Peek, Refuse, Write

pytestmark = pytest.mark.spark


@contextmanager
def driver_of(topology: Topology) -> Iterator[tuple[TopologyTestDriver, Any]]:
    """Run a topology, and give a function that pipes a record and returns what comes out of topic "out"."""
    with TopologyTestDriver(topology) as driver:

        def pipe(topic: str, key: Any, value: Any, timestamp: int) -> list[tuple[Any, Any, int]]:
            driver.create_input_topic(topic).pipe_input(key, value, timestamp)
            return [record[:3] for record in driver.create_output_topic("out").read_records_to_list()]

        yield driver, pipe


def test_two_processors_share_a_store_and_read_topics_with_different_serdes() -> None:
    class Add(Processor):
        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            self.store = context.state_store("rows")

        def process(self, record: Record) -> None:
            self.store.put(record.key, f"{self.store.get(record.key) or ''}{record.value!r} ")

    topology = Topology().add_source("words", "words").add_source("numbers", "numbers", value=LONG)
    topology.add_processor("add", Add, "words", "numbers")
    topology.add_source("questions", "questions").add_processor("peek", lambda: Peek("rows"), "questions")
    topology.add_state_store(key_value(), "add", "peek").add_sink("sink", "out", "peek")
    with driver_of(topology) as (driver, pipe):
        assert pipe("words", "k", "seven", 1) == []
        assert pipe("numbers", "k", 7, 2) == []
        assert pipe("questions", "k", "?", 3) == [("k", "'seven' 7 ", 3)]
        assert driver.state_store("rows").all() == [("k", "'seven' 7 ")]


def test_a_node_of_the_dsl_feeds_a_processor_wired_by_hand() -> None:
    builder = StreamsBuilder()
    builder.stream("in", value=LONG).filter(lambda v: v > 0).map_values(lambda v: v * 2, name="doubled").to("doubled")

    class Spell(Processor):
        def process(self, record: Record) -> None:
            self.context.forward(record.with_value(f"it was {record.value}"))

    topology = builder.build().add_processor("spell", Spell, "doubled").add_sink("sink", "out", "spell", value=STRING)
    with driver_of(topology) as (driver, pipe):
        assert pipe("in", "k", -1, 1) == []
        assert pipe("in", "k", 21, 2) == [("k", "it was 42", 2)]
        assert driver.create_output_topic("doubled").read_record().value == 42


def test_a_processor_looks_into_a_table_and_a_global_table() -> None:
    class Greet(Processor):
        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            self.users, self.towns = context.state_store("users"), context.state_store("towns")

        def process(self, record: Record) -> None:
            user, town = self.users.get(record.key), self.towns.get(record.value)
            self.context.forward(record.with_value(f"{user} {town}"))

    builder = StreamsBuilder()
    builder.table("users", materialized="users")
    builder.global_table("towns", materialized="towns")
    builder.stream("in").process(Greet, stores=["users"]).to("out")
    with driver_of(builder.build()) as (_, pipe):
        assert pipe("in", "ann", "B", 1) == [("ann", "None None", 1)]
        pipe("users", "ann", "Ann", 2)
        pipe("towns", "B", "Bonn", 3)
        said = f"{ValueAndTimestamp('Ann', 2)} {ValueAndTimestamp('Bonn', 3)}"
        assert pipe("in", "ann", "B", 4) == [("ann", said, 4)]


def test_a_processor_wired_by_hand_looks_into_a_global_table() -> None:
    builder = StreamsBuilder()
    builder.global_table("users", materialized="users")
    builder.stream("in", name="in")
    topology = builder.build().add_processor("peek", lambda: Peek("users"), "in").add_sink("sink", "out", "peek")
    with driver_of(topology) as (_, pipe):
        pipe("users", "ann", "Ann", 1)
        assert pipe("in", "ann", "?", 2) == [("ann", str(ValueAndTimestamp("Ann", 1)), 2)]


class Labelled(Processor):
    """Keeps where each record of a global topic lies, and what its headers say."""

    def process(self, record: Record) -> None:
        where = self.context.record_metadata()
        said = ", ".join(f"{name}={value.decode()}" for name, value in record.headers)
        self.context.state_store("names").put(record.key, f"{where.topic}/{where.partition}/{where.offset} {said}")


def test_the_processor_of_a_global_store_sees_headers_and_offsets_where_its_store_is_queried() -> None:
    builder = StreamsBuilder()
    names = Stores.in_memory_key_value_store("names", Serdes.string(), Serdes.string())
    builder.add_global_store(names, "names", Labelled)
    builder.stream("in").to("out")
    with TopologyTestDriver(builder.build(), "app") as driver:
        topic = driver.create_input_topic("names")
        topic.pipe_input("a", "x", 1, headers=(("by", b"ann"), ("to", b"bob")))
        topic.pipe_input("b", "y", 2)
        assert [(row.key, row.value) for row in driver.state_store("names").all()] == [
            ("a", "names/0/0 by=ann, to=bob"),
            ("b", "names/0/1 "),
        ]


class Rows(Processor):
    """Says how many rows a global store has."""

    def process(self, record: Record) -> None:
        rows = self.context.state_store("names").all()
        self.context.forward(record.with_value(" ".join(row.key for row in rows)))


def test_the_processor_of_a_global_store_is_given_records_without_a_key() -> None:
    class Fill(Processor):
        def process(self, record: Record) -> None:
            self.context.state_store("names").put(str(record.key), record.value)

    builder = StreamsBuilder()
    builder.add_global_store(key_value("names").with_logging(False), "names", Fill)
    builder.stream("in").process(Rows).to("out")
    with driver_of(builder.build()) as (driver, pipe):
        pipe("names", None, "x", 1)
        pipe("names", "a", "y", 2)
        assert pipe("in", "k", "?", 3) == [("k", "None a", 3)]
        assert [row.key for row in driver.state_store("names").all()] == ["None", "a"]
        assert driver.dropped() == 0


def test_a_record_without_a_key_is_dropped_once_from_a_global_table_that_several_sub_topologies_read() -> None:
    builder = StreamsBuilder()
    builder.global_table("names", materialized="names")
    for topic in ("in", "in-too"):
        builder.stream(topic).process(Rows).to("out")
    with driver_of(builder.build()) as (driver, pipe):
        pipe("names", None, "x", 1)
        pipe("names", "a", "y", 2)
        assert pipe("in", "k", "?", 3) == pipe("in-too", "k", "?", 3) == [("k", "a", 3)]
        assert driver.dropped() == 1


@pytest.mark.parametrize("is_read", [True, False], ids=["read by a query", "read by nobody"])
@pytest.mark.parametrize("is_table", [True, False], ids=["table", "store"])
def test_a_record_that_cannot_be_read_is_dropped_once_from_a_global_table_or_store(
    is_table: bool, is_read: bool
) -> None:
    class Fill(Processor):
        def process(self, record: Record) -> None:
            self.context.state_store("names").put(record.key, record.value)

    builder = StreamsBuilder()
    if is_table:
        builder.global_table("names", value=LONG, materialized="names")
    else:
        store = Stores.persistent_key_value_store("names", STRING, LONG).with_logging(False)
        builder.add_global_store(store, "names", Fill, value=LONG)
    stream = builder.stream("in")
    (stream.process(Rows) if is_read else stream).to("out")
    with TopologyTestDriver(builder.build(), deserialization_handler=LogAndContinue()) as driver:
        driver.create_input_topic("names", value=Serdes.bytes()).pipe_input("a", b"bad", 1)
        driver.create_input_topic("names").pipe_input("b", 7, 2)
        assert [(row.key, row.value) for row in driver.state_store("names").all()] == [("b", 7)]
        assert driver.dropped() == 1


def test_a_record_that_cannot_be_read_is_named_where_a_processor_fills_a_global_store() -> None:
    class Fill(Processor):
        def process(self, record: Record) -> None:
            raise AssertionError("no record can be read")

    builder = StreamsBuilder()
    store = Stores.persistent_key_value_store("names", STRING, LONG).with_logging(False)
    builder.add_global_store(store, "names", Fill, value=LONG)
    builder.stream("in").to("out")
    with TopologyTestDriver(builder.build()) as driver:
        said = (
            r"cannot read a record in partition 0 of topic 'names': Serdes.long\(\) cannot read 3 bytes.*LogAndContinue"
        )
        with pytest.raises(StreamsError, match=said):
            driver.create_input_topic("names", value=Serdes.bytes()).pipe_input("a", b"bad", 1)


def test_a_value_that_the_store_cannot_keep_is_not_told_as_a_record_that_cannot_be_read() -> None:
    class Fill(Processor):
        def process(self, record: Record) -> None:
            self.context.state_store("names").put(record.key, "no number")

    builder = StreamsBuilder()
    store = Stores.persistent_key_value_store("names", STRING, LONG).with_logging(False)
    builder.add_global_store(store, "names", Fill, value=LONG)
    builder.stream("in").to("out")
    with TopologyTestDriver(builder.build()) as driver, pytest.raises(SerdeError, match="cannot write") as caught:
        driver.create_input_topic("names").pipe_input("a", 7, 1)
    assert "LogAndContinue" not in str(caught.value)


class Twice(FixedKeyProcessor):
    def process(self, record: FixedKeyRecord) -> None:
        self.context.forward(record)
        self.context.forward(record.with_value(record.value * 10))


def test_aggregates_that_spark_computes_follow_a_processor_that_keeps_keys() -> None:
    builder = StreamsBuilder()
    doubled = builder.stream("in", value=LONG).process_values(Twice)
    grouped = doubled.group_by_key()
    grouped.aggregate(lambda v: F.sum(v), materialized="sums")
    windows = TimeWindows.of_size_with_no_grace(10)
    grouped.windowed_by(windows).aggregate(lambda v: F.max(v), materialized="largest").to_stream(lambda k, v: k.key).to(
        "largest"
    )
    doubled.to("out")
    with driver_of(builder.build()) as (driver, pipe):
        assert pipe("in", "k", 3, 1) == [("k", 3, 1), ("k", 30, 1)]
        assert pipe("in", "k", 4, 2) == [("k", 4, 2), ("k", 40, 2)]
        assert dict(driver.state_store("sums").all()) == {"k": 77}
        largest = driver.create_output_topic("largest").read_records_to_list()
        assert [record.value for record in largest] == [3, 30, 30, 40]


class ToOne(FixedKeyProcessor):
    """Forwards a record to the step that is named by its key, and to all if no step has that name."""

    def process(self, record: FixedKeyRecord) -> None:
        self.context.forward(record, None if record.key == "all" else record.key)


def test_each_aggregate_that_spark_computes_gets_what_a_processor_forwards_to_it_and_no_more() -> None:
    builder = StreamsBuilder()
    values = builder.stream("in", value=LONG).process_values(ToOne)
    grouped = values.group_by_key()
    grouped.aggregate(lambda v: F.sum(v), name="sum").to_stream().to("sums")
    grouped.aggregate(lambda v: F.max(v), name="max").to_stream().to("largest")
    values.map_values(lambda v: v * 100, name="plain").to("out")
    with driver_of(builder.build()) as (driver, pipe):
        piped = [("all", 1), ("max", 2), ("sum", 3), ("plain", 4), ("all", 5)]
        made = [[value for _, value, _ in pipe("in", key, value, 1)] for key, value in piped]
        assert made == [[100], [], [], [400], [500]]
        outs = [driver.create_output_topic(topic).read_records_to_list() for topic in ("sums", "largest")]
        assert [[record[:2] for record in out] for out in outs] == [
            [("all", 1), ("sum", 3), ("all", 6)], [("all", 1), ("max", 2), ("all", 5)],
        ]  # fmt: skip
        with pytest.raises(StreamsError, match=r"cannot forward to 'none'.*Its next steps: sum, max, plain"):
            pipe("in", "none", 6, 6)


class Clock(Processor):
    """Tells where the record in hand comes from, its time, and how far stream time has come."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        context.schedule(100, PunctuationType.STREAM_TIME, self.tick)

    def tick(self, time: int) -> None:
        self.context.forward(Record("tick", self.said(), time))

    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(f"{record.value}: {self.said()}"))

    def said(self) -> str:
        topic, _, offset = self.context.record_metadata()
        return f"{topic} {offset}, at {self.context.timestamp()} of {self.context.current_stream_time_ms()}"


def test_after_a_count_a_processor_still_knows_the_source_record_and_the_tasks_stream_time() -> None:
    builder = StreamsBuilder()
    counts = builder.stream("in").filter(lambda v: v != "dropped").group_by_key().count("counts")
    counts.to_stream().process(Clock, value=STRING).to("out")
    with driver_of(builder.build()) as (_, pipe):
        assert pipe("in", "k", "v", 110) == [
            ("k", "1: in 0, at 110 of 110", 110),
            ("tick", "None -1, at 110 of 110", 110),
        ]
        # The filter drops it, and yet it is 230 in this task now.
        assert pipe("in", "k", "dropped", 230) == [("tick", "None -1, at 230 of 230", 230)]
        assert pipe("in", "k", "v", 150) == [("k", "2: in 2, at 150 of 230", 150)]


def test_headers_go_through_a_processor_and_can_be_added() -> None:
    class Trace(Processor):
        def process(self, record: Record) -> None:
            self.context.forward(record.with_headers((*record.headers, ("seen", b"yes"))))

    builder = StreamsBuilder()
    builder.stream("in").process(Trace).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("k", "v", 1, (("trace", b"1"),))
        assert driver.create_output_topic("out").read_record().headers == (("trace", b"1"), ("seen", b"yes"))


def test_what_a_processor_forwards_goes_on_through_the_dsl_with_its_own_serde() -> None:
    class Parse(Processor):
        def process(self, record: Record) -> None:
            for word in record.value.split():
                self.context.forward(Record(word, len(word), record.timestamp))

    builder = StreamsBuilder()
    lengths = builder.stream("in").process(Parse, value=LONG).filter(lambda k, v: v > 1)
    lengths.group_by_key().reduce(lambda one, other: one + other, "sums").to_stream().to("out")
    with driver_of(builder.build()) as (driver, pipe):
        assert pipe("in", "k", "to be or not to be a", 1)[-1] == ("be", 4, 1)
        assert [tuple(row) for row in driver.state_store("sums").all()] == [("be", 4), ("not", 3), ("or", 2), ("to", 4)]


def test_a_failing_process_is_told_with_its_node_its_line_and_what_it_raised() -> None:
    topology = Topology().add_source("source", "in").add_processor("first", Pass, "source")
    topology.add_processor("second", Refuse, "first").add_sink("sink", "out", "second")
    sentence = (
        r"second \(written at test_processor_driver\.py line \d+\) failed .*routing\.py line \d+.*: ValueError: no"
    )
    with driver_of(topology) as (_, pipe), pytest.raises(StreamsError, match=sentence):
        pipe("in", "k", "v", 1)


def test_a_value_that_the_sink_cannot_write_is_told_with_the_serde() -> None:
    topology = Topology().add_source("source", "in").add_processor("first", Pass, "source")
    topology.add_sink("sink", "out", "first", value=Serdes.double())
    with driver_of(topology) as (_, pipe), pytest.raises(StreamsError, match=r"returned 'v', which Serdes\.double"):
        pipe("in", "k", "v", 1)


def test_a_store_is_written_out_beside_what_is_forwarded() -> None:
    builder = StreamsBuilder()
    builder.stream("in").process(lambda: Write("rows"), stores=[key_value()]).to("out")
    with TopologyTestDriver(builder.build(), "app") as driver:
        driver.create_input_topic("in").pipe_records([("a", "1", 1), ("b", "2", 2), ("a", None, 3)])
        assert [record[:3] for record in driver.create_output_topic("app-rows-changelog").read_records_to_list()] == [
            ("a", "1", 1),
            ("b", "2", 2),
            ("a", None, 3),
        ]
        assert driver.state_store("rows").all() == [("b", "2")]
