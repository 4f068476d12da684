"""A function that chance plays a part in is called once for each record, whatever follows."""

import random
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamskit import LogAndContinue, Serdes, StreamsBuilder, TopologyTestDriver
from streamskit.execution.optimization_barrier import is_by_chance

pytestmark = pytest.mark.spark

COUNT = 24


def written(write: Callable[[StreamsBuilder], Any], *topics: str, **options: Any) -> list[list[Any]]:
    """Return the records (key and value) that come out in each topic, of some that go in."""
    builder = StreamsBuilder()
    write(builder)
    with TopologyTestDriver(builder.build(), **options) as driver:
        driver.create_input_topic("in").pipe_records([(str(number), "v", number) for number in range(COUNT)])
        outputs = (driver.create_output_topic(topic).read_records_to_list() for topic in topics)
        return [[(record.key, record.value) for record in records] for records in outputs]


@pytest.mark.parametrize("options", [{}, {"partitions": 1}, {"processing_handler": LogAndContinue()}])
def test_each_record_takes_exactly_one_branch(options: dict[str, Any]) -> None:
    def write(builder: StreamsBuilder) -> None:
        split = builder.stream("in").split("b-").branch(lambda v: F.rand() < 0.3, chain=lambda s: s.to("x"))
        split = split.branch(lambda v: F.rand() < 0.5, chain=lambda s: s.to("y"))
        split.default_branch(chain=lambda s: s.to("z"))

    branches = written(write, "x", "y", "z", **options)
    assert sorted(int(key) for records in branches for key, _ in records) == list(range(COUNT))


def test_all_that_follows_a_mapper_gets_the_same_value() -> None:
    def write(builder: StreamsBuilder) -> None:
        made = builder.stream("in").map_values(lambda v: F.uuid())
        made.to("x")
        made.map_values(lambda v: F.concat(v, F.lit("!"))).to("y")
        made.group_by_key().reduce(lambda one, other: other).to_stream().to("z")

    x, y, z = written(write, "x", "y", "z")
    assert len({value for _, value in x}) == COUNT
    assert [(key, value + "!") for key, value in x] == y
    assert x == z


def test_what_a_filter_has_seen_is_what_is_written() -> None:
    def write(builder: StreamsBuilder) -> None:
        made = builder.stream("in").map_values(lambda v: F.rand() + F.rand())
        made.filter(lambda v: v > 1).to("x", value=Serdes.double())
        made.filter_not(lambda v: v > 1).to("y", value=Serdes.double())

    builder = StreamsBuilder()
    write(builder)
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_records([(str(number), "v", number) for number in range(COUNT)])
        x, y = (driver.create_output_topic(topic, value=Serdes.double()).read_records_to_list() for topic in "xy")
    assert len(x) + len(y) == COUNT
    assert all(record.value > 1 for record in x)
    assert all(record.value <= 1 for record in y)


def test_records_are_counted_under_the_key_with_which_they_are_written() -> None:
    def write(builder: StreamsBuilder) -> None:
        made = builder.stream("in").select_key(lambda v: F.uuid())
        made.to("x")
        made.group_by_key().count().to_stream().map_values(lambda v: v.cast("string")).to("y")

    x, y = written(write, "x", "y")
    assert sorted(y) == sorted((key, "1") for key, _ in x)


def test_chance_may_follow_an_operator_with_state_and_a_flat_map() -> None:
    def write(builder: StreamsBuilder) -> None:
        rows = builder.stream("in").group_by_key().reduce(lambda one, other: other).to_stream()
        made = rows.map_values(lambda v: F.uuid())
        made.to("x")
        made.to("y")
        flat = builder.stream("in").flat_map_values(lambda v: F.array(v)).map_values(lambda v: F.uuid())
        flat.to("z")

    x, y, z = written(write, "x", "y", "z")
    assert x == y
    assert len({value for _, value in (*x, *z)}) == 2 * COUNT


def test_chance_comes_in_before_a_flat_map_and_before_an_aggregation_of_spark() -> None:
    def flat(builder: StreamsBuilder) -> None:
        made = builder.stream("in").map_values(lambda v: F.uuid())
        made.flat_map_values(lambda v: F.array(v, v)).map_values(lambda v: F.concat(v, F.uuid())).to("x")

    def counted(builder: StreamsBuilder) -> None:
        made = builder.stream("in").map_values(lambda v: F.uuid()).filter(lambda v: F.length(v) == 36)
        made.group_by_key().count().to_stream().map_values(lambda v: v.cast("string")).to("x")

    (records,) = written(flat, "x")
    assert len({value for _, value in records}) == 2 * COUNT
    assert len({value[:36] for _, value in records}) == COUNT
    assert written(counted, "x") == [[(str(number), "1") for number in range(COUNT)]]


def test_only_columns_with_functions_of_chance_are_computed_ahead(spark: SparkSession) -> None:
    value = F.col("v")
    assert is_by_chance(F.concat(value, F.expr("uuid()")))
    assert is_by_chance(F.expr("UUID()"))
    assert is_by_chance(F.base64(F.aes_encrypt(value, F.lit("a key of 16 bytes"))))
    assert is_by_chance(F.expr("Rand (3)"))
    assert is_by_chance(F.transform(F.array(value), lambda each: each + F.rand()))
    assert not is_by_chance(F.concat(value, F.lit("Serdes.uuid() cannot read it")))
    assert not is_by_chance(F.col("brand").isNull() & (F.current_timestamp() > value))


# Functions in Python.


def drawn(_: str) -> str:
    return str(random.random())


def all_drawn(values: pd.Series) -> pd.Series:
    return values.map(drawn)


def drawing(kind: str) -> Any:
    """Return a Python function of chance as one that Columns call."""
    pandas_udf: Any = F.pandas_udf
    made = F.udf(lambda v: drawn(v)) if kind == "udf" else pandas_udf(all_drawn, "string")
    return made.asNondeterministic()


@pytest.mark.parametrize("options", [{}, {"partitions": 1}, {"processing_handler": LogAndContinue()}])
@pytest.mark.parametrize("kind", ["udf", "pandas udf"])
def test_a_python_function_of_chance_is_called_once_for_each_record(
    spark: SparkSession, kind: str, options: dict[str, Any]
) -> None:
    draw = drawing(kind)

    def write(builder: StreamsBuilder) -> None:
        made = builder.stream("in").map_values(lambda v: F.concat_ws(" ", draw(v), draw(v)))
        made.to("x")
        made.filter(lambda v: v > "0.5").to("y")
        made.filter_not(lambda v: v > "0.5").to("z")

    x, y, z = written(write, "x", "y", "z", **options)
    assert sorted(x) == sorted(y + z)
    assert all(value > "0.5" for _, value in y)
    assert all(value <= "0.5" for _, value in z)
    assert len({each for _, value in x for each in value.split()}) == 2 * COUNT


def test_a_record_takes_one_branch_by_a_python_function_of_chance() -> None:
    is_lucky = F.udf(lambda v: random.random() < 0.5, "boolean").asNondeterministic()

    def write(builder: StreamsBuilder) -> None:
        split = builder.stream("in").split("b-").branch(lambda v: is_lucky(v), chain=lambda s: s.to("x"))
        split.default_branch(chain=lambda s: s.to("y"))

    x, y = written(write, "x", "y")
    assert sorted(int(key) for key, _ in x + y) == list(range(COUNT))


def test_a_function_of_chance_outside_of_a_step_is_spark_s_own_matter(spark: SparkSession) -> None:
    column = drawing("udf")(F.col("v"))
    assert not is_by_chance(column)
    assert "by_chance" not in str(column)
