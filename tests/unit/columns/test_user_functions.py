"""A learner's function on Columns: what works, and what a mistake is told."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import utils as call_sites
from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit import KStream, Serdes, StreamsBuilder, TimeWindows, TopologyError
from streamskit.columns.user_functions import apply, noting_users_lines_only

pytestmark = [pytest.mark.columns, pytest.mark.usefixtures("spark")]

FIELDS = "symbol string, price double, size int, name string, count int, like string, address struct<city:string>"


@pytest.fixture
def trades() -> KStream:
    return StreamsBuilder().stream("trades", value=Serdes.json(FIELDS))


@pytest.mark.parametrize(
    ("function", "made"),
    [
        (lambda v: v.price * 2, "double"),
        (lambda k, v: F.concat(k, v.symbol), "string"),
        (F.to_json, "string"),
        (lambda v: v.name, "string"),
        (lambda v: v.count + 1, "int"),
        (lambda v: v["like"], "string"),
        (lambda v: v.address.city, "string"),
        (lambda v: F.struct(v.symbol, v.price), "struct<symbol:string,price:double>"),
        (lambda v: 1, "int"),
    ],
)
def test_a_function_of_the_value_or_of_key_and_value_makes_a_typed_column(
    trades: KStream, function: Callable[..., Any], made: str
) -> None:
    assert trades.map_values(function)._node.value.data_type.simpleString() == made


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda v: v.prise, r"no field 'prise' in v; it has: symbol string, price double.* Did you mean 'price'\?"),
        (lambda v: v.address.street, r"no field 'street' in v\.address; it has: city string"),
        (lambda v: v.symbol.upper(), r"write F\.upper\(v\.symbol\)"),
        (lambda v: v.price > 0 and v.size > 0, r"& \| ~"),
        (lambda v: 1 if v.price > 0 else 2, r"F\.when"),
        (lambda v: f"{v.symbol}!", r"f-string cannot hold the Column v\.symbol.*F\.concat"),
        (lambda v: print(v.symbol), r"print\(v\.symbol\) and str\(v\.symbol\) have nothing to show.*stream\.peek\("),
        (lambda v: max(v.size, 3), r"F\.greatest\(a, b\), F\.least\(a, b\) for max, min"),
        (lambda v: round(v.price), r"round\(\) is Python's, .* write F\.round\(\.\.\.\)"),
        (lambda v: abs(v.price / 7), r"abs\(\) is Python's, .* write F\.abs\(\.\.\.\)"),
        (lambda v: v.size + " kr", r"the text ' kr' stands where a value of type bigint is due, .*F\.concat\("),
        (lambda v: F.lit("no. ") + v.price * 2, r"the text 'no\. ' stands where a value of type double is due"),
        (lambda v: v.price > "much", r"the text 'much' stands where .* write the other one without quotes"),
        (lambda v: len(v.symbol), r"F\.length\(v\.symbol\)"),
        (lambda v: float(v.size), r"v\.size\.cast\('double'\)"),
        (lambda v: "A" in v.symbol, r"isin"),
        (lambda v: None, r"returned nothing \(None\)"),
        (lambda v: {"a": v.price}, r"returned a Python dict.*F\.struct"),
        (lambda v: F.upper(v.address), r"requires the \"STRING\" type"),
        (lambda v: F.upper("nope"), r"`nope` cannot be resolved"),
    ],
)
def test_a_mistake_is_named_with_its_operator_and_the_way_to_write_it_right(
    trades: KStream, function: Callable[..., Any], told: str
) -> None:
    with pytest.raises(TopologyError, match=rf"map_values \(KSTREAM-MAPVALUES-0000000001\) at \S+ line \d+: .*{told}"):
        trades.map_values(function)


@pytest.mark.parametrize("function", [lambda v: v.colour, lambda v: v["colour"]])
def test_a_field_of_a_topic_that_was_read_as_text_says_where_fields_are_declared(function: Callable[..., Any]) -> None:
    told = r"v is a string and has no .*'colour'\. For a value with fields .*: value=Serdes\.json\('colour string'\)"
    with pytest.raises(TopologyError, match=told):
        StreamsBuilder().stream("in").filter(function)


def test_one_column_where_a_pair_is_due_is_called_a_column(trades: KStream) -> None:
    with pytest.raises(TopologyError, match="the function returned one Column, but must return two Columns"):
        trades.map(lambda k, v: v.symbol)


def test_text_that_says_a_number_or_a_time_is_one_as_in_spark() -> None:
    rows = StreamsBuilder().stream("in", value=Serdes.json("at timestamp, name string, size int"))
    made = rows.map_values(lambda v: F.struct((v.size + "5").alias("a"), (v.at - "2026-01-01").alias("b")))
    assert made._node.value.data_type.simpleString() == "struct<a:bigint,b:interval day to second>"
    assert rows.map_values(lambda v: v.size + v.name)._node.value.data_type.simpleString() == "bigint"


def test_a_field_whose_name_begins_with_an_underscore_is_an_attribute_like_any_other() -> None:
    rows = StreamsBuilder().stream("in", value=Serdes.json("_id long, `__v` int, inner struct<_x: string>"))
    made = rows.map_values(lambda v: F.struct(v._id, v.__v, v.inner._x))
    assert made._node.value.data_type.simpleString() == "struct<_id:bigint,__v:int,_x:string>"


def test_a_filter_that_says_neither_true_nor_false_is_refused(trades: KStream) -> None:
    with pytest.raises(TopologyError, match="has to return true or false, but returns a double"):
        trades.filter(lambda v: v.price)


def test_an_aggregate_of_no_aggregate_function_is_refused(trades: KStream) -> None:
    with pytest.raises(TopologyError, match=r"aggregate \(KSTREAM-AGGREGATE-\d+\)"):
        trades.group_by_key().aggregate(lambda v: v.price, materialized="prices")


def test_a_serde_for_another_type_than_the_value_has_is_refused(trades: KStream) -> None:
    with pytest.raises(TopologyError, match=r"to\('out'\).*the value is bigint, and the serde given writes double"):
        trades.group_by_key().count("counts").to_stream().to("out", value=Serdes.double())


def test_a_retention_shorter_than_the_window_is_refused(trades: KStream) -> None:
    from streamskit import Materialized

    grouped = trades.group_by_key().windowed_by(TimeWindows.of_size_and_grace("5 s", "1 s"))
    with pytest.raises(TopologyError, match=r"retention of 5000 ms .*\(5000 \+ 1000 ms\)"):
        grouped.count(Materialized("counts", retention="5 s"))


def test_pyspark_notes_the_lines_of_users_functions_only_while_a_program_is_compiled(trades: KStream) -> None:
    noted = list[bool]()

    def doubled(value: Column) -> Column:
        noted.append(call_sites.is_debugging_enabled())
        return value * 2

    assert call_sites.is_debugging_enabled()
    with noting_users_lines_only():
        apply(doubled, [F.lit(1)], "map_values")
        assert not call_sites.is_debugging_enabled()
    assert noted == [True]
    assert call_sites.is_debugging_enabled()
