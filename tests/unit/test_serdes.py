"""A serde's two halves agree: what Python writes for a value, Spark writes for a Column, and reads back."""

import struct
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from streamskit import Serde, Serdes, Windowed

pytestmark = pytest.mark.spark

CASES: list[tuple[Serde, Any, bytes]] = [
    (Serdes.string(), "Käse", b"K\xc3\xa4se"),
    (Serdes.string(), "", b""),
    (Serdes.long(), 258, b"\x00\x00\x00\x00\x00\x00\x01\x02"),
    (Serdes.long(), -(2**63), b"\x80" + bytes(7)),
    (Serdes.integer(), -2, b"\xff\xff\xff\xfe"),
    (Serdes.short(), 513, b"\x02\x01"),
    (Serdes.double(), 0.1, b"\x3f\xb9\x99\x99\x99\x99\x99\x9a"),
    (Serdes.double(), -0.0, b"\x80" + bytes(7)),
    (Serdes.byte_array(), b"\x00\xff", b"\x00\xff"),
    (Serdes.json("a int, b string"), {"a": 1, "b": None}, b'{"a":1,"b":null}'),
    (Serdes.json("array<int>"), [1, 2], b"[1,2]"),
    (Serdes.json("boolean"), True, b"true"),
    (Serdes.time_windowed(Serdes.string(), 5000), Windowed("KO", 1000, 6000), b"KO" + (1000).to_bytes(8, "big")),
    (Serdes.session_windowed(Serdes.string()), Windowed("KO", 1000, 9000), b"KO" + struct.pack(">qq", 9000, 1000)),
    (Serdes.session_windowed(Serdes.long()), Windowed(-1, 0, 0), b"\xff" * 8 + bytes(16)),
]


@pytest.mark.parametrize(("serde", "value", "data"), CASES, ids=str)
def test_python_writes_and_reads_the_bytes_that_kafka_has(serde: Serde, value: Any, data: bytes) -> None:
    assert serde.serialize(value) == data
    assert serde.deserialize(data) == value


@pytest.mark.parametrize(("serde", "value", "data"), CASES, ids=str)
def test_spark_writes_and_reads_the_same_bytes(spark: SparkSession, serde: Serde, value: Any, data: bytes) -> None:
    rows = spark.createDataFrame([(bytearray(data),)], "data binary").select(serde.from_bytes(F.col("data")).alias("v"))
    read = rows.collect()[0].v
    expected = tuple(value) if isinstance(value, Windowed) else value
    assert (tuple(read) if isinstance(value, Windowed) else plain(read)) == expected
    assert bytes(rows.select(serde.to_bytes(F.col("v")).alias("data")).collect()[0].data) == data


@pytest.mark.parametrize("serde", [case[0] for case in CASES], ids=str)
def test_null_stays_null_both_ways(spark: SparkSession, serde: Serde) -> None:
    assert serde.serialize(None) is None
    assert serde.deserialize(None) is None
    nulls = spark.createDataFrame([(None,)], "data binary").select(serde.from_bytes(F.col("data")).alias("v"))
    if not isinstance(serde.data_type, T.StructType) or "window" not in str(serde).lower():
        assert nulls.collect()[0].v is None
        assert nulls.select(serde.to_bytes(F.col("v")).alias("data")).collect()[0].data is None


@pytest.mark.parametrize("serde", [Serdes.long(), Serdes.integer(), Serdes.double()], ids=str)
def test_bytes_of_the_wrong_length_are_refused(spark: SparkSession, serde: Serde) -> None:
    with pytest.raises(ValueError, match="bytes long; this is 3 bytes"):
        serde.deserialize(b"abc")
    rows = spark.createDataFrame([(bytearray(b"abc"),)], "data binary").select(serde.from_bytes(F.col("data")))
    with pytest.raises(Exception, match="bytes long; this is 616263"):
        rows.collect()


def test_a_session_key_without_its_times_is_refused() -> None:
    with pytest.raises(ValueError, match="ends in 16 bytes of time; this is 9 bytes"):
        Serdes.session_windowed(Serdes.string()).deserialize(b"KO" + bytes(7))


def test_a_serde_is_spelled_as_it_is_written() -> None:
    for spelled in ("string", "long", "integer", "short", "double", "byte_array"):
        assert str(getattr(Serdes, spelled)()) == f"Serdes.{spelled}()"
    assert str(Serdes.json("a int")) == "Serdes.json('a int')"
    assert str(Serdes.time_windowed(Serdes.long(), 5000)) == "Serdes.time_windowed(Serdes.long(), 5000)"
    assert str(Serdes.session_windowed(Serdes.string())) == "Serdes.session_windowed(Serdes.string())"


def test_a_number_that_does_not_fit_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="not a integer"):
        Serdes.integer().serialize(2**40)


def test_a_serde_of_ones_own_needs_two_functions_and_a_type(spark: SparkSession) -> None:
    class Reversed(Serde):
        data_type = T.StringType()

        def serialize(self, value: Any) -> bytes | None:
            return None if value is None else value[::-1].encode()

        def deserialize(self, data: bytes | None) -> Any:
            return None if data is None else data.decode()[::-1]

    rows = spark.createDataFrame([(bytearray(b"abc"),)], "data binary").select(
        Reversed().from_bytes(F.col("data")).alias("v")
    )
    assert rows.collect()[0].v == "cba"
    assert bytes(rows.select(Reversed().to_bytes(F.col("v")).alias("data")).collect()[0].data) == b"abc"


@pytest.mark.parametrize(
    ("data_type", "serde"),
    [
        ("bigint", Serdes.long()),
        ("string", Serdes.string()),
        ("double", Serdes.double()),
        ("struct<a:int>", Serdes.json("struct<a:int>")),
    ],
)
def test_the_serde_of_a_type_is_the_one_kafka_has_for_it(data_type: str, serde: Serde) -> None:
    assert Serdes.for_type(T.DataType.fromDDL(data_type)) == serde


def plain(value: Any) -> Any:
    if isinstance(value, T.Row):
        return value.asDict(recursive=True)
    return bytes(value) if isinstance(value, bytearray) else value
