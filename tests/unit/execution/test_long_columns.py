"""Chains of steps whose functions use their value several times: written out, each step would triple the Column."""

import pytest
from pyspark.sql import functions as F

from streamskit import Serdes, StreamsBuilder, TopologyTestDriver
from streamskit.execution.optimization_barrier import LONG, is_long

pytestmark = pytest.mark.spark

POINT = Serdes.json("a int, b int")
STEPS = 10
"""Written out, three to the power of this: Spark would not come to an end."""


def test_a_long_chain_of_filters_on_a_table_passes_rows_on_as_they_were_written() -> None:
    builder = StreamsBuilder()
    rows = builder.table("points", value=POINT)
    for least in range(STEPS):
        rows = rows.filter(lambda v, least=least: v.a > least)
    rows.to_stream().to("large")
    with TopologyTestDriver(builder.build()) as driver:
        points = driver.create_input_topic("points", value=Serdes.byte_array())
        points.pipe_records([("k", b'{"a": 20,  "b": 1}', 1), ("k", b'{"a": 7, "b": 1}', 2)])
        large = driver.create_output_topic("large", value=Serdes.byte_array()).read_records_to_list()
    assert [(made.value, made.timestamp) for made in large] == [(b'{"a": 20,  "b": 1}', 1), (None, 2)]


def test_a_long_chain_of_mapped_values_of_a_table_comes_to_its_end() -> None:
    builder = StreamsBuilder()
    rows = builder.table("points", value=POINT)
    for _ in range(STEPS):
        rows = rows.map_values(lambda v: F.struct((v.a + v.b).alias("a"), (v.b + 1).alias("b")))
    rows.to_stream().to("moved")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("points").pipe_records([("k", {"a": 0, "b": 0}, 1), ("k", None, 2)])
        moved = driver.create_output_topic("moved").read_records_to_list()
    total = sum(range(STEPS))
    assert [made.value for made in moved] == [{"a": total, "b": STEPS}, None]


def test_a_column_is_long_from_so_many_characters_on() -> None:
    assert not is_long(F.col("value"))
    assert is_long(F.lit("x" * LONG))
