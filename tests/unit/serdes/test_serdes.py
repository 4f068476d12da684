"""A serde's two halves agree: what Python writes for a value, Spark writes for a Column, and both refuse the same."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from streamskit import Materialized, Serde, Serdes, StreamsError, TopologyError, TopologyTestDriver, Windowed
from streamskit.dsl.builder import StreamsBuilder
from streamskit.serdes import SchemaRegistry, SerdeError
from tests.unit.serdes.serdes_schemas import SHOP, TRADE, trade_class

pytestmark = pytest.mark.spark

REGISTRY = SchemaRegistry("mock://test-serdes")
AVRO = Serdes.avro(TRADE, REGISTRY, topic="avro-trades")
PROTOBUF = Serdes.protobuf(trade_class(), REGISTRY, topic="protobuf-trades")
JSON_SCHEMA = Serdes.json_schema(SHOP, REGISTRY, topic="json-trades")


@dataclass(frozen=True)
class Celsius(Serde):
    """A format of one's own: "21.5 C"."""

    data_type = T.DoubleType()

    def serialize(self, value: float | None) -> bytes | None:
        return None if value is None else f"{value} C".encode()

    def deserialize(self, data: bytes | None) -> float | None:
        return None if data is None else float(data.decode().removesuffix(" C"))


SERDES: list[tuple[Serde, Any]] = [
    (Serdes.string(), "Käse"),
    (Serdes.long(), 258),
    (Serdes.integer(), -2),
    (Serdes.short(), 513),
    (Serdes.double(), 0.1),
    (Serdes.float(), 1.5),
    (Serdes.boolean(), True),
    (Serdes.byte_array(), b"\x00\xff"),
    (Serdes.bytes(), b"\x00\xff"),
    (Serdes.byte_buffer(), b"\x00\xff"),
    (Serdes.uuid(), UUID(int=5)),
    (Serdes.list(Serdes.long()), [1, None]),
    (Serdes.list(Serdes.string()), ["a", None, ""]),
    (Serdes.json("a int, b string"), {"a": 1, "b": None}),
    (Serdes.json("array<int>"), [1, 2]),
    (Serdes.json("map<string, double>"), {"a": 1.5}),
    (Serdes.json("boolean"), True),
    (Serdes.time_windowed(Serdes.string(), 5000), Windowed("KO", 1000, 6000)),
    (Serdes.time_windowed(Celsius(), 5000), Windowed(21.5, 1000, 6000)),
    (Serdes.session_windowed(Serdes.long()), Windowed(-1, 0, 0)),
    (AVRO, {"symbol": "KO", "price": 61.5, "note": None}),
    (PROTOBUF, trade_class()(symbol="KO", price=61.5)),
    (JSON_SCHEMA, {"symbol": "KO", "price": 61.5}),
    (Celsius(), 21.5),
]
"""Each serde, and a value for it."""

CORRUPT: list[tuple[Serde, bytes, str]] = [
    (Serdes.long(), b"abc", "a long is 8 bytes long"),
    (Serdes.integer(), b"abcde", "an integer is 4 bytes long"),
    (Serdes.short(), b"a", "a short is 2 bytes long"),
    (Serdes.double(), bytes(9), "a double is 8 bytes long"),
    (Serdes.float(), bytes(8), "a float is 4 bytes long"),
    (Serdes.boolean(), b"\x02", "a boolean is one byte, 00 or 01"),
    (Serdes.boolean(), b"\x01\x01", "a boolean is one byte, 00 or 01"),
    (Serdes.uuid(), b"123e4567", "a UUID is 36 characters"),
    (Serdes.uuid(), str(UUID(int=5)).encode() + b"\n", "a UUID is 36 characters"),
    (Serdes.void(), b"a", "nothing but null"),
    (Serdes.list(Serdes.long()), b"\x00\x00", "the bytes end before the list does"),
    (Serdes.list(Serdes.string()), b"\x00" + bytes(8), "its first byte is 00"),
    (Serdes.list(Serdes.string()), b"\x01" + bytes(5), "1 more bytes follow"),
    (Serdes.list(Serdes.boolean()), b"\x01\x00\x00\x00\x01\x00\x00\x00\x01\x07", "a boolean is one byte"),
    (Serdes.json("a int"), b"{", "it is not JSON"),
    (Serdes.json("a int"), b'{"a":1} and more', "it is not JSON"),
    (Serdes.json("a int"), b'{"a":1}{"a":2}', "it is not JSON"),
    (Serdes.json("a string"), b'{"a":"\xff"}', "it is not JSON"),
    (Serdes.json("a int"), b"{'a':1}", "it is not JSON"),
    (Serdes.json("int"), b"1,2", "it is not JSON"),
    (Serdes.json("int"), b"1],[2", "it is not JSON"),
    (Serdes.time_windowed(Serdes.string(), 5000), bytes(7), "a windowed key ends in 8 bytes of time"),
    (Serdes.time_windowed(Serdes.long(), 5000), bytes(9), "a long is 8 bytes long"),
    (Serdes.session_windowed(Serdes.string()), b"KO" + bytes(7), "a session's key ends in 16 bytes of time"),
    (AVRO, b"\x00\x00\x00\x00\x01\x04KO", "the bytes end before the value does"),
    (AVRO, b"\x01\x00\x00\x00\x01\x04KO", "begins with a byte 00 and a schema id"),
    (PROTOBUF, b"\x00\x00\x00\x00\x02\x00\x0a\x05KO", "parsing message"),
    (PROTOBUF, b"\x00\x00\x00", "begins with a byte 00 and a schema id"),
    (JSON_SCHEMA, b'\x00\x00\x00\x00\x03{"symbol":"KO","price":"dear"}', "'dear' is not of type 'number'"),
    (JSON_SCHEMA, b"\x00\x00\x00\x00\x03{", "expecting"),
    (Celsius(), b"warm", "could not convert string to float"),
]
"""Bytes that are not what the serde reads, and what the error says of them."""

EMPTY_IS_A_VALUE = {
    "Serdes.string()": "",
    "Serdes.byte_array()": b"",
    "Serdes.bytes()": b"",
    "Serdes.byte_buffer()": b"",
}
"""The only serdes for which no bytes at all are a value."""

UNWRITABLE: list[tuple[Serde, Any, str, str]] = [
    (Serdes.string(), 5, "", "it is of type int, not text"),
    (Serdes.long(), 2**63, "", "Serdes.long() cannot write 9223372036854775808"),
    (Serdes.integer(), "one", "", "Serdes.integer() cannot write 'one'"),
    (Serdes.float(), 1e300, "", "too large"),
    (Serdes.boolean(), 1, "", "neither True nor False"),
    (Serdes.byte_array(), "text", "", "it is of type str, not bytes"),
    (Serdes.uuid(), "123e", "string", "a UUID is 32 hex digits"),
    (Serdes.void(), "a", "string", "nothing but"),
    (Serdes.list(Serdes.long()), "ab", "", "it is of type str, not a list"),
    (Serdes.list(Serdes.uuid()), ["x"], "array<string>", "Serdes.uuid() cannot write 'x'"),
    (Serdes.json("a string"), {"a": b"x"}, "", "not JSON serializable"),
    (
        Serdes.time_windowed(Serdes.string(), 1),
        Windowed(None, 0, 1),
        "key string, start long, end long",
        "without a key",
    ),
    (Serdes.time_windowed(Serdes.string(), 1), "KO", "", "a key with a window is a Windowed(key, start, end)"),
    (Serdes.session_windowed(Serdes.string()), Windowed("KO", 0, 2**64), "", "is a Windowed(key, start, end)"),
    (AVRO, {"symbol": None, "price": 1.0, "note": None}, "symbol string, price double, note string", "symbol"),
    (AVRO, 5, "", "it is of type int, neither a dict nor an object"),
    (PROTOBUF, {"nothing": "KO"}, "nothing string", "no field 'nothing'"),
    (JSON_SCHEMA, {"symbol": None, "price": 1.0}, "symbol string, price double", "'symbol' is a required property"),
]
"""Values that have no bytes in a format; the Spark type where a Column can hold them; what the error says."""


def frame(spark: SparkSession, *data: bytes | None) -> DataFrame:
    return spark.createDataFrame([(None if each is None else bytearray(each),) for each in data], "data binary")


def plain(value: Any) -> Any:
    if isinstance(value, T.Row):
        return value.asDict(recursive=True)
    return bytes(value) if isinstance(value, bytearray) else value


def in_spark(serde: Serde, value: Any) -> Any:
    """Return a Python value of a serde as it comes out of a Column."""
    if isinstance(value, Windowed):
        return value._asdict()
    if serde is PROTOBUF:
        return {"symbol": value.symbol, "price": value.price}
    return str(value) if isinstance(value, UUID) else value


@pytest.mark.parametrize(("serde", "value"), SERDES, ids=lambda each: str(each) if isinstance(each, Serde) else "")
def test_python_and_spark_write_the_same_bytes_and_read_them(spark: SparkSession, serde: Serde, value: Any) -> None:
    data = serde.serialize(value)
    assert serde.deserialize(data) == value
    rows = frame(spark, data).select(
        serde.from_bytes(F.col("data")).alias("read"), serde.try_from_bytes(F.col("data")).alias("tried")
    )
    written = rows.select(
        "*", serde.to_bytes(F.col("read")).alias("data"), serde.try_to_bytes(F.col("read")).alias("written")
    )
    row = written.collect()[0]
    assert plain(row.read) == in_spark(serde, value)
    assert (plain(row.tried)["value"], row.tried.error) == (in_spark(serde, value), None)
    assert bytes(row.data) == data
    assert (bytes(row.written.value), row.written.error) == (data, None)
    assert rows.schema["read"].dataType.simpleString() == serde.data_type.simpleString()


EVERY: list[Serde] = [*(serde for serde, _ in SERDES), Serdes.void()]


def tried_all(spark: SparkSession, given: list[tuple[Serde, bytes | None]]) -> list[Any]:
    """Return what try_from_bytes of each serde makes of the bytes given with it, in one go."""
    rows = spark.createDataFrame(
        [tuple(None if data is None else bytearray(data) for _, data in given)],
        ", ".join(f"d{number} binary" for number in range(len(given))),
    )
    row = rows.select([serde.try_from_bytes(F.col(f"d{number}")) for number, (serde, _) in enumerate(given)])
    return list(row.collect()[0])


def test_null_stays_null_both_ways_and_is_no_error(spark: SparkSession) -> None:
    assert [(serde.serialize(None), serde.deserialize(None)) for serde in EVERY] == [(None, None)] * len(EVERY)
    nulls = frame(spark, None).select([serde.from_bytes(F.col("data")).alias(f"d{n}") for n, serde in enumerate(EVERY)])
    assert set(nulls.collect()[0]) == {None}
    written = [serde.to_bytes(F.col(f"d{n}")) for n, serde in enumerate(EVERY)]
    assert set(nulls.select(written).collect()[0]) == {None}
    tried = [serde.try_to_bytes(F.col(f"d{n}")) for n, serde in enumerate(EVERY)]
    assert {tuple(each) for each in nulls.select(tried).collect()[0]} == {(None, None)}
    assert {tuple(each) for each in tried_all(spark, [(serde, None) for serde in EVERY])} == {(None, None)}


def test_no_bytes_at_all_are_refused_except_by_text_and_bytes(spark: SparkSession) -> None:
    for serde, tried in zip(EVERY, tried_all(spark, [(serde, b"") for serde in EVERY]), strict=True):
        if str(serde) in EMPTY_IS_A_VALUE:
            assert serde.deserialize(b"") == plain(tried.value) == EMPTY_IS_A_VALUE[str(serde)]
            assert tried.error is None
            continue
        with pytest.raises(ValueError) as raised:  # noqa: PT011 - a serde of one's own says what it likes
            serde.deserialize(b"")
        assert tried.value is None
        assert tried.error == str(raised.value) or (str(serde) in tried.error and "cannot read no bytes" in tried.error)


@pytest.fixture(scope="module")
def told(spark: SparkSession) -> dict[tuple[str, bytes], Any]:
    tried = tried_all(spark, [(serde, data) for serde, data, _ in CORRUPT])
    return {(str(serde), data): each for (serde, data, _), each in zip(CORRUPT, tried, strict=True)}


@pytest.mark.parametrize(
    ("serde", "data", "said"), CORRUPT, ids=lambda each: str(each) if isinstance(each, Serde) else ""
)
def test_corrupt_bytes_are_an_error_that_says_what_is_wrong(
    told: dict[tuple[str, bytes], Any], serde: Serde, data: bytes, said: str
) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - what it says is checked below
        serde.deserialize(data)
    tried = told[str(serde), data]
    assert said.lower() in str(raised.value).lower()
    assert tried.value is None
    if isinstance(raised.value, SerdeError):
        # Spark does not say what it minds about JSON.
        assert tried.error == str(raised.value) or tried.error.endswith("it is not JSON text of this schema.")
    else:
        assert tried.error == str(serde.cannot_read(data, f"ValueError: {raised.value}"))


@pytest.mark.parametrize(
    ("serde", "data"),
    list({str(serde): (serde, data) for serde, data, _ in CORRUPT}.values()),
    ids=lambda each: str(each) if isinstance(each, Serde) else "",
)
def test_corrupt_bytes_fail_the_query_if_nobody_catches_them(spark: SparkSession, serde: Serde, data: bytes) -> None:
    rows = frame(spark, data).select(serde.from_bytes(F.col("data")))
    with pytest.raises(Exception, match=r"cannot read|MALFORMED_RECORD|INVALID_UTF8|could not convert"):
        rows.collect()


@pytest.mark.parametrize(
    ("serde", "value", "spark_type", "said"), UNWRITABLE, ids=lambda each: str(each) if isinstance(each, Serde) else ""
)
def test_a_value_that_cannot_be_written_is_an_error(
    spark: SparkSession, serde: Serde, value: Any, spark_type: str, said: str
) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - what it says is checked below
        serde.serialize(value)
    assert said in str(raised.value)
    assert " cannot write " in str(raised.value)
    if not spark_type:
        return
    row = tuple(value.values()) if isinstance(value, dict) else value if isinstance(value, tuple) else (value,)
    schema = spark_type if isinstance(value, dict | tuple) else f"value {spark_type}"
    rows = spark.createDataFrame([row], schema)
    column = F.struct("*") if isinstance(value, dict | tuple) else F.col("value")
    tried = rows.select(serde.try_to_bytes(column).alias("tried")).collect()[0].tried
    assert tried.value is None
    assert said in tried.error
    with pytest.raises(Exception, match=r"."):
        rows.select(serde.to_bytes(column)).collect()


def test_half_a_surrogate_pair_is_written_as_a_question_mark_as_in_java() -> None:
    assert Serdes.string().serialize("a\ud800b") == b"a?b"


def test_no_window_ends_after_the_last_of_all_times_as_in_kafka_streams(spark: SparkSession) -> None:
    serde = Serdes.time_windowed(Serdes.string(), 2**63 - 1)
    data = serde.serialize(Windowed("KO", 5, 9))
    last = Windowed("KO", 5, 2**63 - 1)
    assert serde.deserialize(data) == last
    [row] = frame(spark, data).select(serde.from_bytes(F.col("data")).alias("window")).collect()
    assert tuple(row.window) == last


def test_the_size_of_the_windows_in_a_key_is_a_duration() -> None:
    assert Serdes.time_windowed(Serdes.string(), "5 seconds") == Serdes.time_windowed(Serdes.string(), 5000)
    with pytest.raises(ValueError, match="window_size 'five' is not a duration"):
        Serdes.time_windowed(Serdes.string(), "five")
    function: Any = Serdes.string
    with pytest.raises(TopologyError, match=r"time_windowed\(\): the serde of the keys is the function Serdes.string"):
        Serdes.time_windowed(function, 5000)
    with pytest.raises(
        TopologyError, match=r"session_windowed\(\): the serde of the keys is the function Serdes.string"
    ):
        Serdes.session_windowed(function)


def test_a_corrupt_record_among_good_ones_is_told_alone(spark: SparkSession) -> None:
    serde = Serdes.list(Serdes.long())
    good = serde.serialize([7])
    rows = frame(spark, good, b"x", good).coalesce(1).select(serde.try_from_bytes(F.col("data")).alias("tried"))
    assert [(row.tried.value, row.tried.error is None) for row in rows.collect()] == [
        ([7], True),
        (None, False),
        ([7], True),
    ]


def test_json_of_another_type_than_the_schema_says_is_refused_by_spark(spark: SparkSession) -> None:
    serde = Serdes.json("a int, b array<int>")
    rows = frame(spark, b'{"a":"one"}', b"[1]", b'{"b":[1,"two"]}', b'{"a":1,"more":2}', b"null")
    tried = rows.select(serde.try_from_bytes(F.col("data")).alias("tried")).collect()
    assert [row.tried.error is None for row in tried] == [False, False, False, True, True]
    assert plain(tried[3].tried.value) == {"a": 1, "b": None}
    assert tried[0].tried.error == (
        "Serdes.json('a int, b array<int>') cannot read 11 bytes (7b 22 61 22 3a 22 6f 6e 65 22 7d): "
        "it is not JSON text of this schema."
    )


def test_long_payloads_are_shown_by_their_beginning(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match=r"cannot read 100 bytes \(61 61 .* 61 …\): a long") as raised:
        Serdes.long().deserialize(b"a" * 100)
    row = frame(spark, b"a" * 100).select(Serdes.long().try_from_bytes(F.col("data")).alias("tried")).collect()[0]
    assert row.tried.error == str(raised.value)


class Careless(Serde):
    """Says it reads numbers, and gives text for some."""

    data_type = T.LongType()

    def serialize(self, value: int | None) -> bytes | None:
        return None if value is None else str(value).encode()

    def deserialize(self, data: bytes | None) -> Any:
        text = (data or b"").decode()
        return int(text) if text.isdigit() else text


def test_a_value_of_another_type_than_data_type_is_an_error(spark: SparkSession) -> None:
    rows = frame(spark, b"5", b"five").coalesce(1)
    tried = [row.tried for row in rows.select(Careless().try_from_bytes(F.col("data")).alias("tried")).collect()]
    assert (tried[0].value, tried[0].error) == (5, None)
    assert tried[1].value is None
    assert tried[1].error.startswith("Careless() read 'five', which is not of its data_type bigint")
    with pytest.raises(Exception, match="Careless\\(\\) read 'five'"):
        rows.select(Careless().from_bytes(F.col("data"))).collect()


def test_a_serde_of_ones_own_runs_in_a_topology() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("celsius", value=Celsius())
    stream.map_values(lambda v: v * 1.8 + 32).to("fahrenheit", value=Serdes.double())
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("celsius").pipe_input("oven", 100.0)
        record = driver.create_output_topic("fahrenheit").read_record()
        assert (record.key, record.value) == ("oven", 212.0)


def test_a_serde_without_a_type_says_what_is_missing() -> None:
    class Untyped(Celsius):
        data_type = Serde.data_type  # type: ignore[assignment]

    with pytest.raises(NotImplementedError, match="Untyped has no data_type"):
        _ = Untyped().data_type


class Shouting(Serde):
    """Forgets to make bytes of its text."""

    data_type = T.StringType()

    def serialize(self, value: str | None) -> Any:
        return value and value.upper()

    def deserialize(self, data: bytes | None) -> str | None:
        return None if data is None else data.decode()


@pytest.mark.parametrize("kept", ["sink", "store"])
def test_a_serde_of_ones_own_that_returns_text_is_named_with_what_to_do(kept: str) -> None:
    assert Shouting().serialize(None) is None
    builder = StreamsBuilder()
    records = builder.stream("in")
    if kept == "sink":
        records.to("out", value=Shouting())
    else:
        records.group_by_key().reduce(lambda old, new: old + new, Materialized("last", value=Shouting()))
    said = r"Shouting\(\) cannot write 'hey': its serialize\(\) returned 'HEY', and has to return bytes\. Text becomes"
    with TopologyTestDriver(builder.build()) as driver, pytest.raises(StreamsError, match=said):
        driver.create_input_topic("in").pipe_input("k", "hey")


def test_a_serde_is_spelled_as_it_is_written() -> None:
    for spelled in (
        "string", "long", "integer", "short", "double", "float", "boolean", "bytes", "byte_array", "byte_buffer",
        "uuid", "void",
    ):  # fmt: skip
        assert str(getattr(Serdes, spelled)()) == f"Serdes.{spelled}()"
    assert str(Serdes.json("a int")) == "Serdes.json('a int')"
    assert str(Serdes.list(Serdes.long())) == "Serdes.list(Serdes.long())"
    assert str(Serdes.time_windowed(Serdes.long(), 5000)) == "Serdes.time_windowed(Serdes.long(), 5000)"
    assert str(Serdes.session_windowed(Serdes.string())) == "Serdes.session_windowed(Serdes.string())"
    assert str(AVRO) == "Serdes.avro('shop.Trade')"
    assert str(PROTOBUF) == "Serdes.protobuf('shop.Trade')"
    assert str(JSON_SCHEMA) == "Serdes.json_schema('Trade')"
    assert str(Celsius()) == "Celsius()"


def test_only_some_serdes_send_records_to_python(spark: SparkSession) -> None:
    def runs_python(column: Column) -> bool:
        plan = frame(spark, b"").select(column)._jdf.queryExecution().executedPlan().toString()
        return "ArrowEvalPython" in plan

    python = [str(serde) for serde, _ in SERDES if runs_python(serde.try_from_bytes(F.col("data")))]
    assert python == [
        "Serdes.list(Serdes.long())",
        "Serdes.list(Serdes.string())",
        "Serdes.time_windowed(Celsius(), 5000)",
        str(AVRO),
        str(PROTOBUF),
        str(JSON_SCHEMA),
        "Celsius()",
    ]


@pytest.mark.parametrize(
    ("data_type", "serde"),
    [
        ("bigint", Serdes.long()),
        ("string", Serdes.string()),
        ("double", Serdes.double()),
        ("float", Serdes.float()),
        ("boolean", Serdes.boolean()),
        ("struct<a:int>", Serdes.json("struct<a:int>")),
    ],
)
def test_the_serde_of_a_type_is_the_one_kafka_has_for_it(data_type: str, serde: Serde) -> None:
    assert Serdes.for_type(T.DataType.fromDDL(data_type)) == serde


def entries(serde: Serde) -> st.SearchStrategy[Any]:
    kinds: dict[Serde, st.SearchStrategy[Any]] = {
        Serdes.long(): st.integers(-(2**63), 2**63 - 1),
        Serdes.double(): st.floats(allow_nan=False),
        Serdes.string(): st.text(st.characters(codec="utf-8")),
        Serdes.uuid(): st.uuids(),
    }
    return kinds[serde]


@given(st.data())
def test_any_list_is_read_as_it_was_written_and_no_part_of_its_bytes_is_a_list(data: st.DataObject) -> None:
    inner = data.draw(st.sampled_from([Serdes.long(), Serdes.double(), Serdes.string(), Serdes.uuid()]))
    value = data.draw(st.lists(st.none() | entries(inner), max_size=5))
    serde = Serdes.list(inner)
    written = serde.serialize(value) or b""
    assert serde.deserialize(written) == value
    part = written[: data.draw(st.integers(0, len(written) - 1))]
    with pytest.raises(ValueError, match="cannot read"):
        serde.deserialize(part)


@given(st.lists(st.integers(-(2**31), 2**31 - 1) | st.none(), min_size=1, max_size=20))
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_integer_has_the_same_bytes_in_spark(spark: SparkSession, numbers: list[int | None]) -> None:
    serde = Serdes.integer()
    rows = spark.createDataFrame([(number,) for number in numbers], "number int").coalesce(1)
    written = [row.data for row in rows.select(serde.to_bytes(F.col("number")).alias("data")).collect()]
    assert [None if data is None else bytes(data) for data in written] == [serde.serialize(each) for each in numbers]
    read = frame(spark, *written).coalesce(1).select(serde.from_bytes(F.col("data")).alias("v")).collect()
    assert [row.v for row in read] == numbers
