"""Many records in one micro-batch: what came of each is told as if it had come alone."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import (
    JoinWindows,
    KeyValue,
    LogAndContinue,
    Processor,
    PunctuationType,
    Record,
    Serdes,
    StreamsBuilder,
    StreamsError,
    TimestampExtractor,
    TimeWindows,
    TopologyTestDriver,
)
from streamskit.testing.turns import CannotTakeTurnsError, PipedRecord, TurnsTestDriver

pytestmark = pytest.mark.spark

LONG = Serdes.long()
Write = Callable[[StreamsBuilder], None]
Told = tuple[list[tuple[Any, Any, int]], int]
"""The records that came out because of one, and how many were dropped."""

RECORDS: list[tuple[str, PipedRecord]] = [
    ("left", ("ada", 5, 1_000, ())),
    ("right", ("ada", 7, 2_000, (("from", b"right"),))),
    ("left", (None, 1, 3_000, ())),
    ("right", ("bob", 2, 500, ())),
    ("left", ("bob", 4, 70_000, ())),
    ("right", ("ada", None, 71_000, ())),
    ("right", (None, 3, 72_000, ())),
    ("left", ("ada", 6, 4_000, ())),
    ("left", ("bob", 3, 140_000, ())),
]
"""Of two topics, out of order, without a key, without a value, and late."""


def built(write: Write) -> Any:
    builder = StreamsBuilder()
    write(builder)
    return builder.build()


def one_by_one(write: Write, **settings: Any) -> list[Told]:
    found: list[Told] = []
    with TopologyTestDriver(built(write), **settings) as driver:
        out = driver.create_output_topic("out")
        for topic, record in RECORDS:
            before = driver.dropped()
            driver.create_input_topic(topic).pipe_input(*record)
            found.append(([made[:3] for made in out.read_records_to_list()], driver.dropped() - before))
    return found


def in_turn(write: Write, **settings: Any) -> list[Told]:
    with TurnsTestDriver(built(write), **settings) as driver:
        out = driver.create_output_topic("out")
        records = [(driver.create_input_topic(topic), record) for topic, record in RECORDS]
        return [([made[:3] for made in out.read_records_to_list()], lost) for lost in driver.pipe_in_turn(records)]


def two_streams(builder: StreamsBuilder) -> tuple[Any, Any]:
    return builder.stream("left", value=LONG), builder.stream("right", value=LONG)


def stateless(builder: StreamsBuilder) -> None:
    left, right = two_streams(builder)
    left.merge(right).flat_map_values(lambda v: F.array(v, v + 1)).filter(lambda v: v % 2 == 0).to("out")


def a_reducer(builder: StreamsBuilder) -> None:
    left, right = two_streams(builder)
    left.merge(right).group_by_key().reduce(lambda total, new: total + new).to_stream().to("out")


def a_count_that_spark_makes_elsewhere(builder: StreamsBuilder) -> None:
    left, right = two_streams(builder)
    right.to("other")
    left.group_by_key().count().to_stream().to("out")


def windows_with_late_records(builder: StreamsBuilder) -> None:
    left, right = two_streams(builder)
    windows = TimeWindows.of_size_and_grace("1 minute", "5 seconds")
    counts = left.merge(right).group_by_key().windowed_by(windows).count()
    counts.to_stream().map(lambda k, v: (k["key"], v)).to("out", value=LONG)


def a_join_of_streams(builder: StreamsBuilder) -> None:
    left, right = two_streams(builder)
    windows = JoinWindows.of_time_difference_with_no_grace("10 seconds")
    left.left_join(right, lambda one, two: one + F.coalesce(two, F.lit(0)), windows).to("out")


def a_join_with_a_table(builder: StreamsBuilder) -> None:
    left = builder.stream("left", value=LONG)
    left.join(builder.table("right", value=LONG), lambda one, two: one * two).to("out")


def two_sub_topologies(builder: StreamsBuilder) -> None:
    left, right = two_streams(builder)
    right.to("other")
    by_value = left.flat_map_values(lambda v: F.array(v, v + 1)).group_by(lambda k, v: (v % 2).cast("string"))
    by_value.reduce(lambda total, new: total + new).to_stream().to("out")


def a_global_table(builder: StreamsBuilder) -> None:
    left, right = builder.stream("left", value=LONG), builder.global_table("right", value=LONG)
    left.left_join(right, lambda one, two: one + F.coalesce(two, F.lit(0)), key_selector=lambda k, v: k).to("out")


def a_table_and_a_stream_with_another_key(builder: StreamsBuilder) -> None:
    left = builder.stream("left", value=LONG).select_key(lambda k, v: F.coalesce(k, F.lit("bob")))
    left.join(builder.table("right", value=LONG), lambda one, two: one * two).to("out")


class Late(Processor):
    """Passes a record on ten seconds of stream time later."""

    def init(self, context: Any) -> None:
        self.context, self.kept = context, list[Record]()
        context.schedule("10 seconds", PunctuationType.STREAM_TIME, self.release)

    def process(self, record: Record) -> None:
        self.kept.append(record)

    def release(self, time: int) -> None:
        for record in self.kept:
            self.context.forward(record)
        self.kept = []


def a_processor_that_punctuates(builder: StreamsBuilder) -> None:
    left, right = two_streams(builder)
    left.merge(right).process(Late, value=LONG).to("out")


@pytest.mark.parametrize(
    "write",
    [
        stateless,
        a_reducer,
        a_count_that_spark_makes_elsewhere,
        windows_with_late_records,
        a_join_of_streams,
        a_join_with_a_table,
        two_sub_topologies,
        a_global_table,
        a_table_and_a_stream_with_another_key,
        a_processor_that_punctuates,
    ],
)
def test_what_comes_of_each_record_is_what_comes_of_it_alone(write: Write) -> None:
    told = in_turn(write)
    assert told == one_by_one(write)
    assert sum(len(made) for made, _ in told) > 1


def test_a_record_cache_is_emptied_after_each_record() -> None:
    assert in_turn(windows_with_late_records, cache=True) == one_by_one(windows_with_late_records, cache=True)


def test_state_goes_on_from_one_micro_batch_to_the_next_and_into_the_store() -> None:
    builder = StreamsBuilder()
    builder.stream("left", value=LONG).group_by_key().reduce(lambda total, new: total + new, "totals")
    with TurnsTestDriver(builder.build()) as driver:
        left = driver.create_input_topic("left")
        for values in ([1, 2], [3, 4]):
            assert list(driver.pipe_in_turn([(left, ("ada", value, 0, ())) for value in values])) == [0, 0]
        assert [*driver.state_store("totals").all()] == [KeyValue("ada", 10)]
        assert list(driver.pipe_in_turn([])) == []


def with_columns_that_spark_folds(builder: StreamsBuilder) -> None:
    left, _ = two_streams(builder)
    left.group_by_key().aggregate(lambda v: F.sum(v)).to_stream().to("out")


def with_side_effects(builder: StreamsBuilder) -> None:
    left, _ = two_streams(builder)
    left.foreach(print)
    left.to("out")


def with_records_without_a_time(builder: StreamsBuilder) -> None:
    skipping = TimestampExtractor.of(lambda v: F.when(v > 4, v), invalid="skip")
    builder.stream("left", value=LONG, timestamps=skipping).to("out")


def with_two_topics_in_between(builder: StreamsBuilder) -> None:
    left, right = two_streams(builder)
    left, right = (each.select_key(lambda k, v: v.cast("string")) for each in (left, right))
    left.join(right, lambda one, two: one + two, JoinWindows.of_time_difference_with_no_grace("1 second")).to("out")


@pytest.mark.parametrize(
    ("write", "why"),
    [
        (with_columns_that_spark_folds, "fold the updates"),
        (with_side_effects, "another order"),
        (with_records_without_a_time, "nothing says which"),
        (with_two_topics_in_between, "more than one topic"),
    ],
)
def test_a_program_whose_results_cannot_be_told_apart_is_refused_with_the_reason(write: Write, why: str) -> None:
    with pytest.raises(CannotTakeTurnsError, match=f"{why}.*one by one"):
        TurnsTestDriver(built(write))


def test_a_setting_that_makes_each_record_matter_is_refused_with_the_reason() -> None:
    with pytest.raises(CannotTakeTurnsError, match="record cache"):
        TurnsTestDriver(built(two_sub_topologies), cache=True)
    with pytest.raises(CannotTakeTurnsError, match="cannot be read"):
        TurnsTestDriver(built(a_reducer), deserialization_handler=LogAndContinue())


def test_a_record_that_fails_is_told_as_it_is_of_one_alone() -> None:
    def write(builder: StreamsBuilder) -> None:
        builder.stream("left", value=LONG).group_by_key().reduce(lambda total, new: total // (new - 4)).to_stream().to(
            "out"
        )

    with TurnsTestDriver(built(write)) as driver:
        left = driver.create_input_topic("left")
        with pytest.raises(StreamsError, match="ZeroDivisionError"):
            list(driver.pipe_in_turn([(left, ("ada", value, 0, ())) for value in (5, 4)]))
