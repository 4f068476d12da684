"""Avro: the wire format is Confluent's, schemas evolve, and every type has its Spark type or is refused by name."""

import copy
import datetime
import pickle
import time
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID, uuid4

import pytest
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamskit import Serdes, TopologyTestDriver
from streamskit.dsl.builder import StreamsBuilder
from streamskit.serdes import RegistryError, SchemaRegistry
from tests.unit.serdes.serdes_schemas import TRADE, trade_class

EVERYTHING: dict[str, Any] = {
    "type": "record",
    "name": "Everything",
    "namespace": "shop",
    "fields": [
        {"name": "flag", "type": "boolean"},
        {"name": "small", "type": "int"},
        {"name": "large", "type": "long"},
        {"name": "rough", "type": "float"},
        {"name": "fine", "type": "double"},
        {"name": "raw", "type": "bytes"},
        {"name": "text", "type": "string"},
        {"name": "four", "type": {"type": "fixed", "name": "Four", "size": 4}},
        {"name": "side", "type": {"type": "enum", "name": "Side", "symbols": ["BUY", "SELL"]}},
        {"name": "other_side", "type": "Side"},
        {"name": "maybe", "type": ["null", "int"], "default": None},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "long"}},
        {
            "name": "inner",
            "type": {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "int"}]},
        },
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "milli", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "micro", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "weight", "type": {"type": "int", "logicalType": "unknown-to-all"}},
    ],
}

VALUE: dict[str, Any] = {
    "flag": True,
    "small": -5,
    "large": 2**40,
    "rough": 1.5,
    "fine": 0.1,
    "raw": b"\x00\xff",
    "text": "Käse",
    "four": b"abcd",
    "side": "SELL",
    "other_side": "BUY",
    "maybe": None,
    "tags": ["a", "b"],
    "counts": {"k": 1},
    "inner": {"x": 7},
    "day": datetime.date(2024, 1, 2),
    "milli": datetime.datetime(2024, 1, 2, 3, 4, 5, 678000, tzinfo=datetime.UTC),
    "micro": datetime.datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.UTC),
    "local": datetime.datetime(2024, 1, 2, 3, 4, 5),
    "amount": Decimal("12.34"),
    "id": UUID(int=5),
    "weight": 3,
}


@pytest.fixture
def registry() -> SchemaRegistry:
    """A registry of the test's own."""
    return SchemaRegistry(f"mock://{uuid4()}")


def with_field(field: dict[str, Any]) -> dict[str, Any]:
    changed = copy.deepcopy(TRADE)
    changed["fields"].append(field)
    return changed


def test_the_wire_format_is_a_zero_the_schema_id_and_the_fields_one_after_another(registry: SchemaRegistry) -> None:
    serde = Serdes.avro(TRADE, registry, topic="trades")
    data = serde.serialize({"symbol": "KO", "price": 1.0, "note": None})
    assert data == b"\x00" + b"\x00\x00\x00\x01" + b"\x04KO" + b"\x00\x00\x00\x00\x00\x00\xf0\x3f" + b"\x00"


def test_confluents_serializer_writes_the_same_and_reads_it(registry: SchemaRegistry) -> None:
    serde = Serdes.avro(EVERYTHING, registry, topic="everything")
    context = SerializationContext("everything", MessageField.VALUE)
    schema = registry.schema(1, "AVRO")
    theirs = AvroSerializer(registry.client, schema)(VALUE, context)
    assert theirs == serde.serialize(VALUE)
    assert AvroDeserializer(registry.client)(serde.serialize(VALUE), context) == VALUE
    assert serde.deserialize(theirs) == VALUE


@pytest.mark.spark
def test_every_avro_type_comes_into_a_column_and_out_again(spark: SparkSession, registry: SchemaRegistry) -> None:
    serde = Serdes.avro(EVERYTHING, registry, topic="everything")
    data = serde.serialize(VALUE)
    rows = spark.createDataFrame([(bytearray(data or b""),)], "data binary")
    read = rows.select(serde.from_bytes(F.col("data")).alias("v"))
    assert read.schema["v"].dataType.simpleString() == (
        "struct<flag:boolean,small:int,large:bigint,rough:float,fine:double,raw:binary,text:string,four:binary,side:string,"
        "other_side:string,maybe:int,tags:array<string>,counts:map<string,bigint>,inner:struct<x:int>,day:date,"
        "milli:timestamp,micro:timestamp,local:timestamp_ntz,amount:decimal(10,2),id:string,weight:int>"
    )
    assert bytes(read.select(serde.to_bytes(F.col("v")).alias("data")).collect()[0].data) == data
    assert read.collect()[0].v.micro.microsecond == 678901


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ({"name": "either", "type": ["int", "string"]}, "field 'either' is a union of int, string"),
        (
            {"name": "at", "type": {"type": "int", "logicalType": "time-millis"}},
            "field 'at' has the logical type time-millis",
        ),
        ({"name": "next", "type": ["null", "shop.Trade"]}, "field 'next' is of type 'shop.Trade' inside itself"),
        ({"name": "odd", "type": "number"}, "This is not an Avro schema"),
    ],
)
def test_what_has_no_spark_type_is_refused_by_name(registry: SchemaRegistry, field: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Serdes.avro(with_field(field), registry, topic="trades")
    assert registry.client.get_subjects() == []


def test_an_added_field_with_a_default_is_read_from_old_bytes_and_new(registry: SchemaRegistry) -> None:
    old = Serdes.avro(TRADE, registry, topic="trades")
    new = Serdes.avro(with_field({"name": "size", "type": "int", "default": 100}), registry, topic="trades")
    trade = {"symbol": "KO", "price": 1.0, "note": None}
    assert new.deserialize(old.serialize(trade)) == {**trade, "size": 100}
    assert new.deserialize(new.serialize({**trade, "size": 7})) == {**trade, "size": 7}
    assert new.serialize(trade) == new.serialize({**trade, "size": 100})
    assert old.deserialize(new.serialize({**trade, "size": 7})) == trade


def test_an_added_field_without_a_default_is_refused(registry: SchemaRegistry) -> None:
    Serdes.avro(TRADE, registry, topic="trades")
    with pytest.raises(RegistryError, match=r"refuses the schema for 'trades-value': .* version 1 .*size.* a default"):
        Serdes.avro(with_field({"name": "size", "type": "int"}), registry, topic="trades")


def test_a_field_of_another_type_is_refused_but_not_for_another_subject(registry: SchemaRegistry) -> None:
    Serdes.avro(TRADE, registry, topic="trades")
    changed = copy.deepcopy(TRADE)
    changed["fields"][0]["type"] = "long"
    with pytest.raises(RegistryError, match="long not compatible with writer type: string"):
        Serdes.avro(changed, registry, topic="trades")
    assert Serdes.avro(changed, registry, subject="other").deserialize(None) is None


class Side(Enum):
    """A side of a trade."""

    BUY = 0
    SELL = 1


@dataclass
class Inner:
    """A part of a record."""

    x: int


@dataclass
class Order:
    """A record with parts."""

    side: Side
    first: Inner
    rest: list[Inner]
    named: dict[str, Inner]
    last: Inner | None = None


ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "side", "type": {"type": "enum", "name": "Side", "symbols": ["BUY", "SELL"]}},
        {"name": "first", "type": {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "int"}]}},
        {"name": "rest", "type": {"type": "array", "items": "Inner"}},
        {"name": "named", "type": {"type": "map", "values": "Inner"}},
        {"name": "last", "type": ["null", "Inner"], "default": None},
    ],
}


def test_a_class_of_ones_own_stands_for_records_with_all_its_parts(registry: SchemaRegistry) -> None:
    serde = Serdes.avro(ORDER, registry, topic="orders", record_class=Order)
    order = Order(Side.SELL, Inner(1), [Inner(2)], {"a": Inner(3)}, Inner(4))
    assert serde.deserialize(serde.serialize(order)) == order
    as_dict = {"side": "SELL", "first": {"x": 1}, "rest": [{"x": 2}], "named": {"a": {"x": 3}}, "last": {"x": 4}}
    assert serde.serialize(as_dict) == serde.serialize(order)


@pytest.mark.spark
def test_a_python_reducer_sees_objects_of_the_class_and_columns_see_fields(registry: SchemaRegistry) -> None:
    serde = Serdes.avro(ORDER, registry, topic="orders", record_class=Order)
    builder = StreamsBuilder()
    orders = builder.stream("orders", value=serde).filter(lambda k, v: v.first.x > 0)
    orders.group_by_key().reduce(
        lambda one, two: Order(two.side, one.first, one.rest + two.rest, {}, two.first)
    ).to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        orders_in = driver.create_input_topic("orders")
        orders_in.pipe_input("ann", Order(Side.BUY, Inner(1), [Inner(2)], {}))
        orders_in.pipe_input("ann", Order(Side.SELL, Inner(3), [Inner(4)], {}))
        records = driver.create_output_topic("out").read_records_to_list()
    assert records[-1].value == Order(Side.SELL, Inner(1), [Inner(2), Inner(4)], {}, Inner(3))


def test_any_object_with_the_fields_can_be_written(registry: SchemaRegistry) -> None:
    class Trade:
        def __init__(self, symbol: str, price: float, note: str | None) -> None:
            self.symbol, self.price, self.note = symbol, price, note

    serde = Serdes.avro(TRADE, registry, topic="trades", record_class=Trade)
    data = serde.serialize(Trade("KO", 1.0, "a"))
    assert vars(serde.deserialize(data)) == {"symbol": "KO", "price": 1.0, "note": "a"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"small": 2**31}, "small is <2147483648> of type <class 'int'> expected int"),
        ({"text": 5}, "text is <5> of type <class 'int'> expected string"),
        ({"side": "HOLD"}, "side is <HOLD>"),
        ({"four": b"abc"}, "four is <b'abc'>"),
        ({"amount": Decimal("1.234")}, "Scale provided in schema does not match"),
        ({"id": "no uuid"}, "badly formed"),
        ({"surplus": 1}, "more fields than the schema specifies: surplus"),
        ({"flag": None}, "Field(shop.Everything.flag) is None expected boolean"),
    ],
)
def test_a_value_that_the_schema_does_not_allow_is_not_written(
    registry: SchemaRegistry, changes: dict[str, Any], said: str
) -> None:
    serde = Serdes.avro(EVERYTHING, registry, topic="everything")
    with pytest.raises(ValueError, match=r"Serdes\.avro\('shop\.Everything'\) cannot write .*") as raised:
        serde.serialize({**VALUE, **changes})
    assert said in str(raised.value)


def test_no_part_of_a_records_bytes_is_a_record(registry: SchemaRegistry) -> None:
    serde = Serdes.avro(EVERYTHING, registry, topic="everything")
    data = serde.serialize(VALUE) or b""
    for length in range(len(data)):
        with pytest.raises(ValueError, match="cannot read"):
            serde.deserialize(data[:length])
    with pytest.raises(ValueError, match="1 bytes are left over behind the value"):
        serde.deserialize(data + b"\x00")


def test_a_serde_that_has_been_to_another_process_is_the_same(registry: SchemaRegistry) -> None:
    serde = Serdes.avro(TRADE, registry, topic="trades")
    copied = pickle.loads(pickle.dumps(serde))
    assert (copied, hash(copied)) == (serde, hash(serde))
    data = serde.serialize({"symbol": "KO", "price": 1.0, "note": None})
    assert copied.deserialize(data) == serde.deserialize(data)


def test_topic_and_subject_together_are_refused(registry: SchemaRegistry) -> None:
    with pytest.raises(ValueError, match="not both"):
        Serdes.avro(TRADE, registry, topic="trades", subject="trades-key")


def test_without_topic_and_subject_the_record_gives_its_name(registry: SchemaRegistry) -> None:
    Serdes.avro(TRADE, registry)
    assert registry.client.get_subjects() == ["shop.Trade"]


MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-millis"}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}
ID = {"type": "string", "logicalType": "uuid"}
NOON = datetime.datetime(2024, 1, 2, 12, tzinfo=datetime.UTC)
NOON_MILLIS = 1_704_196_800_000


def record(**types: Any) -> dict[str, Any]:
    """Return the schema of a record; a type and its default are a tuple."""
    fields = [
        {"name": name, "type": each[0], "default": each[1]} if isinstance(each, tuple) else {"name": name, "type": each}
        for name, each in types.items()
    ]
    return {"type": "record", "name": "Changed", "fields": fields}


@pytest.mark.parametrize(
    ("old", "written", "new", "read"),
    [
        ("long", NOON_MILLIS, MILLIS, NOON),
        (MILLIS, NOON, "long", NOON_MILLIS),
        (MILLIS, NOON, MICROS, NOON),
        (MILLIS, NOON, LOCAL, NOON.replace(tzinfo=None)),
        (LOCAL, NOON.replace(tzinfo=None), MICROS, NOON),
        ("int", 1, {"type": "int", "logicalType": "date"}, datetime.date(1970, 1, 2)),
        ("bytes", b"\x7b", MONEY, Decimal("1.23")),
        (MONEY, Decimal("1.23"), "bytes", b"\x7b"),
        (MONEY, Decimal("1.23"), {**MONEY, "precision": 9, "scale": 4}, Decimal("1.23")),
        ("string", str(UUID(int=5)), ID, UUID(int=5)),
        (ID, UUID(int=5), "string", str(UUID(int=5))),
        ("int", 3, ["null", "long"], 3),
        (["null", "long"], NOON_MILLIS, ["null", MILLIS], NOON),
        (["null", "long"], None, ["null", MILLIS], None),
        ({"type": "array", "items": "long"}, [NOON_MILLIS], {"type": "array", "items": MILLIS}, [NOON]),
        ({"type": "map", "values": "long"}, {"a": NOON_MILLIS}, {"type": "map", "values": MILLIS}, {"a": NOON}),
    ],
)
@pytest.mark.spark
def test_a_changed_type_is_read_as_the_new_schema_says(
    spark: SparkSession, registry: SchemaRegistry, old: Any, written: Any, new: Any, read: Any
) -> None:
    data = Serdes.avro(record(x=old, meant=MILLIS), registry, topic="t").serialize({"x": written, "meant": NOON})
    serde = Serdes.avro(record(x=new, meant=MILLIS), registry, topic="t")
    assert repr(serde.deserialize(data)) == repr({"x": read, "meant": NOON})
    row = spark.createDataFrame([(bytearray(data or b""),)], "data binary").select(
        serde.from_bytes(F.col("data")).alias("v"), serde.try_from_bytes(F.col("data")).alias("tried")
    )
    expected = str(read) if isinstance(read, UUID) else read.replace(tzinfo=None) if read == NOON else read
    found = row.collect()[0]
    assert found.tried.error is None
    if not isinstance(read, list | dict):
        assert found.v.x == expected


def test_the_default_of_an_added_field_is_a_value_of_its_type_and_every_records_own(registry: SchemaRegistry) -> None:
    data = Serdes.avro(record(a="int"), registry, topic="t").serialize({"a": 1})
    inner = {"type": "record", "name": "Inner", "fields": [{"name": "raw", "type": "bytes"}]}
    added: dict[str, Any] = {
        "raw": ("bytes", "\u00ff"), "at": (MILLIS, NOON_MILLIS), "money": (MONEY, "\u0001"), "id": (ID, ""),
        "day": ({"type": "int", "logicalType": "date"}, 0), "inner": (inner, {"raw": "\u00fe"}),
        "tags": ({"type": "array", "items": "string"}, []), "none": (["null", MILLIS], None),
        "four": ({"type": "fixed", "name": "Four", "size": 2}, "\u00ff\u0000"),
    }  # fmt: skip
    serde = Serdes.avro(record(a="int", **added), registry, topic="t")
    first, second = serde.deserialize(data), serde.deserialize(data)
    first["tags"].append("of the first record")
    assert second == {
        "a": 1, "raw": b"\xff", "at": NOON, "money": Decimal("0.01"), "id": "", "day": datetime.date(1970, 1, 1),
        "inner": {"raw": b"\xfe"}, "tags": [], "none": None, "four": b"\xff\x00",
    }  # fmt: skip
    assert serde.deserialize(data)["tags"] == []


def test_bytes_of_an_older_schema_end_where_the_value_does(registry: SchemaRegistry) -> None:
    data = Serdes.avro(record(at="long", more="string"), registry, topic="t").serialize({"at": 1, "more": "x"}) or b""
    serde = Serdes.avro(record(at=MILLIS), registry, topic="t")
    assert serde.deserialize(data) == {"at": datetime.datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=datetime.UTC)}
    with pytest.raises(ValueError, match="1 bytes are left over behind the value"):
        serde.deserialize(data + b"\x00")
    with pytest.raises(ValueError, match="the bytes end before the value does"):
        serde.deserialize(data[:-3])


def test_a_time_without_a_zone_is_in_utc_whatever_the_machines_zone_is(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    optional, inner = ["null", MICROS], {"type": "record", "name": "Inner", "fields": [{"name": "at", "type": MILLIS}]}
    schema = record(at=MILLIS, maybe=optional, of={"type": "array", "items": MILLIS}, inner=inner, local=LOCAL)
    serde = Serdes.avro(schema, registry, topic="t")
    plain = NOON.replace(tzinfo=None)
    data = serde.serialize({"at": NOON, "maybe": NOON, "of": [NOON], "inner": {"at": NOON}, "local": plain})
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        naive = {"at": plain, "maybe": plain, "of": [plain], "inner": {"at": plain}, "local": plain}
        assert serde.serialize(naive) == data
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.spark
def test_columns_read_records_of_a_class_that_is_no_dataclass_and_lists_of_them(
    spark: SparkSession, registry: SchemaRegistry
) -> None:
    class Trade:
        def __init__(self, symbol: str, price: float, note: str | None) -> None:
            self.symbol, self.price, self.note = symbol, price, note

    serde = Serdes.avro(TRADE, registry, topic="trades", record_class=Trade)
    messages = Serdes.protobuf(trade_class(), registry, topic="messages")
    for many in (Serdes.list(serde), Serdes.list(messages)):
        data = many.serialize([{"symbol": "KO", "price": 1.0, **({"note": None} if "avro" in str(many) else {})}, None])
        rows = spark.createDataFrame([(bytearray(data or b""),)], "data binary")
        row = rows.select(many.from_bytes(F.col("data")).alias("v")).collect()[0]
        assert [each and each.symbol for each in row.v] == ["KO", None]
    assert serde.deserialize_row(serde.serialize(Trade("KO", 1.0, None))) == {
        "symbol": "KO",
        "price": 1.0,
        "note": None,
    }


def test_a_logical_type_that_does_not_go_with_its_type_is_passed_over(registry: SchemaRegistry) -> None:
    types = {
        "id": {"type": "fixed", "size": 16, "name": "Id", "logicalType": "uuid"},
        "day": {"type": "string", "logicalType": "date"},
    }
    serde = Serdes.avro(record(**types), registry, topic="t")
    value = {"id": UUID(int=5).bytes, "day": "Monday"}
    assert serde.deserialize(serde.serialize(value)) == value
    assert serde.data_type.simpleString() == "struct<id:binary,day:string>"
