"""Keys that are equal are one key, however others have written them."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from pyspark.sql import functions as F

from streamskit import JoinWindows, LogAndContinue, Serdes, StreamsBuilder, TimeWindows, TopologyTestDriver
from streamskit.queries import LocalKeyValueStore
from streamskit.serdes import Serde

pytestmark = pytest.mark.spark

ID = Serdes.json("id long")
PLAIN, SPACED = b'{"id":1}', b'{"id": 1}'
"""One key, as streamskit writes it, and as `json.dumps` does."""


def written(
    write: Callable[[StreamsBuilder], Any],
    *records: tuple[str, Any, str],
    stores: tuple[str, ...] = (),
    **options: Any,
) -> list[Any]:
    """Return the keys (bytes) and values of the topic out, then the rows of each store."""
    builder, raw = StreamsBuilder(), Serdes.byte_array()
    write(builder)
    with TopologyTestDriver(builder.build(), **options) as driver:
        for topic, key, value in records:
            driver.create_input_topic(topic, key=raw).pipe_input(key, value)
        out = driver.create_output_topic("out", key=raw).read_records_to_list()
        rows = [(row.key, row.value) for name in stores for row in driver.state_store(name).all()]
    return [(record.key, record.value) for record in out] + rows


def joined(left: Any, right: Any) -> Any:
    return F.concat(left, right)


def reduced(builder: StreamsBuilder) -> None:
    builder.stream("in", key=ID).group_by_key().reduce(lambda x, y: x + y, "rows").to_stream().to("out")


@pytest.mark.parametrize("options", [{}, {"deserialization_handler": LogAndContinue()}, {"partitions": 1}])
def test_a_reducer_in_python_and_its_store_take_equal_keys_for_one(options: dict[str, Any]) -> None:
    found = written(reduced, ("in", SPACED, "x"), ("in", PLAIN, "y"), stores=("rows",), **options)
    assert found == [(PLAIN, "x"), (PLAIN, "xy"), ({"id": 1}, "xy")]


def test_a_null_key_is_still_none_however_it_is_written() -> None:
    assert written(reduced, ("in", b" null", "x"), ("in", None, "y")) == []
    assert written(lambda b: b.stream("in", key=ID).to("out"), ("in", b"null", "x")) == [(None, "x")]


def test_a_table_has_one_row_for_equal_keys() -> None:
    found = written(
        lambda b: b.table("in", key=ID, materialized="rows").to_stream().to("out"),
        ("in", PLAIN, "x"), ("in", SPACED, "y"), stores=("rows",),
    )  # fmt: skip
    assert found == [(PLAIN, "x"), (PLAIN, "y"), ({"id": 1}, "y")]


def test_a_stream_finds_the_rows_of_a_table_under_a_key_that_it_makes() -> None:
    def write(builder: StreamsBuilder) -> None:
        rows = builder.table("rows", key=ID)
        of_row = builder.stream("in").select_key(lambda v: F.struct(v.cast("long").alias("id")))
        of_row.join(rows, joined).to("out")

    assert written(write, ("rows", SPACED, "row"), ("in", b"k", "1")) == [(PLAIN, "1row")]


def test_a_key_selector_finds_the_rows_of_a_global_table() -> None:
    def write(builder: StreamsBuilder) -> None:
        rows = builder.global_table("rows", key=ID)
        chosen = builder.stream("in").join(rows, joined, key_selector=lambda v: F.struct(v.cast("long").alias("id")))
        chosen.to("out")

    assert written(write, ("rows", SPACED, "row"), ("in", b"k", "1")) == [(b"k", "1row")]


@pytest.mark.parametrize("options", [{}, {"deserialization_handler": LogAndContinue()}])
def test_a_global_table_that_only_queries_read_has_one_row_for_equal_keys(options: dict[str, Any]) -> None:
    builder, raw = StreamsBuilder(), Serdes.byte_array()
    builder.global_table("rows", key=ID, materialized="rows")
    builder.stream("in").to("out")
    with TopologyTestDriver(builder.build(), **options) as driver:
        rows, store = driver.create_input_topic("rows", key=raw), cast(LocalKeyValueStore, driver.state_store("rows"))
        rows.pipe_input(SPACED, "x")
        assert (store.get({"id": 1}), store.all()) == ("x", [({"id": 1}, "x")])
        rows.pipe_input(PLAIN, "y")
        assert (store.get({"id": 1}), store.all()) == ("y", [({"id": 1}, "y")])
        rows.pipe_input(b'{ "id" : 1 }', None)
        rows.pipe_input(b" null", "z")
        assert (store.get({"id": 1}), store.all()) == (None, [])


def test_a_foreign_key_finds_the_rows_of_its_table() -> None:
    def write(builder: StreamsBuilder) -> None:
        rows = builder.table("rows", key=ID)
        orders = builder.table("in").join(rows, joined, foreign_key=lambda v: F.struct(v.cast("long").alias("id")))
        orders.to_stream().to("out")

    assert written(write, ("rows", SPACED, "row"), ("in", b"k", "1")) == [(b"k", "1row")]


@pytest.mark.parametrize(
    ("serde", "is_canonical"),
    [
        (Serdes.string(), True),
        (Serdes.byte_array(), True),
        (Serdes.long(), True),
        (Serdes.boolean(), True),
        (Serdes.void(), True),
        (Serdes.list(Serdes.integer()), True),
        (Serdes.time_windowed(Serdes.string(), 10), True),
        (Serdes.uuid(), False),
        (ID, False),
        (Serdes.list(Serdes.uuid()), False),
        (Serdes.session_windowed(ID), False),
    ],
    ids=str,
)
def test_a_key_is_written_anew_only_where_equal_ones_may_have_other_bytes(serde: Serde, is_canonical: bool) -> None:
    assert serde.is_canonical is is_canonical


# Streams and tables whose keys are equal, and written by different serdes.

LONG, JSON_LONG = Serdes.long(), Serdes.json("long")
BINARY = LONG.serialize(1)


def told(key: int, value: str, so_far: str) -> str:
    return f"{so_far}{key}{value}"


def test_a_stream_is_grouped_with_a_serde_other_than_the_one_that_reads_it() -> None:
    def write(builder: StreamsBuilder) -> None:
        grouped = builder.stream("in", key=LONG).group_by_key(key=JSON_LONG)
        grouped.reduce(lambda x, y: x + y, "rows").to_stream().to("out")

    found = written(write, ("in", BINARY, "x"), ("in", BINARY, "y"), stores=("rows",))
    assert found == [(b"1", "x"), (b"1", "xy"), (1, "xy")]


def test_windows_are_grouped_with_a_serde_other_than_the_one_that_reads_them() -> None:
    def write(builder: StreamsBuilder) -> None:
        grouped = builder.stream("in", key=LONG).group_by_key(key=JSON_LONG)
        windowed = grouped.windowed_by(TimeWindows.of_size_with_no_grace(10**15))
        totals = windowed.aggregate(lambda: "", told, value=Serdes.string())
        totals.to_stream().to("out")

    found = written(write, ("in", BINARY, "x"), ("in", BINARY, "y"))
    assert found == [(b"1" + bytes(8), "1x"), (b"1" + bytes(8), "1x1y")]


@pytest.mark.parametrize(("left", "right"), [(LONG, JSON_LONG), (JSON_LONG, LONG)], ids=str)
@pytest.mark.parametrize("kinds", ["stream and table", "tables", "streams"])
def test_a_join_finds_equal_keys_that_other_serdes_have_written(kinds: str, left: Serde, right: Serde) -> None:
    def write(builder: StreamsBuilder) -> None:
        if kinds == "tables":
            builder.table("in", key=left).join(builder.table("rows", key=right), joined).to_stream().to("out")
        elif kinds == "streams":
            day = JoinWindows.of_time_difference_with_no_grace("1 day")
            builder.stream("in", key=left).join(builder.stream("rows", key=right), joined, day).to("out")
        else:
            builder.stream("in", key=left).join(builder.table("rows", key=right), joined).to("out")

    records = ("rows", right.serialize(1), "row"), ("in", left.serialize(1), "x")
    assert written(write, *records) == [(left.serialize(1), "xrow")]


def test_cogrouped_streams_may_have_keys_of_different_serdes() -> None:
    def write(builder: StreamsBuilder) -> None:
        one, two = (builder.stream(name, key=key).group_by_key() for name, key in (("one", LONG), ("two", JSON_LONG)))
        both = one.cogroup(told)
        both = both.cogroup(two, told)
        both.aggregate(lambda: "", "rows", value=Serdes.string()).to_stream().to("out")

    found = written(write, ("one", BINARY, "x"), ("two", b"1", "y"), stores=("rows",))
    assert found == [(BINARY, "1x"), (BINARY, "1x1y"), (1, "1x1y")]


# Keys that a comparison takes for equal, but that have different bytes.

DOUBLE = Serdes.double()
ZEROS = [DOUBLE.serialize(zero) for zero in (0.0, -0.0, float("nan"))]


def counted(builder: StreamsBuilder) -> None:
    counts = builder.stream("in", key=DOUBLE).group_by_key().count()
    counts.to_stream().map_values(lambda v: v.cast("string")).to("out")


def counted_by_columns(builder: StreamsBuilder) -> None:
    values = builder.stream("in", key=DOUBLE).group_by_key()
    values.aggregate(lambda v: F.count(v)).to_stream().map_values(lambda v: v.cast("string")).to("out")


def counted_in_windows(builder: StreamsBuilder) -> None:
    day = TimeWindows.of_size_with_no_grace("1 day")
    counts = builder.stream("in", key=DOUBLE).group_by_key().windowed_by(day).count().to_stream()
    counts.map(lambda k, v: (k.key, v.cast("string"))).to("out", key=DOUBLE)


@pytest.mark.parametrize("options", [{}, {"partitions": 2}, {"cache": True}])
@pytest.mark.parametrize("write", [counted, counted_by_columns, counted_in_windows])
def test_zero_and_minus_zero_are_counted_apart_and_all_nans_together(
    write: Callable[[StreamsBuilder], Any], options: dict[str, Any]
) -> None:
    records = [("in", key, "x") for key in (*ZEROS, *ZEROS)]
    assert written(write, *records, **options) == [(key, count) for count in "12" for key in ZEROS]


def test_zeros_within_a_key_are_told_apart() -> None:
    pair = Serdes.json("name string, at array<double>")
    keys = [pair.serialize({"name": "0.0, -0.0", "at": [0.0, zero]}) for zero in (0.0, -0.0)]

    def write(builder: StreamsBuilder) -> None:
        counts = builder.stream("in", key=pair).group_by_key().count()
        counts.to_stream().map_values(lambda v: v.cast("string")).to("out")

    assert written(write, *[("in", key, "x") for key in (*keys, *keys)]) == [(key, n) for n in "12" for key in keys]
