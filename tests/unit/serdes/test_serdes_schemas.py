"""Protobuf and JSON Schema: Confluent's wire format, Spark types, and what is refused."""

import base64
import datetime
import pickle
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamskit import Serdes, TopologyTestDriver
from streamskit.dsl.builder import StreamsBuilder
from streamskit.serdes import RegistryError, SchemaRegistry
from streamskit.serdes.protobuf import read_indexes, write_indexes
from streamskit.serdes.protobuf_types import to_row
from tests.unit.serdes.serdes_schemas import SHOP, class_of, message_class, trade_class

FIELDS = {
    "text": "STRING", "fine": "DOUBLE", "rough": "FLOAT", "small": "INT32", "large": "SINT64", "count": "UINT32",
    "huge": "UINT64", "flag": "BOOL", "raw": "BYTES",
}  # fmt: skip

ROW: dict[str, Any] = {
    "text": "Käse", "fine": 0.1, "rough": 1.5, "small": -5, "large": -(2**40), "count": 2**31, "huge": 2**63,
    "flag": True, "raw": b"\x00\xff", "side": "SELL", "at": datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC),
    "inner": {"x": 7},
    "tags": ["a", "b"], "inners": [{"x": 1}], "by_name": {"k": {"x": 2}}, "counts": {3: 4}, "sides": ["BUY"],
}  # fmt: skip


def everything() -> Any:
    """Return the class of a message with a field of each kind; it is the second one of its file."""
    file = FileDescriptorProto(
        name="everything.proto", package="shop", syntax="proto3", dependency=["google/protobuf/timestamp.proto"]
    )
    file.message_type.add(name="First").field.add(name="x", number=1, type="TYPE_INT32", label="LABEL_OPTIONAL")
    message = file.message_type.add(name="Everything")
    for name, kind in FIELDS.items():
        add(message, name, kind)
    side = message.enum_type.add(name="Side")
    side.value.add(name="BUY", number=0)
    side.value.add(name="SELL", number=1)
    add(message.nested_type.add(name="Inner"), "x", "INT64")
    for entry, key, value in (("ByNameEntry", "STRING", ".shop.Everything.Inner"), ("CountsEntry", "INT32", "")):
        made = message.nested_type.add(name=entry)
        made.options.map_entry = True
        add(made, "key", key)
        add(made, "value", "MESSAGE" if value else "INT64", value)
    add(message, "side", "ENUM", ".shop.Everything.Side")
    add(message, "at", "MESSAGE", ".google.protobuf.Timestamp")
    add(message, "inner", "MESSAGE", ".shop.Everything.Inner")
    add(message, "tags", "STRING", many=True)
    add(message, "inners", "MESSAGE", ".shop.Everything.Inner", many=True)
    add(message, "by_name", "MESSAGE", ".shop.Everything.ByNameEntry", many=True)
    add(message, "counts", "MESSAGE", ".shop.Everything.CountsEntry", many=True)
    add(message, "sides", "ENUM", ".shop.Everything.Side", many=True)
    return class_of(file, "shop.Everything")


def add(message: Any, name: str, kind: str, type_name: str = "", many: bool = False) -> None:
    label = FieldDescriptorProto.LABEL_REPEATED if many else FieldDescriptorProto.LABEL_OPTIONAL
    field = message.field.add(name=name, number=len(message.field) + 1, label=label)
    field.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind}")
    if type_name:
        field.type_name = type_name


EVERYTHING = everything()


@pytest.fixture
def registry() -> SchemaRegistry:
    """A registry of the test's own."""
    return SchemaRegistry(f"mock://{uuid4()}")


def test_protobufs_wire_format_has_the_way_to_the_message_before_it(registry: SchemaRegistry) -> None:
    trade = Serdes.protobuf(trade_class(), registry, topic="trades")
    assert trade.serialize(trade_class()(symbol="KO")) == b"\x00" + b"\x00\x00\x00\x01" + b"\x00" + b"\x0a\x02KO"
    second = Serdes.protobuf(EVERYTHING, registry, topic="everything")
    assert second.serialize({"text": "KO"}) == b"\x00" + b"\x00\x00\x00\x02" + b"\x02\x02" + b"\x0a\x02KO"


@pytest.mark.parametrize("path", ["shop.Everything", "shop.Everything.Inner"])
def test_confluents_protobuf_serializer_writes_the_same_and_reads_it(registry: SchemaRegistry, path: str) -> None:
    kind = EVERYTHING if path == "shop.Everything" else type(EVERYTHING().inner)
    serde = Serdes.protobuf(kind, registry, topic="everything")
    message = kind(text="Käse", small=3) if kind is EVERYTHING else kind(x=3)
    context = SerializationContext("everything", MessageField.VALUE)
    theirs = ProtobufSerializer(kind, registry.client)(message, context)
    assert theirs == serde.serialize(message)
    assert serde.deserialize(theirs) == message
    assert (
        ProtobufDeserializer(kind, {}, schema_registry_client=registry.client)(serde.serialize(message), context)
        == message
    )


@pytest.mark.spark
def test_every_protobuf_type_comes_into_a_column_and_out_again(spark: SparkSession, registry: SchemaRegistry) -> None:
    serde = Serdes.protobuf(EVERYTHING, registry, topic="everything")
    data = serde.serialize(ROW)
    assert to_row(serde.deserialize(data)) == ROW
    read = spark.createDataFrame([(bytearray(data or b""),)], "data binary").select(
        serde.from_bytes(F.col("data")).alias("v")
    )
    assert read.schema["v"].dataType.simpleString() == (
        "struct<text:string,fine:double,rough:float,small:int,large:bigint,count:bigint,huge:decimal(20,0),flag:boolean,"
        "raw:binary,side:string,at:timestamp,inner:struct<x:bigint>,tags:array<string>,inners:array<struct<x:bigint>>,"
        "by_name:map<string,struct<x:bigint>>,counts:map<int,bigint>,sides:array<string>>"
    )
    assert bytes(read.select(serde.to_bytes(F.col("v")).alias("data")).collect()[0].data) == data


def test_a_message_field_that_is_not_there_is_none_and_a_number_is_zero(registry: SchemaRegistry) -> None:
    row = to_row(EVERYTHING())
    assert (row["inner"], row["at"], row["small"], row["side"], row["tags"]) == (None, None, 0, "BUY", [])


def test_a_protobuf_serde_makes_its_class_anew_in_another_process(registry: SchemaRegistry) -> None:
    serde = Serdes.protobuf(EVERYTHING, registry, topic="everything")
    copied = pickle.loads(pickle.dumps(serde))
    assert (copied, hash(copied)) == (serde, hash(serde))
    assert isinstance(serde.deserialize(copied.serialize(ROW)), EVERYTHING)


@pytest.mark.spark
def test_a_python_reducer_sees_messages(registry: SchemaRegistry) -> None:
    trade = trade_class()
    serde = Serdes.protobuf(trade, registry, topic="trades")
    builder = StreamsBuilder()
    trades = builder.stream("trades", value=serde)
    trades.group_by_key().reduce(
        lambda one, two: {"symbol": two.symbol, "price": one.price + two.price}
    ).to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        for price in (1.5, 2.0):
            driver.create_input_topic("trades").pipe_input("KO", trade(symbol="KO", price=price))
        assert driver.create_output_topic("out").read_records_to_list()[-1].value == trade(symbol="KO", price=3.5)


def test_new_and_old_protobuf_records_are_read_by_both(registry: SchemaRegistry) -> None:
    old = Serdes.protobuf(trade_class(), registry, topic="trades")
    fields = {"symbol": "STRING", "price": "DOUBLE", "size": "INT32"}
    new = Serdes.protobuf(message_class("trade.proto", "Trade", fields), registry, topic="trades")
    assert to_row(new.deserialize(old.serialize({"symbol": "KO", "price": 1.0}))) == {
        "symbol": "KO",
        "price": 1.0,
        "size": 0,
    }
    assert to_row(old.deserialize(new.serialize({"symbol": "KO", "size": 7}))) == {"symbol": "KO", "price": 0.0}
    with pytest.raises(RegistryError, match=r"field 1 of 'shop\.Trade', 'symbol', has another type"):
        Serdes.protobuf(message_class("trade.proto", "Trade", {"symbol": "INT32"}), registry, topic="trades")


def test_another_message_of_the_same_file_is_not_taken_for_this_one(registry: SchemaRegistry) -> None:
    inner = Serdes.protobuf(type(EVERYTHING().inner), registry, topic="everything")
    outer = Serdes.protobuf(EVERYTHING, registry, topic="everything")
    with pytest.raises(ValueError, match=r"it is a message shop\.Everything\.Inner\."):
        outer.deserialize(inner.serialize({"x": 1}))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (5, "it is a int, neither a message of the class shop.Everything nor a dict"),
        ({"nothing": 1}, "shop.Everything has no field 'nothing'"),
        ({"small": "one"}, "field 'small'"),
        ({"small": 2**31}, "out of range"),
        ({"huge": 1.9}, "field 'huge': 1.9 is not a whole number"),
        ({"side": "HOLD"}, "shop.Everything.Side has no value 'HOLD'"),
        ({"tags": "ab"}, "field 'tags': it is of type str, not a list"),
        ({"inner": 5}, "field 'inner': it is of type int, not a dict"),
        ({"inners": [5]}, "field 'inners': it is of type int, not a dict"),
    ],
)
def test_a_value_that_the_message_does_not_have_is_not_written(registry: SchemaRegistry, value: Any, said: str) -> None:
    serde = Serdes.protobuf(EVERYTHING, registry, topic="everything")
    with pytest.raises(ValueError, match=r"Serdes\.protobuf\('shop\.Everything'\) cannot write") as raised:
        serde.serialize(value)
    assert said in str(raised.value)


def test_messages_without_a_spark_type_are_refused_by_name(registry: SchemaRegistry) -> None:
    file = FileDescriptorProto(name="tree.proto", package="shop", syntax="proto3")
    add(file.message_type.add(name="Tree"), "left", "MESSAGE", ".shop.Tree")
    file.message_type.add(name="Nothing")
    with pytest.raises(ValueError, match=r"Message shop\.Tree holds its own kind"):
        Serdes.protobuf(class_of(file, "shop.Tree"), registry)
    with pytest.raises(ValueError, match=r"Message shop\.Nothing has no fields"):
        Serdes.protobuf(class_of(file, "shop.Nothing"), registry)


@given(st.lists(st.integers(0, 2**20), min_size=1, max_size=5), st.binary(max_size=3))
def test_any_way_to_a_message_is_read_as_it_was_written(path: list[int], rest: bytes) -> None:
    written = write_indexes(path)
    assert read_indexes(written + rest) == (path, len(written))


def test_confluents_json_serializer_writes_a_text_of_the_same_schema(registry: SchemaRegistry) -> None:
    serde = Serdes.json_schema(SHOP, registry, topic="trades")
    context = SerializationContext("trades", MessageField.VALUE)
    trade = {"symbol": "KO", "price": 1.5}
    theirs = JSONSerializer(registry.schema(1, "JSON"), registry.client)(trade, context)
    assert serde.serialize(trade) == b'\x00\x00\x00\x00\x01{"symbol":"KO","price":1.5}'
    assert serde.deserialize(theirs) == trade
    assert JSONDeserializer(registry.schema(1, "JSON"))(serde.serialize(trade), context) == trade


ALL_OF_JSON: dict[str, Any] = {
    "title": "All",
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "whole": {"type": ["integer", "null"]},
        "number": {"type": "number"},
        "flag": {"type": "boolean"},
        "side": {"enum": ["BUY", "SELL"]},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "maybe": {"oneOf": [{"type": "null"}, {"type": "object", "properties": {"x": {"type": "integer"}}}]},
    },
    "$defs": {"tag": {"type": "string"}},
}


@pytest.mark.spark
def test_every_json_type_comes_into_a_column_and_out_again(spark: SparkSession, registry: SchemaRegistry) -> None:
    serde = Serdes.json_schema(ALL_OF_JSON, registry, topic="all")
    value = {
        "text": "Käse", "whole": None, "number": 1.5, "flag": True, "side": "BUY", "tags": ["a"], "counts": {"k": 1},
        "maybe": {"x": 1},
    }  # fmt: skip
    data = serde.serialize(value)
    read = spark.createDataFrame([(bytearray(data or b""),)], "data binary").select(
        serde.from_bytes(F.col("data")).alias("v")
    )
    assert read.schema["v"].dataType.simpleString() == (
        "struct<text:string,whole:bigint,number:double,flag:boolean,side:string,tags:array<string>,"
        "counts:map<string,bigint>,maybe:struct<x:bigint>>"
    )
    assert bytes(read.select(serde.to_bytes(F.col("v")).alias("data")).collect()[0].data) == data


def test_a_field_that_spark_has_and_the_json_has_not_is_left_out(registry: SchemaRegistry) -> None:
    serde = Serdes.json_schema(ALL_OF_JSON, registry, topic="all")
    data = serde.serialize({"text": None, "whole": None, "maybe": None}) or b""
    assert data[5:] == b'{"whole":null,"maybe":null}'


def test_a_field_that_is_not_there_is_left_out_of_the_objects_of_a_map_too(registry: SchemaRegistry) -> None:
    trade = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    serde = Serdes.json_schema({"title": "M", "type": "object", "additionalProperties": trade}, registry, topic="maps")
    assert (serde.serialize({"x": {"a": "1", "b": None}}) or b"")[5:] == b'{"x":{"a":"1"}}'
    with pytest.raises(ValueError, match="None is not of type 'object'"):
        serde.serialize({"x": None})


@pytest.mark.spark
def test_columns_read_a_whole_number_that_no_double_is_exactly(spark: SparkSession, registry: SchemaRegistry) -> None:
    properties = {
        "id": {"type": "number"},
        "of": {"type": "array", "items": {"type": "number"}},
        "n": {"type": "integer"},
    }
    serde = Serdes.json_schema({"title": "N", "type": "object", "properties": properties}, registry, topic="numbers")
    value = {"id": 2**53 + 1, "of": [2**60 + 1, 1.5], "n": 2**53 + 1}
    data = serde.serialize(value)
    assert serde.deserialize(data) == value
    row = spark.createDataFrame([(bytearray(data or b""),)], "data binary").select(serde.from_bytes(F.col("data")))
    assert tuple(row.collect()[0][0]) == (2.0**53, [2.0**60, 1.5], 2**53 + 1)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (
            {"type": "object", "properties": {"a": {"type": ["string", "integer"]}}},
            "property 'a' may be string or integer",
        ),
        ({"type": "object", "properties": {"a": {}}}, "property 'a' may be anything"),
        ({"type": "object"}, "the schema is an object without a description"),
        ({"type": "object", "properties": {"a": {"$ref": "other.json"}}}, "refers to 'other.json', which is outside"),
        (
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/no"}}},
            "refers to '#/$defs/no', and has nothing there",
        ),
        (
            {"$defs": {"t": {"type": "object", "properties": {"a": {"$ref": "#/$defs/t"}}}}, "$ref": "#/$defs/t"},
            "property 'a' holds its own kind",
        ),
        ({"type": "strong"}, "This is not a JSON Schema"),
    ],
)
def test_json_schemas_without_a_spark_type_are_refused_by_name(
    registry: SchemaRegistry, schema: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - what it says is checked below
        Serdes.json_schema(schema, registry, topic="trades")
    assert said in str(raised.value)
    assert registry.client.get_subjects() == []


def test_the_schema_that_is_registered_can_be_compiled_again(registry: SchemaRegistry) -> None:
    Serdes.protobuf(EVERYTHING, registry, topic="everything")
    file = FileDescriptorProto.FromString(base64.b64decode(registry.schema(1, "PROTOBUF")))
    assert [message.name for message in file.message_type] == ["First", "Everything"]
