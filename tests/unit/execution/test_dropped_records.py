"""What a filter has dropped is gone: neither a serde in Python nor an `F.udf` behind it hears of it.

Spark calls functions in Python for each row, also where their result is not wanted.
"""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

from streamskit import KStream, LogAndContinue, Processor, Serde, StreamsBuilder, TopologyTestDriver

pytestmark = [pytest.mark.spark]


class Upper(Serde):
    """Writes upper-case letters, and refuses others."""

    data_type = T.StringType()

    def serialize(self, value: Any) -> bytes | None:
        if not value.isupper():
            raise ValueError(f"{value} was dropped, and asked for all the same")
        return value.encode()

    def deserialize(self, data: bytes | None) -> Any:
        return None if data is None else data.decode()


class Same(Processor):
    def process(self, record: Any) -> None:
        self.context.forward(record)


def strict(text: str) -> str:
    if text is None or not text.isupper():
        raise ValueError(f"{text} was dropped, and asked for all the same")
    return text + "!"


def plain(stream: KStream) -> KStream:
    return stream


def reduced(stream: KStream) -> KStream:
    return stream.group_by_key().reduce(lambda one, other: other).to_stream()


def processed(stream: KStream) -> KStream:
    return stream.process(Same)


def is_upper(value: Any) -> Any:
    return F.upper(value) == value


def pipe_all(driver: TopologyTestDriver) -> None:
    topic = driver.create_input_topic("in")
    for value in ("low", "UP", "lower", "UPPER"):
        topic.pipe_input("a", value)


def values(driver: TopologyTestDriver, topic: str) -> list[Any]:
    return [record.value for record in driver.create_output_topic(topic).read_records_to_list()]


@pytest.mark.parametrize("before", [plain, reduced, processed])
def test_a_serde_is_not_asked_for_what_a_filter_has_dropped(before: Callable[[KStream], KStream]) -> None:
    builder = StreamsBuilder()
    stream = before(builder.stream("in"))
    stream.filter(is_upper).to("out", value=Upper())
    stream.filter_not(is_upper).to("rest")
    with TopologyTestDriver(builder.build()) as driver:
        pipe_all(driver)
        assert values(driver, "out") == ["UP", "UPPER"]
        assert values(driver, "rest") == ["low", "lower"]


@pytest.mark.parametrize("before", [plain, reduced, processed])
@pytest.mark.parametrize("handlers", [{}, {"processing_handler": LogAndContinue("letters")}], ids=["strict", "lenient"])
def test_an_udf_is_not_asked_for_what_a_filter_or_a_branch_has_dropped(
    before: Callable[[KStream], KStream], handlers: dict[str, Any]
) -> None:
    shout = F.udf(strict)
    builder = StreamsBuilder()
    stream = before(builder.stream("in"))
    stream.filter(is_upper).map_values(lambda v: shout(v)).to("out")
    branches = stream.split("by-").branch(is_upper, "up").default_branch("low")
    branches["by-up"].map(lambda k, v: (k, shout(v))).to("mapped")
    branches["by-low"].to("rest")
    with TopologyTestDriver(builder.build(), **handlers) as driver:
        pipe_all(driver)
        assert values(driver, "out") == values(driver, "mapped") == ["UP!", "UPPER!"]
        assert values(driver, "rest") == ["low", "lower"]
        assert not handlers or driver.dead_letters("letters").read_records_to_list() == []


def test_an_udf_is_not_asked_for_a_row_of_a_table_that_is_deleted() -> None:
    shout = F.udf(strict)
    builder = StreamsBuilder()
    builder.table("in").map_values(lambda v: shout(v)).to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("a", "UP")
        driver.create_input_topic("in").pipe_input("a", None)
        assert values(driver, "out") == ["UP!", None]


def test_an_udf_that_joins_is_asked_only_for_results_of_its_own_join() -> None:
    both = F.udf(lambda one, other: strict(one) + strict(other))
    builder = StreamsBuilder()
    first, second = builder.global_table("first"), builder.global_table("second")
    told = builder.stream("in").join(first, lambda v, row: both(v, row), key_selector=lambda k, v: k)
    told = told.map_values(lambda v: F.upper(v))
    told.join(second, lambda v, row: both(v, row), key_selector=lambda k, v: k).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        for topic in ("in", "first", "second", "in"):
            driver.create_input_topic(topic).pipe_input("a", topic.upper())
        assert values(driver, "out") == ["IN!FIRST!!SECOND!"]


def test_an_udf_that_joins_tables_is_not_asked_for_a_row_that_lacks_one_side() -> None:
    both = F.udf(lambda one, other: strict(one) + strict(other))
    builder = StreamsBuilder()
    joined = builder.table("left").join(builder.table("right"), lambda one, other: both(one, other))
    joined.to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        for topic, value in [("left", "UP"), ("right", "DOWN"), ("left", "ABOVE"), ("right", None)]:
            driver.create_input_topic(topic).pipe_input("a", value)
        assert values(driver, "out") == ["UP!DOWN!", "ABOVE!DOWN!", None]
