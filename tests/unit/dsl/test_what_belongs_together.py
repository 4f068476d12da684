"""Steps that cannot work together are told so: of two builders, with one topic for two, with other windows."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import (
    JoinWindows,
    KStream,
    Serdes,
    SessionWindows,
    StreamsBuilder,
    TimeWindows,
    TopologyError,
    TopologyTestDriver,
)
from streamskit.api.windows import AnyWindows

pytestmark = [pytest.mark.columns, pytest.mark.usefixtures("spark")]

Step = Callable[[StreamsBuilder], Any]

SAME_TOPIC: dict[str, tuple[Step, Step]] = {
    "a grouped table and a grouped stream": (
        lambda b: b.table("t").group_by(lambda k, v: (v, k), name="g").count("c1"),
        lambda b: b.stream("s").select_key(lambda v: v).group_by_key(name="g").count("c2"),
    ),
    "a stream and a grouped table": (
        lambda b: b.stream("s").repartition("g"),
        lambda b: b.table("t").group_by(lambda k, v: (v, k), name="g").count("c1"),
    ),
}


@pytest.mark.parametrize("steps", SAME_TOPIC)
def test_two_steps_with_one_repartition_topic_are_refused(steps: str) -> None:
    builder = StreamsBuilder()
    first, second = SAME_TOPIC[steps]
    first(builder)
    told = r"the topic 'g-repartition', .* the first is at \S+ line \d+, the second at \S+ line \d+\."
    with pytest.raises(TopologyError, match=told):
        second(builder)


def test_one_grouped_stream_or_table_shares_its_repartition_topic() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("s").select_key(lambda v: v).group_by_key(name="g")
    rows = builder.table("t").group_by(lambda k, v: (v, k), name="h")
    for each in (grouped, rows):
        each.count(f"count-{each is rows}")
        each.count(f"again-{each is rows}")
    topics = [sink.topic for sink in builder.build().sinks]
    assert topics == ["g-repartition", "h-repartition"]


TWO_BUILDERS: dict[str, Callable[[StreamsBuilder, StreamsBuilder], Any]] = {
    "a merge": lambda one, other: one.stream("a").merge(other.stream("b")),
    "a join of streams": lambda one, other: one.stream("a").join(
        other.stream("b"), lambda left, right: left, JoinWindows.of_time_difference_with_no_grace(5)
    ),
    "a join with a table": lambda one, other: one.stream("a").join(other.table("b"), lambda left, right: left),
    "a join with a global table": lambda one, other: one.stream("a").left_join(
        other.global_table("b"), lambda left, right: left, key_selector=lambda v: v
    ),
    "a join of tables": lambda one, other: one.table("a").outer_join(other.table("b"), lambda left, right: left),
    "a join by a foreign key": lambda one, other: one.table("a").join(
        other.table("b"), lambda left, right: left, foreign_key=lambda v: v
    ),
    "a cogroup": lambda one, other: (
        one.stream("a").group_by_key().cogroup(lambda k, v, total: total)
        .cogroup(other.stream("b").group_by_key(), lambda k, v, total: total)
    ),
}  # fmt: skip


@pytest.mark.parametrize("step", TWO_BUILDERS)
def test_what_another_builder_made_is_refused(step: str) -> None:
    with pytest.raises(TopologyError, match=r"at \S+ line \d+: \S+ belongs to another StreamsBuilder"):
        TWO_BUILDERS[step](StreamsBuilder(), StreamsBuilder())


FIVE, TEN = TimeWindows.of_size_with_no_grace(5), TimeWindows.of_size_with_no_grace(10)
SESSIONS = SessionWindows.of_inactivity_gap_with_no_grace(5)


def counted(stream: KStream, windows: AnyWindows, store: str) -> KStream:
    return stream.group_by_key().windowed_by(windows).count(store).to_stream()


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (FIVE, SESSIONS, "the keys here have windows of 5 ms, and those of the other stream sessions"),
        (SESSIONS, FIVE, "the keys here have sessions, and those of the other stream windows of 5 ms"),
        (FIVE, TEN, "the keys here have windows of 5 ms, and those of the other stream windows of 10 ms"),
    ],
)
def test_streams_of_different_windows_are_not_merged(one: AnyWindows, other: AnyWindows, told: str) -> None:
    stream = StreamsBuilder().stream("in")
    with pytest.raises(TopologyError, match=told):
        counted(stream, one, "one").merge(counted(stream, other, "other"))


def test_streams_of_the_same_windows_are_merged() -> None:
    stream = StreamsBuilder().stream("in")
    merged = counted(stream, FIVE, "one").merge(counted(stream, FIVE, "other"))
    assert merged._node.key == Serdes.time_windowed(Serdes.string(), 5)


@pytest.mark.spark
def test_a_table_s_timestamps_are_read_from_the_value_that_its_store_has() -> None:
    from streamskit import Materialized

    builder = StreamsBuilder()
    rows = Materialized("rows", value=Serdes.json("time long"))
    table = builder.table("t", materialized=rows, timestamps=lambda v: v.time)
    table.to_stream().map_values(lambda v: F.lit("seen")).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("t").pipe_input("k", {"time": 7}, 0)
        assert [each.timestamp for each in driver.create_output_topic("out").read_records_to_list()] == [7]
