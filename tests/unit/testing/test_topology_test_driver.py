"""The TopologyTestDriver, on programs that no recorded vector has."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import (
    BufferConfig,
    Materialized,
    Serdes,
    StreamsBuilder,
    StreamsError,
    Suppressed,
    TimeWindows,
    TopologyError,
    TopologyTestDriver,
)

pytestmark = pytest.mark.spark

Write = Callable[[StreamsBuilder], None]
Piped = list[tuple[Any, ...]]


def driver_of(write: Write, **options: Any) -> TopologyTestDriver:
    builder = StreamsBuilder()
    write(builder)
    return TopologyTestDriver(builder.build(), **options)


def run(write: Write, records: dict[str, Piped], out: str = "out", **options: Any) -> list[tuple[Any, Any, int]]:
    with driver_of(write, **options) as driver:
        for topic, piped in records.items():
            for record in piped:
                driver.create_input_topic(topic).pipe_input(*record)
        return [made[:3] for made in driver.create_output_topic(out).read_records_to_list()]


def test_streams_of_different_types_are_merged_without_state() -> None:
    def write(builder: StreamsBuilder) -> None:
        numbers = builder.stream("numbers", value=Serdes.long()).map_values(lambda v: v.cast("string"))
        numbers.merge(builder.stream("words")).flat_map_values(lambda v: F.split(v, " ")).to("out")

    made = run(write, {"numbers": [("k", 5, 1)], "words": [("k", "x y", 2)]})
    assert made == [("k", "5", 1), ("k", "x", 2), ("k", "y", 2)]


def test_steps_that_write_one_topic_do_so_in_the_order_of_the_program() -> None:
    called: list[str] = []

    def write(builder: StreamsBuilder) -> None:
        words = builder.stream("in")
        words.foreach(lambda k, v: called.append("first"))
        words.map_values(lambda v: F.concat(F.lit("before "), v)).to("out")
        counts = words.group_by_key().count().to_stream()
        counts.map_values(lambda v: F.concat(F.lit("count "), v.cast("string"))).to("out")
        counts.foreach(lambda k, v: called.append("second"))
        words.map_values(lambda v: F.concat(F.lit("after "), v)).to("out")

    made = run(write, {"in": [("k", "a", 1), ("k", "b", 2)]})
    assert [value for _, value, _ in made] == ["before a", "count 1", "after a", "before b", "count 2", "after b"]
    assert called == ["first", "second"] * 2


@pytest.mark.parametrize("cache", [False, True])
def test_an_aggregate_that_nothing_reads_counts_what_it_leaves_out(cache: bool) -> None:
    def write(builder: StreamsBuilder) -> None:
        grouped = builder.stream("in").group_by_key()
        grouped.count()
        grouped.windowed_by(TimeWindows.of_size_with_no_grace(10)).count()
        grouped.aggregate(lambda v: F.max(v))
        grouped.reduce(lambda one, other: other)

    with driver_of(write, cache=cache) as driver:
        driver.create_input_topic("in").pipe_records([("k", "a", 1), (None, "b", 2)])
        assert sorted(driver.metrics().values()) == [1, 1, 1, 1]


def test_a_flat_map_on_one_branch_leaves_the_others_alone() -> None:
    def write(builder: StreamsBuilder) -> None:
        lines = builder.stream("lines")
        lines.flat_map_values(lambda v: F.split(v, " ")).filter(lambda v: v != "a").to("out")
        lines.to("copy")

    with driver_of(write) as driver:
        driver.create_input_topic("lines").pipe_input("k", "a b c", 7)
        words = driver.create_output_topic("out").read_records_to_list()
        assert [(word.value, word.timestamp) for word in words] == [("b", 7), ("c", 7)]
        assert driver.create_output_topic("copy").read_record().value == "a b c"


def test_words_are_counted_natively_beside_a_branch_without_state() -> None:
    def write(builder: StreamsBuilder) -> None:
        lines = builder.stream("lines")
        lines.to("copy")
        words = lines.flat_map_values(lambda v: F.split(v, " "))
        words.group_by_key().aggregate(lambda v: F.count("*"), materialized="words").to_stream().to("out")

    assert run(write, {"lines": [("k", "a b c", 7)]}) == [("k", 1, 7), ("k", 2, 7), ("k", 3, 7)]
    assert run(write, {"lines": [("k", "a b c", 7)]}, cache=True) == [("k", 3, 7)]


def test_an_aggregate_of_columns_is_handed_on_to_a_suppress() -> None:
    def write(builder: StreamsBuilder) -> None:
        (
            builder.stream("in", value=Serdes.long())
            .group_by_key()
            .windowed_by(TimeWindows.of_size_with_no_grace(100))
            .aggregate(lambda v: F.max(v), Materialized("highest", retention="1 hour"))
            .suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
            .to_stream()
            .to("out")
        )

    with driver_of(write) as driver:
        piped = driver.create_input_topic("in")
        for value, timestamp in ((3, 10), (9, 20), (4, 30), (1, 130)):
            piped.pipe_input("k", value, timestamp)
        (final,) = driver.create_output_topic("out").read_records_to_list()
        assert (final.key.key, final.key.start, final.value, final.timestamp) == ("k", 0, 9, 30)
        assert [row.value for row in driver.state_store("highest").all()] == [9, 1]


def test_an_aggregate_of_columns_is_grouped_again_with_its_old_values() -> None:
    def write(builder: StreamsBuilder) -> None:
        highest = builder.stream("in", value=Serdes.long()).group_by_key().aggregate(lambda v: F.max(v), "highest")
        (
            highest.group_by(lambda k, v: (F.when(v > 10, "high").otherwise("low"), v))
            .count("sizes")
            .to_stream()
            .to("out")
        )

    assert run(write, {"in": [("a", 5, 1), ("b", 6, 2), ("a", 50, 3)]}) == [
        ("low", 1, 1),
        ("low", 2, 2),
        ("low", 1, 3),
        ("high", 1, 3),
    ]


def test_streams_that_were_merged_are_aggregated_with_columns() -> None:
    def write(builder: StreamsBuilder) -> None:
        both = builder.stream("one", value=Serdes.long()).merge(builder.stream("two", value=Serdes.long()))
        both.group_by_key().aggregate(lambda v: F.sum(v), "sums").to_stream().to("out")

    assert run(write, {"one": [("k", 1, 1)], "two": [("k", 2, 2)]}) == [("k", 1, 1), ("k", 3, 2)]


def test_many_records_go_through_as_one_batch() -> None:
    def write(builder: StreamsBuilder) -> None:
        builder.stream("in").group_by_key().count("counts").to_stream().to("out")

    with driver_of(write) as driver:
        driver.create_input_topic("in").pipe_records([(f"k{n % 3}", "v", n) for n in range(30)])
        assert [row.value for row in driver.state_store("counts").all()] == [10, 10, 10]


def test_records_without_a_key_are_counted_batch_after_batch() -> None:
    def write(builder: StreamsBuilder) -> None:
        builder.table("in").to_stream().to("out")

    with driver_of(write) as driver:
        topic = driver.create_input_topic("in")
        for _ in range(3):
            topic.pipe_input(None, "v")
        assert driver.metrics() == {"KTABLE-SOURCE-0000000002": 3}


def test_a_store_without_a_name_says_how_to_read_it() -> None:
    def write(builder: StreamsBuilder) -> None:
        builder.stream("in").group_by_key().count().to_stream().to("out")

    with driver_of(write) as driver, pytest.raises(TopologyError, match="materialized="):
        driver.state_store("KSTREAM-AGGREGATE-STATE-STORE-0000000001")


def test_a_record_from_before_1970_is_refused() -> None:
    def write(builder: StreamsBuilder) -> None:
        builder.stream("in").to("out")

    with driver_of(write) as driver, pytest.raises(StreamsError, match=r"timestamp .*, which is not a valid time"):
        driver.create_input_topic("in").pipe_input("k", "v", -1)


@pytest.mark.parametrize("kind", ["count", "reduce"])
def test_a_store_without_caching_lets_every_update_out_beside_one_that_folds_them(kind: str) -> None:
    kept = {"folded": Materialized("folded"), "all": Materialized("all").with_caching_disabled()}

    def write(builder: StreamsBuilder) -> None:
        for name, how in kept.items():
            grouped = builder.stream(f"in-{name}").group_by_key()
            made = grouped.count(how) if kind == "count" else grouped.reduce(lambda a, b: a + b, how)
            made.to_stream().map_values(lambda v: v.cast("string")).to(f"out-{name}")

    with driver_of(write, cache=True) as driver:
        seen = {}
        for name in kept:
            records = [("k", "1", 1), ("k", "1", 2), ("l", "1", 3), ("k", "1", 4)]
            driver.create_input_topic(f"in-{name}").pipe_records(records)
            out = driver.create_output_topic(f"out-{name}").read_records_to_list()
            seen[name] = [(each.key, each.timestamp) for each in out]
        assert sorted(seen["folded"]) == [("k", 4), ("l", 3)]
        assert seen["all"] == [("k", 1), ("k", 2), ("l", 3), ("k", 4)]
        assert len(driver.create_output_topic("test-all-changelog").read_records_to_list()) == 4


def test_a_source_whose_records_nothing_uses_is_told_of_and_takes_records(caplog: pytest.LogCaptureFixture) -> None:
    def write(builder: StreamsBuilder) -> None:
        builder.stream("forgotten").map_values(lambda v: F.upper(v))
        builder.stream("in").to("out")
        builder.table("rows")

    assert run(write, {"forgotten": [("k", "x", 1)], "rows": [("k", "r", 2)], "in": [("k", "v", 3)]}) == [("k", "v", 3)]
    told = [record.getMessage() for record in caplog.records if record.name == "streamskit"]
    assert ["KSTREAM-SOURCE-0000000000" in told[0], "KSTREAM-SOURCE-0000000005" in told[1]] == [True, True]
    assert all("nothing uses its records, so that they are not read." in each for each in told)


def test_a_topology_that_makes_nothing_of_any_record_is_refused() -> None:
    def write(builder: StreamsBuilder) -> None:
        builder.stream("forgotten").map_values(lambda v: F.upper(v))

    with pytest.raises(
        TopologyError, match=r"test_topology_test_driver\.py line \d+\): nothing uses its records\. End"
    ):
        driver_of(write)


@pytest.mark.parametrize(
    "ask", [lambda: F.unix_micros(F.current_timestamp()).cast("string"), F.uuid, lambda: F.rand().cast("string")]
)
def test_what_spark_answers_anew_for_each_micro_batch_differs_from_record_to_record(ask: Callable[[], Any]) -> None:
    made = run(lambda builder: builder.stream("in").map_values(lambda v: ask()).to("out"), {"in": [("k", "v", 1)] * 3})
    assert len({value for _, value, _ in made}) == 3


def test_a_store_without_a_changelog_is_refused_and_not_shown_empty() -> None:
    def counted(builder: StreamsBuilder) -> None:
        builder.stream("in").group_by_key().count(Materialized("counts", logged=False)).to_stream().to("out")

    with driver_of(counted) as driver:
        driver.create_input_topic("in").pipe_input("a", "x")
        with pytest.raises(StreamsError, match="Store 'counts' cannot be read from outside: it has no changelog"):
            driver.state_store("counts")


def test_a_changelog_is_read_with_the_serdes_of_its_store_beside_a_sink_that_chooses_topics() -> None:
    def counted(builder: StreamsBuilder) -> None:
        stream = builder.stream("in")
        stream.group_by_key().count("counts")
        stream.to(lambda v: v)

    with driver_of(counted) as driver:
        driver.create_input_topic("in").pipe_input("a", "x")
        assert driver.create_output_topic("test-counts-changelog").read_record().value == 1
        assert driver.create_output_topic("x").read_record().value == "x"
