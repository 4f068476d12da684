"""A function sees its arguments and one record at a time; and `F.struct` names its fields alike in trial and run."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

from streamskit import KStream, Serdes, StreamsBuilder, TopologyError, TopologyTestDriver

pytestmark = [pytest.mark.columns, pytest.mark.usefixtures("spark")]

AT_THE_LINE = r"\(KSTREAM-\w+-\d+\) at test_functions_of_one_record\.py line \d+: "


@pytest.fixture
def trades() -> KStream:
    return StreamsBuilder().stream("trades", value=Serdes.json("symbol string, price double"))


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (lambda v: F.concat(F.col("value"), F.lit("!")), "value"),
        (lambda k, v: F.col("key"), "key"),
        (lambda v: F.col("value.price"), "value`.`price"),
        (lambda v: F.expr("value.price > 2"), "value`.`price"),
        (lambda v: F.expr("upper(key)"), "key"),
    ],
)
def test_a_column_that_is_named_and_not_given_is_refused(
    trades: KStream, function: Callable[..., Any], named: str
) -> None:
    with pytest.raises(TopologyError, match=rf"{AT_THE_LINE}`{named}` cannot be resolved.*`lambda v: v`, not F\.col"):
        trades.map_values(function)


def test_a_star_is_refused(trades: KStream) -> None:
    with pytest.raises(TopologyError, match=rf"{AT_THE_LINE}'\*' stands for the columns of a row"):
        trades.map_values(lambda v: F.struct("*"))


@pytest.mark.parametrize(
    "function",
    [
        lambda v: F.hash("*"),
        lambda v: F.concat(v.symbol, F.to_json(F.struct("*"))),
        lambda k, v: F.xxhash64(k, F.col("*")),
        lambda v: F.expr("hash(*)"),
        lambda v: F.rand() * F.hash("*"),
    ],
)
def test_a_star_is_refused_also_where_the_result_does_not_show_it(
    trades: KStream, function: Callable[..., Any]
) -> None:
    with pytest.raises(TopologyError, match=rf"{AT_THE_LINE}'\*' stands for the columns of a row"):
        trades.map_values(function)


@pytest.mark.parametrize(
    "function",
    [
        lambda v: F.max(F.hash("*")),
        lambda v: F.count_distinct("*"),
        lambda v: F.max_by(v.symbol, F.hash("*")),
    ],
)
def test_a_star_is_refused_in_an_aggregate(trades: KStream, function: Callable[..., Any]) -> None:
    with pytest.raises(TopologyError, match=rf"aggregate {AT_THE_LINE}'\*' stands for the columns of a row"):
        trades.group_by_key().aggregate(function)


@pytest.mark.parametrize(
    "function", [lambda v: F.count("*"), lambda v: F.expr("count(*)"), lambda v: F.count("*") + F.rand()]
)
def test_a_star_that_counts_rows_is_taken(trades: KStream, function: Callable[..., Any]) -> None:
    trades.group_by_key().aggregate(function)


WORDS = Serdes.json("words array<string>, x_1 string")

UNNAMED: dict[str, Callable[[KStream], Any]] = {
    "map_values": lambda s: s.map_values(lambda v: F.transform(v.words, lambda word: F.struct(word))),
    "flat_map_values": lambda s: s.flat_map_values(lambda v: F.transform(v.words, lambda word: F.struct(word))),
    "map": lambda s: s.map(lambda k, v: (k, F.transform(v.words, lambda word: F.struct(word)))),
    "select_key": lambda s: s.select_key(lambda v: F.transform(v.words, lambda word: F.struct(word))),
    "flat_map": lambda s: s.flat_map(
        lambda k, v: F.transform(v.words, lambda word: F.struct(k, F.struct(word, F.length(word))))
    ),
    "aggregate": lambda s: s.group_by_key().aggregate(
        lambda v: F.first(F.transform(v.words, lambda word: F.struct(word)))
    ),
}


@pytest.mark.parametrize("step", UNNAMED)
def test_a_field_whose_name_spark_makes_up_is_refused(step: str) -> None:
    stream = StreamsBuilder().stream("in", value=WORDS)
    said = (
        rf"{step} \(.*\) at test_functions_of_one_record\.py line \d+: .*a field without a name.* such as x_\d+: "
        r"name it, .*item\.alias\('item'\)"
    )
    with pytest.raises(TopologyError, match=said):
        UNNAMED[step](stream)


def test_a_field_with_such_a_name_of_its_own_is_taken() -> None:
    stream = StreamsBuilder().stream("in", value=WORDS)
    assert stream.map_values(lambda v: F.struct(v.x_1))._node.value.data_type == Serdes.json("x_1 string").data_type
    named = stream.map_values(lambda v: F.transform(v.words, lambda word: F.struct(word.alias("word"))))
    assert named._node.value.data_type == Serdes.json("array<struct<word: string>>").data_type


def test_an_aggregate_names_no_column_either(trades: KStream) -> None:
    with pytest.raises(TopologyError, match=r"`value` cannot be resolved"):
        trades.group_by_key().aggregate(lambda v: F.max(F.col("value")))


def test_spark_s_words_call_the_arguments_as_the_user_does(trades: KStream) -> None:
    with pytest.raises(TopologyError, match=r'Cannot resolve "upper\(v\)"'):
        trades.map_values(lambda v: F.upper(v))
    with pytest.raises(TopologyError, match=r'Cannot resolve "\(v \+ k\)"'):
        trades.map_values(lambda k, v: v + k)


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda v: F.explode(F.split(v.symbol, " ")), "flat_map_values"),
        (lambda v: F.upper(F.explode(F.split(v.symbol, " "))), "flat_map_values"),
        (lambda v: F.inline(F.array(F.struct(v.price, v.symbol))), "flat_map_values"),
        (lambda v: F.sum(v.price), r"group_by_key\(\)\.aggregate"),
        (lambda v: F.sum(v.price) + v.price, r"group_by_key\(\)\.aggregate"),
        (lambda v: F.row_number().over(Window.orderBy(v.price)), "a window function"),
        (lambda v: F.row_number(), "a window function"),
    ],
)
def test_a_function_of_several_rows_is_refused_at_its_line(
    trades: KStream, function: Callable[..., Any], told: str
) -> None:
    with pytest.raises(TopologyError, match=rf"map_values {AT_THE_LINE}.*{told}"):
        trades.map_values(function)


def test_a_filter_that_counts_is_refused_at_its_line(trades: KStream) -> None:
    with pytest.raises(TopologyError, match=rf"filter {AT_THE_LINE}.*one record at a time"):
        trades.filter(lambda v: F.count(v) > 0)


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda v: v.price + F.max(v.price), "uses v outside of one"),
        (lambda v: F.explode(F.collect_list(v.price)), "several rows of one"),
        (lambda k, v: F.max(F.concat(k, v.symbol)), r"takes 2 arguments; write lambda v: \.\.\."),
    ],
)
def test_an_aggregate_is_one_value_of_the_values(trades: KStream, function: Callable[..., Any], told: str) -> None:
    with pytest.raises(TopologyError, match=rf"aggregate {AT_THE_LINE}.*{told}"):
        trades.group_by_key().aggregate(function)


def test_a_default_is_kept_and_does_not_take_the_place_of_an_argument(trades: KStream) -> None:
    customers = trades.select_key(lambda v: v.symbol, name="by-symbol").to_table()
    with pytest.raises(TopologyError, match=r"takes 1 argument, without those that have a default; write lambda left"):
        trades.join(customers, lambda left, right=None: left)
    doubled = trades.map_values(lambda v, factor=2: v.price * factor)
    assert doubled._node.value == Serdes.double()


@pytest.mark.spark
def test_a_struct_of_an_argument_has_the_same_field_in_the_result_and_for_the_next_step() -> None:
    builder = StreamsBuilder()
    upper = builder.stream("lines").map_values(lambda v: F.upper(v))
    pairs = upper.map_values(lambda k, v: F.struct(k, v, F.length(v)))
    pairs.to("pairs")
    pairs.map_values(lambda v: F.concat(v.key, v.value)).to("joined")
    pairs.flat_map_values(lambda v: F.transform(F.split(v.value, " "), lambda word: F.concat(word, v.key))).to("words")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("lines").pipe_input("k", "x y", 0)
        made = {
            topic: [each.value for each in driver.create_output_topic(topic).read_records_to_list()]
            for topic in ("pairs", "joined", "words")
        }
    assert made == {"pairs": [{"key": "k", "value": "X Y", "col3": 3}], "joined": ["kX Y"], "words": ["Xk", "Yk"]}


@pytest.mark.spark
def test_a_flat_map_takes_key_and_value_by_their_places() -> None:
    builder = StreamsBuilder()
    lines = builder.stream("lines").map_values(lambda v: F.upper(v))
    lines.flat_map(lambda k, v: F.transform(F.split(v, " "), lambda word: F.struct(word, k))).to("words")
    lines.flat_map(lambda k, v: F.array(F.struct(v, v))).to("twice")
    lines.flat_map(lambda k, v: F.array(F.struct(v.alias("value"), k.alias("key")))).to("swapped")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("lines").pipe_input("k", "x y", 0)
        made = {
            topic: [(each.key, each.value) for each in driver.create_output_topic(topic).read_records_to_list()]
            for topic in ("words", "twice", "swapped")
        }
    assert made == {"words": [("X", "k"), ("Y", "k")], "twice": [("X Y", "X Y")], "swapped": [("X Y", "k")]}
