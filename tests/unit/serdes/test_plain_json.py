"""Plain JSON objects are read and written by a reader and a writer of their own, exactly as those for all JSON do."""

import json
from typing import Any

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from streamskit.jvm.functions import attempt, read_json, write_json

pytestmark = pytest.mark.spark

PLAIN = "name string, amount int, id bigint, price double, paid boolean"
WITH_A_LIST = f"{PLAIN}, `of no text here` array<int>"
"""No value of this schema is taken for plain."""

NAMES = st.sampled_from(["name", "amount", "id", "price", "paid", "näme", ""])
NUMBERS = st.integers() | st.integers(-(10**10), 10**10) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.none() | st.booleans() | NUMBERS | st.text(max_size=4) | st.text('aé\n\\"/\x7f\u2028', max_size=3)
OBJECTS = st.dictionaries(NAMES, VALUES | st.lists(NUMBERS, max_size=2), max_size=6)
STYLES = st.sampled_from([{}, {"separators": (",", ":")}, {"indent": 1}, {"ensure_ascii": False}])
WRITTEN = st.builds(lambda value, style: json.dumps(value, **style), OBJECTS, STYLES)
PIECES = ["{", "}", '"', '"name"', '"amount"', '"price"', ":", ",", "-", "0", "12", ".", "e3", "1E400", "null", "true",
          "false", " ", "\t", "[", "]", "x", "\\u0041", "1.50", "-0", "00", "NaN", "\x00"]  # fmt: skip
PIECE = st.sampled_from(PIECES)
CUT = st.builds(lambda text, at, more: text[:at] + more + text[at:], WRITTEN, st.integers(0, 40), PIECE)
TEXTS = WRITTEN | CUT | st.lists(PIECE, max_size=9).map("".join)


def read(spark: SparkSession, values: list[bytes], schema: str) -> list[tuple[Any, bool]]:
    """Return what each value is read as, its plain fields in the order of `PLAIN`, and whether it was refused."""
    frame = spark.createDataFrame([(value,) for value in values], "data binary")
    made = attempt(read_json(frame["data"], T.DataType.fromDDL(schema), "JSON"))
    rows = frame.select(made["value"].alias("value"), made["error"].isNotNull().alias("refused")).collect()
    # repr tells 0.0 from -0.0.
    return [(row.value and repr(tuple(row.value)[:5]), row.refused) for row in rows]


EDGES = [
    b'{"price":-0}', b'{"price":-0.0}', b'{"amount":-0}', b'{"price":0.1e1}', b'{"price":12345678901234567890}',
    b'{"amount":1,"amount":2}', b'{"amount":2147483648}', b'{"amount":1.0}', b'{"paid":tru}', b'{"x":01}',
    b' {"name" : "a" , "id":-7 }\n', b"{}", b"{ }", b'{"name":"a",}', b'{"name":"a"} {}', b'{"name":"a"}x',
    b'{"name":null,"paid":false}', b'{"name":nullx}', b'{"name":"\xff"}', b'{"name":"\x01"}', b"null", b"",
]  # fmt: skip


@settings(max_examples=3, phases=[Phase.explicit, Phase.generate])  # each takes Spark a while
@given(st.lists(TEXTS.map(str.encode) | st.binary(max_size=6), min_size=300, max_size=400))
@example(EDGES)
def test_plain_json_is_read_as_any_other(spark: SparkSession, values: list[bytes]) -> None:
    plain, other = read(spark, values, PLAIN), read(spark, values, WITH_A_LIST)
    assert list(zip(values, plain, strict=True)) == list(zip(values, other, strict=True))


TEXT = st.text(max_size=5) | st.text('ab"\\/\n\x00\x1f\x7fé\u2028𝄞', max_size=5)
ROWS = st.tuples(
    st.none() | TEXT,
    st.none() | st.integers(-(2**31), 2**31 - 1),
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.floats(),
    st.none() | st.booleans(),
)
ENDS = [
    ("", 0, 0, 0.0, True), ('"', -1, -(2**63), -0.0, False), ("a", 2**31 - 1, 2**63 - 1, 1e21, None),
    ("ÿ", -(2**31), 10, float("nan"), True), (None, 100, -10, 1e-5, None), ("x" * 1000, 9, 99, 0.1, True),
]  # fmt: skip


@settings(max_examples=3, phases=[Phase.explicit, Phase.generate])
@given(st.lists(ROWS, min_size=300, max_size=400))
@example(ENDS)
def test_plain_json_is_written_as_any_other(spark: SparkSession, values: list[tuple[Any, ...]]) -> None:
    row = F.struct("name", "amount", "id", "price", "paid")
    frame = spark.createDataFrame(values, PLAIN)
    both = frame.select(write_json(row), F.to_json(row, {"ignoreNullFields": "false"}).cast("binary")).collect()
    for value, (written, expected) in zip(values, both, strict=True):
        assert written == expected, value


def test_lists_maps_and_missing_values_are_written_as_spark_writes_them(spark: SparkSession) -> None:
    frame = spark.sql(
        "select array(1, null) list, map('a', named_struct('b', cast(null as int))) map, cast(null as array<int>) no, "
        "named_struct('ä', 1, 't', timestamp'2026-01-01 00:00:00') row, named_struct('w\"', 1) quoted"
    )
    written = frame.select(*(write_json(F.col(name)) for name in frame.columns)).first()
    assert written is not None
    assert [value and bytes(value).decode() for value in written] == [
        "[1,null]", '{"a":{"b":null}}', None, '{"ä":1,"t":"2026-01-01T00:00:00.000Z"}', '{"w\\"":1}',
    ]  # fmt: skip


def test_times_that_differ_by_microseconds_differ_in_json_and_whole_milliseconds_stay_as_they_are(
    spark: SparkSession,
) -> None:
    frame = spark.sql(
        "select array(timestamp'2026-01-01 00:00:00.001') list, "
        "map('a', timestamp'2026-01-01 00:00:00.000001') map, "
        "named_struct('n', 1, 'inner', array(named_struct('at', timestamp_ntz'2026-01-01 00:00:00.12345'))) row, "
        "named_struct('at', timestamp'2026-01-01 00:00:00.12', 'none', cast(null as timestamp)) plain, "
        "named_struct('one', timestamp'2026-01-01 00:00:00', 'two', timestamp'1969-12-31 23:59:59.999999') both"
    )
    written = frame.select(*(write_json(F.col(name)).alias(name) for name in frame.columns))
    row = written.first()
    assert row is not None
    assert [bytes(value).decode() for value in row] == [
        '["2026-01-01T00:00:00.001Z"]', '{"a":"2026-01-01T00:00:00.000001Z"}',
        '{"n":1,"inner":[{"at":"2026-01-01T00:00:00.123450"}]}', '{"at":"2026-01-01T00:00:00.120Z","none":null}',
        '{"one":"2026-01-01T00:00:00.000000Z","two":"1969-12-31T23:59:59.999999Z"}',
    ]  # fmt: skip
    for name in frame.columns:
        data_type = frame.schema[name].dataType
        again = written.select(read_json(F.col(name), data_type, "JSON").alias("v")).first()
        assert again == frame.select(F.col(name).alias("v")).first()
