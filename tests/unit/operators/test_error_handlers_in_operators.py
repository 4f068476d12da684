"""Records that Python operators, joiners, processors and punctuations fail on: in the test driver."""

import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import (
    JoinWindows,
    LogAndContinue,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    Serdes,
    StreamsBuilder,
    TopologyTestDriver,
)
from tests.unit.execution.test_error_handlers_in_columns import REFUSED, Picky
from tests.unit.operators.handlers_harness import DEAD_LETTERS, LONG, failure_of, seen, tell

pytestmark = pytest.mark.spark


class Doubtful(Processor):
    """Forwards each record before and after it looks at it; and once, at 200 ms, its clock breaks."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        context.schedule("100 ms", PunctuationType.STREAM_TIME, self.tick)

    def tick(self, timestamp: int) -> None:
        if timestamp == 200:
            raise OSError("the clock is broken")

    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(f"{record.value}?"))
        if record.value == "x":
            raise ValueError(f"{record.value} at {record.timestamp}")
        self.context.forward(record)


def doubted(builder: StreamsBuilder) -> None:
    builder.stream("in").process(Doubtful, name="doubt").to("out")


HEADERS = (("trace", b"t1"), ("span", b"s1"))
DOUBTED = ("in", [("a", "1", 100, HEADERS), ("b", "x", 150, HEADERS), ("a", "2", 200), ("c", "3", 210)])
FORWARDED = [("a", "1?"), ("a", "1"), ("b", "x?"), ("a", "2?"), ("a", "2"), ("c", "3?"), ("c", "3")]


def test_a_processor_that_fails_stops_the_query_with_its_line() -> None:
    said = failure_of(doubted, DOUBTED)
    assert said.startswith("doubt (written at test_error_handlers_in_operators.py line ")
    assert said.endswith('`raise ValueError(f"{record.value} at {record.timestamp}")`: ValueError: x at 150')


def test_what_a_processor_forwarded_before_it_failed_stays_and_its_clock_may_fail_too() -> None:
    found = seen(doubted, DOUBTED, processing_handler=DEAD_LETTERS)
    assert found.out["out"] == FORWARDED
    assert found.dropped == {"doubt": 2}
    record, tick = found.letters
    assert (record.key, record.value, record.timestamp) == (b"b", b"x", 150)
    assert (tick.key, tick.value, tick.timestamp) == (None, None, 200)
    place = {"topic": "in", "partition": "0", "offset": "1"}
    of_record, of_tick = found.letter_headers
    assert of_record == {
        "trace": "t1", "span": "s1", "exception": "ValueError", "message": "x at 150", **place,
    }  # fmt: skip
    nowhere = {"topic": "", "partition": "-1", "offset": "-1"}
    assert of_tick == {"exception": "OSError", "message": "the clock is broken", **nowhere}
    for trace, raised in zip(found.stack_traces, ("ValueError: x at 150", "OSError: the clock is broken"), strict=True):
        assert trace.startswith("Traceback (most recent call last):")
        assert trace.endswith(raised)
        assert Path(__file__).name in trace


def test_no_handler_decides_about_a_processor_that_ends_its_process() -> None:
    class Ends(Processor):
        def process(self, record: Record) -> None:
            sys.exit("enough")

    def ending(builder: StreamsBuilder) -> None:
        builder.stream("in").process(Ends, name="ends").to("out")

    said = failure_of(ending, ("in", [("a", "1", 100)]), processing_handler=LogAndContinue())
    assert said.startswith("ends (written at test_error_handlers_in_operators.py line ")
    assert said.endswith('`sys.exit("enough")`: SystemExit: enough')


def test_a_handler_of_ones_own_sees_a_processors_record_as_python_values() -> None:
    found = seen(doubted, DOUBTED, processing_handler=tell)
    assert found.out["out"] == FORWARDED
    assert [letter.value.decode() for letter in found.letters] == [
        "doubt in-0@1, 150 ms: Record 'x': x at 150",
        "doubt None--1@-1, 200 ms: NoneType None: the clock is broken",
    ]


def test_a_handler_that_only_goes_on_counts_what_a_processor_failed_on() -> None:
    found = seen(doubted, DOUBTED, processing_handler=LogAndContinue())
    assert (found.out["out"], found.dropped, found.letters) == (FORWARDED, {"doubt": 2}, [])


def careful(total: int, value: int) -> int:
    return total + 12 // value


def folded(builder: StreamsBuilder) -> None:
    totals = builder.stream("in", value=LONG).group_by_key().reduce(careful, "totals")
    totals.to_stream().map_values(lambda v: F.lit(100) / (v - 13)).to("out")


def test_a_reducer_that_fails_leaves_the_table_as_it_was_and_steps_after_it_may_fail_too() -> None:
    records = [("a", 1), ("a", 0), ("b", 5), ("a", 1), ("a", 2)]  # the totals are 1, 5, 13 and 19
    found = seen(folded, ("in", records), processing_handler=DEAD_LETTERS)
    assert [key for key, _ in found.out["out"]] == ["a", "b", "a"]
    assert [round(value, 2) for _, value in found.out["out"]] == [-8.33, -12.5, 16.67]
    assert found.dropped == {"KSTREAM-REDUCE-0000000001": 1, "KSTREAM-MAPVALUES-0000000003": 1}
    failed = {headers["offset"]: headers["exception"] for headers in found.letter_headers}
    assert failed == {"1": "ZeroDivisionError", "3": "org.apache.spark.SparkArithmeticException"}
    assert {LONG.deserialize(letter.value) for letter in found.letters} == {0, 1}  # the source records


def joined(builder: StreamsBuilder) -> None:
    """A ratio of text to text in each kind of join, and whether each of two tables has a number."""
    left, rates = builder.stream("in"), builder.table("rates")
    ratio = lambda one, other: one.cast("long") / other.cast("long")  # noqa: E731
    left.join(rates, ratio).to("by-table")
    second = JoinWindows.of_time_difference_with_no_grace("1 second")
    left.join(builder.stream("right"), ratio, second).to("by-stream")
    both = builder.table("more").outer_join(rates, lambda one, other: F.coalesce(one, other).cast("long"))
    both.to_stream().to("by-tables")


def test_a_joiner_that_fails_costs_its_result_and_the_dead_letter_is_the_record_in_hand() -> None:
    found = seen(
        joined,
        ("rates", [("a", "1"), ("b", "0"), ("c", "x"), ("d", "1"), ("d", None)]),
        ("right", [("a", "2")]),
        ("in", [("a", "4"), ("b", "5"), ("c", "6"), ("a", "y")]),
        ("more", [("c", "7")]),
        topics=("by-table", "by-stream", "by-tables"),
        processing_handler=DEAD_LETTERS,
    )
    assert found.out["by-table"] == [("a", 4.0)]
    assert found.out["by-stream"] == [("a", 2.0)]
    # Nobody asks what the joiner made of the row of "c" before.
    assert found.out["by-tables"] == [("a", 1), ("b", 0), ("d", 1), ("d", None), ("c", 7)]
    letters = [(letter.key, letter.value) for letter in found.letters]
    places = [f"{headers['topic']}@{headers['offset']}" for headers in found.letter_headers]
    assert sorted(zip(places, letters, strict=True)) == [
        ("in@1", (b"b", b"5")),
        ("in@2", (b"c", b"6")),
        ("in@3", (b"a", b"y")),
        ("in@3", (b"a", b"y")),  # once for the table and once for the stream
        ("rates@2", (b"c", b"x")),
    ]
    assert sum(found.dropped.values()) == 5


def test_a_handler_of_ones_own_is_given_the_left_record_of_a_join_whose_joiner_fails() -> None:
    def program(builder: StreamsBuilder) -> None:
        rates = builder.table("rates", value=LONG)
        builder.stream("in", value=LONG).join(rates, lambda one, other: one / other).to("out")

    found = seen(program, ("rates", [("a", 0)]), ("in", [("a", 7)]), value=LONG, processing_handler=tell)
    (letter,) = found.letters
    assert (letter.value or b"").startswith(b"KSTREAM-JOIN-0000000004 in-0@0, 0 ms: Record 7: SparkArithmeticException")


class Through(Processor):
    def process(self, record: Record) -> None:
        self.context.forward(record)


def served(builder: StreamsBuilder) -> None:
    processed = builder.stream("in").process(Through, name="through")
    processed.to("out", value=Picky(), name="serve")
    processed.map_values(lambda v: F.repeat(v, F.lit(150_000))).to("in-bulk", name="deliver")


@pytest.mark.parametrize("handler", [DEAD_LETTERS, tell], ids=["dead letters", "custom"])
def test_what_a_processor_forwards_and_cannot_be_written_is_told_with_its_source(handler: Any) -> None:
    records = ("in", [("a", "wine", 1), ("b", "poison", 2), ("c", "a cup of water", 3)])
    found = seen(served, records, topics=("out", "in-bulk"), production_handler=handler)
    assert found.out["out"] == [("a", "wine"), ("c", "a cup of water")]
    assert [(key, len(value)) for key, value in found.out["in-bulk"]] == [("a", 600_000), ("b", 900_000)]
    assert found.dropped == {"serve": 1, "deliver": 1}
    if handler is DEAD_LETTERS:
        assert [(letter.key, letter.value, letter.timestamp) for letter in found.letters] == [
            (b"b", b"poison", 2), (b"c", b"a cup of water", 3),
        ]  # fmt: skip
        assert [headers["exception"] for headers in found.letter_headers] == [
            "streamskit.serdes.serde.SerdeError",
            "org.apache.kafka.common.errors.RecordTooLargeException",
        ]
        assert [headers["offset"] for headers in found.letter_headers] == ["1", "2"]
    else:
        poison, large = [letter.value.decode() for letter in found.letters]
        assert poison == f"serve in-0@1, 2 ms: ProducerRecord 'poison': {REFUSED}"
        assert large.startswith(
            "deliver in-0@2, 3 ms: ProducerRecord b'a cup of watera cup of watera cup of w: RecordTooLarge"
        )


class Unhelpful(Processor):
    def process(self, record: Record) -> None:
        raise ValueError("no")


def test_a_handler_that_fails_in_a_task_is_told_of_with_the_node_it_was_asked_about() -> None:
    def careless(context: Any, record: Any, exception: Exception) -> Any:
        return context["topic"]

    said = failure_of(
        lambda b: b.stream("in").process(Unhelpful, name="sulk").process(Through, name="next").to("out"),
        ("in", [("a", "1")]),
        processing_handler=careless,
    )
    assert said.startswith("sulk (written at test_error_handlers_in_operators.py line ")
    assert "the error handler itself raised TypeError: " in said
    assert said.endswith("It was asked about: ValueError: no")


def test_unreadable_records_never_reach_a_task() -> None:
    def program(builder: StreamsBuilder) -> None:
        builder.stream("in", value=Serdes.integer()).process(Through, name="through").to("out")

    records = [("a", Serdes.integer().serialize(1)), ("b", b"xy"), ("c", Serdes.integer().serialize(3))]
    found = seen(program, ("in", records), value=Serdes.byte_array(), deserialization_handler=tell)
    assert found.out["out"] == [("a", 1), ("c", 3)]
    assert found.dropped == {"KSTREAM-SOURCE-0000000000": 1}
    assert [letter.key for letter in found.letters] == [b"b"]


class Same(Processor):
    """Passes records on."""

    def process(self, record: Record) -> None:
        self.context.forward(record)


def test_an_aggregation_of_sparks_own_beside_a_processor_gets_the_records_of_their_source() -> None:
    builder = StreamsBuilder()
    lines = builder.stream("in")
    lines.group_by_key().count("counts")
    lines.process(Same).to("out")
    with TopologyTestDriver(builder.build(), processing_handler=LogAndContinue("dead")) as driver:
        driver.create_input_topic("in").pipe_records([("a", "x"), ("a", "y")])
        assert dict(driver.state_store("counts").all()) == {"a": 2}
