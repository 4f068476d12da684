"""Rules of tables that no recorded vector shows: old values, times and retention of rows that joins look up."""

from collections.abc import Callable

import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit import (
    EmitStrategy,
    JoinWindows,
    KTable,
    Materialized,
    Serdes,
    StreamsBuilder,
    Suppressed,
    TimestampExtractor,
    TimeWindows,
    TopologyTestDriver,
)
from tests.unit.testing.test_topology_test_driver import driver_of, run

pytestmark = pytest.mark.spark


def both(left: Column, right: Column) -> Column:
    return F.concat_ws("+", F.coalesce(left, F.lit("null")), F.coalesce(right, F.lit("null")))


# ---- old values ------------------------------------------------------------------------------------------------------


def test_an_average_is_joined_without_a_look_at_the_initial_aggregate() -> None:
    def write(builder: StreamsBuilder) -> None:
        sums = builder.stream("in", value=Serdes.long()).group_by_key().aggregate(
            lambda: {"sum": 0, "n": 0},
            lambda key, value, total: {"sum": total["sum"] + value, "n": total["n"] + 1},
            value=Serdes.json("sum long, n long"),
        )  # fmt: skip
        averages = sums.map_values(lambda v: (v.sum / v.n).cast("string"))
        averages.join(builder.table("names"), both).to_stream().to("out")

    made = run(write, {"names": [("a", "Ann", 1)], "in": [("a", 3, 2), ("a", 4, 3)]})
    assert made == [("a", "3.0+Ann", 2), ("a", "3.5+Ann", 3)]


def test_a_materialized_step_takes_the_old_value_of_a_row_from_its_own_store() -> None:
    def write(builder: StreamsBuilder) -> None:
        numbers = builder.stream("in").group_by_key().aggregate(lambda: 0, lambda k, v, n: n + 1, value=Serdes.long())
        twice = numbers.map_values(lambda v: v * 2, "twice")
        twice.group_by(lambda k, v: (F.lit("all"), v)).count().to_stream().to("out")

    made = run(write, {"in": [("a", "x", 1), ("b", "y", 2), ("a", "z", 3)]})
    assert made == [("all", 1, 1), ("all", 2, 2), ("all", 2, 3)]


def test_a_filter_that_an_outer_join_asks_for_old_values_is_silent_on_rows_that_never_passed() -> None:
    def write(builder: StreamsBuilder) -> None:
        high = (
            builder.table("right", value=Serdes.long()).filter(lambda v: v > 10).map_values(lambda v: v.cast("string"))
        )
        builder.table("left").outer_join(high, both).to_stream().to("out")

    with driver_of(write) as driver:
        driver.create_input_topic("left").pipe_input("k", "l", 1)
        for timestamp, value in enumerate((5, 11, 6, 7), 2):
            driver.create_input_topic("right").pipe_input("k", value, timestamp)
        made = driver.create_output_topic("out").read_records_to_list()
    assert [row[1:3] for row in made] == [("l+null", 1), ("l+11", 3), ("l+null", 4)]


# ---- rows that a join looks up ---------------------------------------------------------------------------------------


def test_a_row_joined_of_two_is_as_old_as_the_one_that_is_left_of_them() -> None:
    def write(builder: StreamsBuilder) -> None:
        two = builder.table("one").outer_join(builder.table("two"), both)
        two.outer_join(builder.table("three"), both).to_stream().to("out")

    with driver_of(write) as driver:
        for topic, value, timestamp in (("one", "x", 10), ("two", "y", 5), ("one", None, 50), ("three", "z", 7)):
            driver.create_input_topic(topic).pipe_input("k", value, timestamp)
        made = driver.create_output_topic("out").read_records_to_list()
    assert [row[1:3] for row in made] == [
        ("x+null+null", 10),
        ("x+y+null", 10),
        ("null+y+null", 50),
        ("null+y+z", 7),
    ]


def test_a_join_looks_no_further_back_than_the_retention_of_a_windowed_table() -> None:
    def write(builder: StreamsBuilder) -> None:
        windows = TimeWindows.of_size_and_grace("10 ms", "90 ms")
        left, right = (
            builder.stream(topic)
            .group_by_key()
            .windowed_by(windows)
            .count(Materialized(f"{topic}-counts", retention="100 ms"))
            for topic in ("left", "right")
        )
        left.join(right, lambda one, other: one + other).to_stream(lambda k, v: k.start.cast("string")).to("out")

    with driver_of(write) as driver:
        for topic, timestamp in (("right", 0), ("left", 1), ("right", 100), ("left", 2), ("left", 101)):
            driver.create_input_topic(topic).pipe_input("k", "v", timestamp)
        made = driver.create_output_topic("out").read_records_to_list()
    assert [row[:3] for row in made] == [("0", 2, 1), ("100", 2, 101)]


# ---- drops -----------------------------------------------------------------------------------------------------------


def test_a_table_behind_a_partition_time_extractor_counts_only_its_own_rows_as_dropped() -> None:
    def write(builder: StreamsBuilder) -> None:
        timed = builder.table("in", timestamps=TimestampExtractor.use_partition_time_on_invalid())
        builder.stream("other").join(timed, both).to("out")

    with driver_of(write) as driver:
        driver.create_input_topic("in").pipe_input("k", "row", 1)
        driver.create_input_topic("other").pipe_input("k", "v", 2)
        assert driver.dropped() == 0
        driver.create_input_topic("in").pipe_input(None, "row", 3)
        assert driver.dropped() == 1


def test_a_stream_made_of_a_table_finds_its_own_update_there() -> None:
    builder = StreamsBuilder()
    table = builder.table("in")
    table.to_stream().left_join(table, lambda v, row: F.concat(v, F.lit("+"), F.coalesce(row, F.lit("none")))).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_records([("a", "1"), ("a", "2"), ("b", "3")])
        assert [record.value for record in driver.create_output_topic("out").read_records_to_list()] == [
            "1+1",
            "2+2",
            "3+3",
        ]


def test_a_stream_join_takes_only_what_is_later_by_as_much_as_a_negative_reach_says() -> None:
    builder = StreamsBuilder()
    windows = JoinWindows.of_time_difference_with_no_grace("100 ms").before("-30 ms")
    builder.stream("left").join(builder.stream("right"), lambda one, other: F.concat(one, other), windows).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("left").pipe_input("k", "l", 1000)
        driver.create_input_topic("right").pipe_records([("k", str(at), 1000 + at) for at in (-5, 0, 29, 30, 100, 101)])
        assert [record.value for record in driver.create_output_topic("out").read_records_to_list()] == ["l30", "l100"]


@pytest.mark.parametrize("kind", ["join", "left_join", "outer_join"])
def test_a_join_of_streams_may_name_its_stores(kind: str) -> None:
    builder = StreamsBuilder()
    windows = JoinWindows.of_time_difference_with_no_grace("100 ms")
    getattr(builder.stream("left"), kind)(builder.stream("right"), both, windows, store_name="kept").to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("left").pipe_input("k", "l", 1000)
        driver.create_input_topic("right").pipe_input("k", "r", 1001)
        assert [record.value for record in driver.create_output_topic("out").read_records_to_list()] == ["l+r"]


def test_an_update_that_changes_a_row_of_both_tables_is_joined_twice_and_never_with_what_was_there_before() -> None:
    builder = StreamsBuilder()
    table = builder.table("in")
    table.join(table.map_values(lambda v: F.concat(F.lit("m"), v)), both).to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_records([("a", "1"), ("a", "2"), ("a", None), ("a", "3")])
        made = [record.value for record in driver.create_output_topic("out").read_records_to_list()]
    assert made == ["1+m1", "1+m1", "2+m2", "2+m2", "3+m3", "3+m3"]  # and none for the row that is deleted, in both


# ---- windows that close ----------------------------------------------------------------------------------------------


def test_what_is_joined_of_windows_of_different_grace_waits_for_the_longest() -> None:
    def write(builder: StreamsBuilder) -> None:
        short, long = (
            builder.stream(name).group_by_key().windowed_by(TimeWindows.of_size_and_grace(10, grace)).count()
            for name, grace in (("short", 0), ("long", 40))
        )
        closed = short.join(long, lambda a, b: a * 100 + b).suppress(Suppressed.until_window_closes())
        closed.to_stream().select_key(lambda k, v: k.start.cast("string")).to("out")

    with driver_of(write) as driver:
        made = []
        for key, timestamp in (("k", 1), ("z", 20), ("z", 60)):
            for topic in ("short", "long"):
                driver.create_input_topic(topic).pipe_input(key, "v", timestamp)
            made.append([row[:3] for row in driver.create_output_topic("out").read_records_to_list()])
    assert made == [[], [], [("0", 101, 1)]]


def test_a_join_finds_the_rows_of_windows_that_go_out_on_close_before_they_do() -> None:
    def write(builder: StreamsBuilder) -> None:
        windows = TimeWindows.of_size_and_grace(10, 5)
        closing = builder.stream("closing").group_by_key().windowed_by(windows)
        once = closing.emit_strategy(EmitStrategy.on_window_close()).count().map_values(lambda n: n * 10)
        counts = builder.stream("in").group_by_key().windowed_by(windows).count()
        joined = counts.left_join(once, lambda n, m: n + F.coalesce(m, F.lit(0).cast("long")))
        joined.to_stream().select_key(lambda k, v: k.start.cast("string")).to("out")

    with driver_of(write) as driver:
        for topic, timestamp in (("closing", 1), ("closing", 2), ("in", 3), ("closing", 15)):
            driver.create_input_topic(topic).pipe_input("k", "v", timestamp)
        made = driver.create_output_topic("out").read_records_to_list()
    assert [row[:3] for row in made] == [("0", 21, 3), ("0", 21, 3)]


# ---- old values that are others than the rows before -----------------------------------------------------------------


def test_a_foreign_key_join_takes_a_new_count_out_of_the_place_of_the_initial_one() -> None:
    def write(builder: StreamsBuilder) -> None:
        counts = builder.stream("in").group_by_key().aggregate(lambda: 0, lambda k, v, n: n + 1, value=Serdes.long())
        joined = counts.join(
            builder.table("names"),
            lambda number, name: F.concat(number.cast("string"), name),
            foreign_key=lambda number: F.when(number % 2 == 0, F.lit("even")).otherwise(F.lit("odd")),
        )
        joined.to_stream().to("out")

    with driver_of(write) as driver:
        driver.create_input_topic("in").pipe_input("a", "x", 1)
        driver.create_input_topic("names").pipe_input("odd", "!", 2)
        driver.create_input_topic("in").pipe_input("a", "x", 3)
        made = driver.create_output_topic("out").read_records_to_list()
    assert [row[:3] for row in made] == [("a", None, 1), ("a", "1!", 2), ("a", None, 3)]


def test_a_row_that_leaves_without_a_foreign_key_is_dropped_from_an_inner_join() -> None:
    def write(builder: StreamsBuilder) -> None:
        keys = builder.table("rows").join(
            builder.table("names"), both, foreign_key=lambda v: F.when(v != "none", F.lit("n"))
        )
        keys.to_stream().to("out")

    with driver_of(write) as driver:
        dropped = []
        for timestamp, value in enumerate(("none", "n", "none", "none", None)):
            driver.create_input_topic("rows").pipe_input("a", value, timestamp)
            dropped.append(driver.dropped())
        made = driver.create_output_topic("out").read_records_to_list()
    assert dropped == [1, 1, 1, 2, 3]
    assert [row[:3] for row in made] == [("a", None, 2)]


# ---- versions --------------------------------------------------------------------------------------------------------


def test_a_join_in_a_store_of_versions_tells_the_old_values_that_it_joined() -> None:
    def write(builder: StreamsBuilder) -> None:
        joined = builder.table("one").outer_join(
            builder.table("two"), both, materialized=Materialized.versioned("joined", 20)
        )
        joined.to_stream().to("out")
        every = joined.group_by(lambda k, v: (F.lit("all"), v)).aggregate(
            lambda: "",
            lambda k, v, text: f"{text}{v};",
            lambda k, v, text: text.replace(f"{v};", ""),
            value=Serdes.string(),
        )
        every.to_stream().to("all")

    with driver_of(write) as driver:
        given = (("two", "3", 20), ("one", "3", 30), ("one", "4", 5), ("one", None, 50))
        for topic, value, timestamp in given:
            driver.create_input_topic(topic).pipe_input("k", value, timestamp)
        made = driver.create_output_topic("out").read_records_to_list()
        folded = driver.create_output_topic("all").read_records_to_list()
    assert [row[1:3] for row in made] == [("null+3", 20), ("3+3", 30), ("4+3", 20), ("null+3", 50)]
    # The row that came too late is in no group, and is what the next update takes out.
    assert [row[1:3] for row in folded] == [("null+3;", 20), ("3+3;", 30), ("3+3;null+3;", 50)]


def test_a_deletion_at_the_time_of_the_only_version_leaves_no_trace() -> None:
    def write(builder: StreamsBuilder) -> None:
        texts = builder.stream("in").group_by_key().aggregate(
            lambda: "",
            lambda k, v, text: None if v == "x" else text + v,
            Materialized.versioned("texts", 15),
            value=Serdes.string(),
        )  # fmt: skip
        texts.to_stream().to("out")

    given = [("a", "5", 78), ("a", "x", 67), ("a", "1", 72), ("a", "5", 90)]
    assert run(write, {"in": given}) == [("a", "5", 78), ("a", None, 78), ("a", "1", 72), ("a", "15", 90)]


# ---- a table joined with what was made of it -------------------------------------------------------------------------


def joined_with_itself(write: Callable[[KTable], KTable], *values: str) -> list[tuple[str, int]]:
    builder = StreamsBuilder()
    write(builder.table("in", materialized="rows")).to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        for timestamp, value in enumerate(values):
            driver.create_input_topic("in").pipe_input("k", value, timestamp)
        return [made[1:3] for made in driver.create_output_topic("out").read_records_to_list()]


def test_a_join_with_a_filter_in_a_store_finds_the_row_of_the_same_update() -> None:
    def write(table: KTable) -> KTable:
        return table.outer_join(table.filter(lambda v: v < "6", "small"), both)

    made = joined_with_itself(write, "8", "7", "4", "8")
    assert made == [("8+null", 0), ("7+null", 1), ("4+4", 2), ("4+4", 2), ("8+null", 3), ("8+null", 3)]


def test_a_join_finds_the_row_before_in_a_store_that_an_update_has_not_reached() -> None:
    def write(table: KTable) -> KTable:
        marked = table.map_values(lambda v: F.concat(v, F.lit("!")))
        return marked.left_join(table.filter(lambda v: v < "6", "small"), both)

    made = joined_with_itself(write, "8", "5", "4")
    assert made == [("8!+null", 0), ("5!+null", 1), ("5!+5", 1), ("4!+5", 2), ("4!+4", 2)]


def test_a_join_after_a_cogroup_hears_of_a_row_whose_first_aggregate_was_none() -> None:
    def write(builder: StreamsBuilder) -> None:
        grouped = builder.stream("in").group_by_key().cogroup(lambda k, v, text: None if v == "x" else text + v)
        texts = grouped.aggregate(lambda: "", value=Serdes.string())
        texts.left_join(builder.table("names"), both).to_stream().to("out")

    assert run(write, {"in": [("a", "x", 1), ("a", "y", 2)]}) == [("a", None, 1), ("a", "y+null", 2)]
