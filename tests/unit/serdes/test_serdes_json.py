"""JSON of a Spark schema: Python writes only what the schema's readers read, and numbers without digits are words."""

import math
import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from streamskit import Serdes, TopologyTestDriver
from streamskit.dsl.builder import StreamsBuilder
from streamskit.serdes import SerdeError, ddl

ORDER = Serdes.json("id string, quantity long, small smallint, price double, rough float, paid boolean, lines array<struct<n int>>, counts map<string,bigint>")  # fmt: skip  # noqa: E501


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"quantity": 105.0}, '{"quantity":105}'),
        ({"lines": [{"n": 2.0}, None, {"n": None}]}, '{"lines":[{"n":2},null,{"n":null}]}'),
        ({"counts": {"a": 1.0, "b": None}}, '{"counts":{"a":1,"b":null}}'),
        ({"price": 2, "rough": 1e-40}, '{"price":2,"rough":1e-40}'),
        ({"id": None, "quantity": None, "more": 1.0}, '{"id":null,"quantity":null,"more":1.0}'),
        ({"id": {"as": "text"}}, '{"id":{"as":"text"}}'),
        ({"id": 5}, '{"id":5}'),
        ({"lines": ({"n": 1},)}, '{"lines":[{"n":1}]}'),
        (("KO", 1.5), '["KO",1.5]'),
        ({}, "{}"),
    ],
)
def test_json_writes_a_value_as_its_type_has_it_and_other_fields_as_they_are(value: Any, written: str) -> None:
    before = repr(value)
    assert ORDER.serialize(value) == written.encode()
    assert repr(value) == before


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"quantity": "105"}, "field 'quantity': it is of type str, not a whole number."),
        ({"quantity": True}, "field 'quantity': it is of type bool, not a whole number."),
        ({"quantity": 1.5}, "field 'quantity': 1.5 is not a whole number."),
        ({"quantity": math.nan}, "field 'quantity': nan is not a whole number."),
        ({"quantity": 2**63}, "field 'quantity': 9223372036854775808 is out of the range of bigint."),
        ({"quantity": 2.0**63}, "field 'quantity': 9223372036854775808 is out of the range of bigint."),
        ({"small": -(2**15) - 1}, "field 'small': -32769 is out of the range of smallint."),
        ({"price": "1.5"}, "field 'price': it is of type str, not a number."),
        ({"price": False}, "field 'price': it is of type bool, not a number."),
        ({"rough": 1e39}, "field 'rough': 1e+39 is out of the range of float."),
        ({"paid": 1}, "field 'paid': it is of type int, not True or False."),
        ({"lines": {"n": 1}}, "field 'lines': it is of type dict, not a list."),
        ({"lines": [{"n": "x"}]}, "field 'lines': field 'n': it is of type str, not a whole number."),
        ({"counts": [1]}, "field 'counts': it is of type list, not a dict."),
        ("text", "it is of type str, not a dict."),
        ({"price": Decimal("1.5")}, "Object of type Decimal is not JSON serializable."),
        ({"quantity": datetime(2024, 1, 1, tzinfo=UTC)}, "Object of type datetime is not JSON serializable."),
    ],
)
def test_json_refuses_a_value_that_its_own_columns_could_not_read(value: Any, said: str) -> None:
    with pytest.raises(SerdeError, match=r"^Serdes\.json\(.*\) cannot write ") as raised:
        ORDER.serialize(value)
    assert str(raised.value).endswith(f": {said}")


@pytest.mark.spark
def test_a_number_without_digits_is_the_same_word_in_python_and_in_columns(spark: SparkSession) -> None:
    serde = Serdes.json("x double, of array<float>, by map<string, double>, word string, `inner` struct<y double>")
    value = {
        "x": math.nan,
        "of": [math.inf, None, 1.5],
        "by": {"a": -math.inf},
        "word": "NaN",
        "inner": {"y": math.nan},
    }
    data = serde.serialize(value)
    assert data == b'{"x":"NaN","of":["Infinity",null,1.5],"by":{"a":"-Infinity"},"word":"NaN","inner":{"y":"NaN"}}'
    assert repr(serde.deserialize(data)) == repr(value)
    assert repr(serde.deserialize(b'{"x":NaN,"y":Infinity}')) == "{'x': nan, 'y': inf}"
    rows = spark.createDataFrame([(bytearray(data or b""),)], "data binary")
    read = rows.select(serde.from_bytes(F.col("data")).alias("v"))
    assert math.isnan(read.collect()[0].v.x)
    assert bytes(read.select(serde.to_bytes(F.col("v"))).collect()[0][0]) == data


@pytest.mark.spark
def test_a_python_reducer_adds_numbers_that_columns_have_made_nan() -> None:
    builder = StreamsBuilder()
    numbers = builder.stream("in", value=Serdes.json("x double")).map_values(lambda v: F.struct((v.x / 1.0).alias("x")))
    numbers.group_by_key().reduce(lambda one, two: {"x": one["x"] + two["x"]}).to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        for x in (1.0, math.nan):
            driver.create_input_topic("in").pipe_input("k", {"x": x})
        values = [record.value["x"] for record in driver.create_output_topic("out").read_records_to_list()]
    assert repr(values) == "[1.0, nan]"


@pytest.mark.spark
def test_times_that_differ_by_a_microsecond_are_keys_of_their_own() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", value=Serdes.json("at timestamp"))
    stream.group_by(lambda k, v: v.at).count().to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        for micros in ("000001", "000002", "001000"):
            driver.create_input_topic("in").pipe_input("k", {"at": f"2024-01-01T00:00:00.{micros}Z"})
        records = driver.create_output_topic("out").read_records_to_list()
    assert [(record.key, record.value) for record in records] == [
        ("2024-01-01T00:00:00.000001Z", 1),
        ("2024-01-01T00:00:00.000002Z", 1),
        ("2024-01-01T00:00:00.001Z", 1),
    ]


@pytest.mark.spark
def test_fields_of_any_name_have_a_serde_of_their_own() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", value=Serdes.json("`unit-price` double"))
    stream.map_values(lambda v: F.struct((v["unit-price"] * 2).alias("unit `price`"))).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("k", {"unit-price": 2.0})
        assert driver.create_output_topic("out").read_record().value == {"unit `price`": 4.0}


@pytest.mark.parametrize("schema", ["map<int,string>", "a int, m array<struct<x map<bigint,string>>>"])
def test_a_map_whose_keys_are_not_text_is_refused_when_the_serde_is_made(schema: str) -> None:
    with pytest.raises(ValueError, match=r"Serdes\.json\(.*JSON has text as keys only, .* Make it map<string,string>"):
        Serdes.json(schema)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("key", "found"), [("int", 5), ("bigint", 5), ("double", 5.0), ("decimal(3,1)", 5.0), ("boolean", True)]
)
def test_a_map_that_columns_make_by_number_can_be_looked_up_behind_a_topic(key: str, found: object) -> None:
    builder = StreamsBuilder()
    by_length = builder.stream("in").map_values(
        lambda v: F.when(v.isNotNull(), F.array(F.struct(F.create_map(F.length(v).cast(key), v))))
    )
    again = by_length.repartition().map_values(lambda v: F.element_at(v[0]["col1"], F.lit(found).cast(key)))
    again.to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("k", "seven")
        driver.create_input_topic("in").pipe_input("k", None)
        assert [each.value for each in driver.create_output_topic("out").read_records_to_list()] == ["seven", None]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("date", "2024-01-02"),
        ("timestamp", "2024-01-02 03:04:05.678"),
        ("timestamp_ntz", "2024-01-02 03:04:05.678901"),
    ],
)
def test_a_map_that_columns_make_by_time_has_times_as_keys_and_can_be_looked_up_behind_a_topic(
    key: str, text: str
) -> None:
    builder = StreamsBuilder()
    by_time = builder.stream("in").map_values(lambda v: F.struct(F.create_map(F.lit(text).cast(key), v).alias("of")))
    by_time.to_table("rows")
    by_time.repartition().map_values(lambda v: F.element_at(v["of"], F.lit(text).cast(key))).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("k", "seven")
        assert [each.value for each in driver.create_output_topic("out").read_records_to_list()] == ["seven"]
        assert list(driver.state_store("rows").all()) == [("k", {"of": {text: "seven"}})]


@pytest.mark.parametrize("schema", ["a int, a int", "x array<struct<b int, a int, b string>>"])
def test_two_fields_of_one_name_are_refused(schema: str) -> None:
    with pytest.raises(ValueError, match=r"Serdes\.json\(.*: two fields are called '[ab]', and JSON keeps one value"):
        Serdes.json(schema)


@pytest.mark.parametrize(
    ("schema", "value", "key"),
    [
        ("map<string,bigint>", {1: 2}, "1 of type int"),
        ("c map<string,bigint>", {"c": {None: 2}}, "None of type NoneType"),
        ("array<map<string,string>>", [{"a": "b"}, {True: "c"}], "True of type bool"),
        ("map<string,map<string,bigint>>", {"a": {2.5: 1}}, "2.5 of type float"),
    ],
)
def test_a_dict_whose_key_is_not_text_is_refused_when_it_is_written(schema: str, value: Any, key: str) -> None:
    with pytest.raises(ValueError, match=rf"a map has the key {key}, and JSON has text as keys only: use str\("):
        Serdes.json(schema).serialize(value)


NAMES = st.sampled_from(
    ["a", "Unit_price", "unit-price", "a:b", "x `y`", "1", "1e5", "1L", "1a", "ä", "select", "not", "struct"]
)
SINGLE = st.sampled_from([*ddl.SINGLE.values(), T.DecimalType(10, 0), T.DecimalType(38, 18)])


def nested(inner: st.SearchStrategy[T.DataType]) -> st.SearchStrategy[T.DataType]:
    fields = st.builds(T.StructField, NAMES, inner)
    structs = st.lists(fields, min_size=1, max_size=3, unique_by=lambda field: field.name.lower()).map(T.StructType)
    return structs | st.builds(T.ArrayType, inner) | st.builds(T.MapType, inner, inner)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@settings(max_examples=60, deadline=None)
@given(st.recursive(SINGLE, nested, max_leaves=5))
def test_any_type_is_written_so_that_spark_reads_it_and_is_read_without_spark(data_type: T.DataType) -> None:
    text = ddl.written(data_type)
    assert ddl.parsed(text) == data_type
    assert T.DataType.fromDDL(text) == data_type


@pytest.mark.spark
@pytest.mark.parametrize(
    "text",
    [
        "a int", "a: int, b: STRING", "date date, int INT NOT NULL", "a decimal, b dec(5), c NUMERIC ( 5 , 2 )",
        "x int comment 'of it, isn\\'t it', y struct<>", "struct<a:int>", " array < map<string,array<long>> > ",
        "a struct<b: int not null, c real>", "timestamp", "timestamp timestamp_ltz", "void",
    ],
)  # fmt: skip
@pytest.mark.usefixtures("spark")
def test_schemas_as_people_write_them_are_read_as_spark_reads_them(text: str) -> None:
    found = ddl.parsed(text)
    assert found is not None
    assert found.simpleString() == T.DataType.fromDDL(text).simpleString()


@pytest.mark.parametrize("text", ["interval day to second", "a variant", "a int,", "a", "", "array<int", "a int b"])
def test_what_only_sparks_parser_knows_or_refuses_is_left_to_it(text: str) -> None:
    assert ddl.parsed(text) is None


SLIPS = {
    "id int, colour strng": "'strng' is no type. Did you mean 'string'? Types are string, int, ",
    "id int colour string": "There is no comma before 'colour'. ",
    "id int, colour": "The field 'colour' has no type. ",
    "array<strng>": "'strng' is no type. Did you mean 'string'? ",
    "tags list<string>": "'list' is no type. Did you mean 'array<type>'? ",
    "{id: int}": "'{' is no name of a field. ",
    "map<string,int": "'>' is missing. ",
    "a int,": "Something is missing at the end. ",
    "price decimal(ten)": "A decimal has numbers, such as decimal(10,2), not 'ten'. ",
}


@pytest.mark.parametrize("schema", SLIPS)
def test_a_slip_in_a_schema_is_told_where_it_is_written_and_without_spark(schema: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"Serdes.json({schema!r}): {SLIPS[schema]}")):
        Serdes.json(schema)


def test_a_schema_is_text() -> None:
    with pytest.raises(ValueError, match=r"Serdes.json takes a schema as text, such as .*, not \{'id': 'int'\}\."):
        Serdes.json({"id": "int"})  # type: ignore[arg-type]


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    "schema", ["a char(5)", "a interval day to second, b int", "time timestamp, a variant", "a int /* of it */, b time"]
)
def test_types_that_only_sparks_parser_knows_are_left_to_it(schema: str) -> None:
    assert Serdes.json(schema).data_type == T.DataType.fromDDL(schema)


@pytest.mark.spark
def test_a_schema_that_spark_refuses_is_told_in_a_sentence() -> None:
    serde = Serdes.json("unit-price double")
    with pytest.raises(ValueError, match=r"Serdes\.json\('unit-price double'\): Spark cannot .* must be back quoted"):
        serde.data_type  # noqa: B018


MONEY = Serdes.json("price decimal(38,2), rate double, parts array<decimal(5,2)>, by map<string,decimal(3,0)>")


def test_decimals_keep_all_their_digits_in_python() -> None:
    text = b'{"price":12345678901234567890.12,"rate":1.5,"parts":[1.50,2,null],"by":{"a":7},"more":[1.5,2]}'
    value = MONEY.deserialize(text)
    assert value == {
        "price": Decimal("12345678901234567890.12"),
        "rate": 1.5,
        "parts": [Decimal("1.50"), 2, None],
        "by": {"a": 7},
        "more": [1.5, 2],
    }
    assert isinstance(value["rate"], float)
    assert isinstance(value["more"][0], float)
    assert isinstance(value["by"]["a"], Decimal)
    assert MONEY.serialize(value) == text
    assert MONEY.deserialize(b"null") is None


def test_decimals_are_written_as_plain_digits() -> None:
    value = {"price": Decimal("1E+3"), "rate": math.nan, "parts": (1.25, 3), 5: 'a"b'}
    assert MONEY.serialize(value) == b'{"price":1000,"rate":"NaN","parts":[1.25,3],"5":"a\\"b"}'


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (123456789, "123456789 is out of the range of decimal(5,2)."),
        (Decimal("1E+99999"), "1E+99999 is out of the range of decimal(5,2)."),
        (Decimal("1.234"), "1.234 has more digits after the point than decimal(5,2), which has 2: round it first."),
        (1.005, "1.005 has more digits after the point than decimal(5,2), which has 2: round it first."),
        (math.inf, "inf is not a decimal number."),
        (True, "it is of type bool, not a decimal number."),
        (10**600, "a number of 1994 bits is out of the range of decimal(5,2)."),
    ],
)
def test_a_number_that_a_decimal_has_no_digits_for_is_refused(value: Any, said: str) -> None:
    with pytest.raises(SerdeError, match=r"^Serdes\.json\(.*\) cannot write ") as raised:
        Serdes.json("decimal(5,2)").serialize(value)
    assert str(raised.value).endswith(f": {said}")


@pytest.mark.parametrize("schema", ["bigint", "double"])
@pytest.mark.parametrize("digits", [600, 5000])
def test_a_message_does_not_show_hundreds_of_digits(schema: str, digits: int) -> None:
    with pytest.raises(SerdeError, match=rf"a number of \d+ bits is out of the range of {schema}\.$") as raised:
        Serdes.json(schema).serialize(10**digits)
    assert len(str(raised.value)) < 250


@pytest.mark.spark
def test_columns_and_python_write_and_read_the_same_decimals(spark: SparkSession) -> None:
    value = {
        "price": Decimal("12345678901234567890.12"),
        "rate": 1.5,
        "parts": [Decimal("1.50")],
        "by": {"a": Decimal(7)},
    }
    rows = spark.createDataFrame([(MONEY.serialize(value),)], "data binary")
    read = rows.select(MONEY.from_bytes(rows["data"]).alias("read"))
    assert read.head()[0].asDict() == value  # type: ignore[index]
    written = read.select(MONEY.to_bytes(read["read"]).alias("written")).head()[0]  # type: ignore[index]
    assert MONEY.deserialize(bytes(written)) == value
