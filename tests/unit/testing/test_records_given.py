"""Records as a test gives them: a header without a value goes all the way, and what is no record is refused."""

from typing import Any

import numpy as np
import pytest
from pyspark.sql import functions as F

from streamskit import (
    Processor,
    Record,
    Response,
    Serdes,
    StreamsBuilder,
    StreamsError,
    TimestampExtractor,
    Topology,
    TopologyTestDriver,
)
from streamskit.api.error_handlers import DeadLetter, ErrorHandlerContext
from tests.driver_in_micro_batches import DriverInMicroBatches

pytestmark = pytest.mark.spark

HEADERS: Any = (("trace", b"1"), ("checked", None), ("empty", b""))

both = pytest.mark.parametrize("driver", [TopologyTestDriver, DriverInMicroBatches])


class Adding(Processor):
    def process(self, record: Record) -> None:
        added: Any = (*record.headers, ("added", None))
        self.context.forward(record.with_headers(added))


def everywhere() -> Topology:
    """Return a program whose steps are Spark's own, and Python's with and without a store."""
    builder = StreamsBuilder()
    lines = builder.stream("in")
    lines.map_values(lambda v: F.upper(v)).to("columns")
    lines.process(Adding).to("processed")
    lines.group_by_key().reduce(lambda one, other: one + other, "reduced").to_stream().to("reduced")
    lines.group_by_key().aggregate(lambda v: F.max(v), "highest").to_stream().to("highest")
    return builder.build()


@both
def test_a_header_without_a_value_stays_one(driver: type[TopologyTestDriver]) -> None:
    with driver(everywhere()) as opened:
        opened.create_input_topic("in").pipe_input("k", "v", 5, HEADERS)
        found = {
            topic: [record.headers for record in opened.create_output_topic(topic).read_records_to_list()]
            for topic in ("columns", "processed", "reduced", "highest")
        }
    assert found == {
        "columns": [HEADERS], "processed": [(*HEADERS, ("added", None))], "reduced": [HEADERS], "highest": [HEADERS],
    }  # fmt: skip


def keep(context: ErrorHandlerContext, record: Any, exception: Exception) -> Response:
    return Response.resume(DeadLetter("letters", context.source_raw_key, None, context.headers))


@both
def test_a_handler_gets_a_header_without_a_value_and_may_write_one(driver: type[TopologyTestDriver]) -> None:
    builder = StreamsBuilder()
    builder.stream("in").map_values(lambda v: F.assert_true(v != "bad").cast("string")).to("out")
    with driver(builder.build(), processing_handler=keep) as opened:
        opened.create_input_topic("in").pipe_input("k", "bad", 5, HEADERS)
        assert [letter.headers for letter in opened.dead_letters("letters").read_records_to_list()] == [HEADERS]


@pytest.fixture
def passing() -> Topology:
    builder = StreamsBuilder()
    builder.stream("in", timestamps=TimestampExtractor.log_and_skip_on_invalid()).to("out")
    return builder.build()


def test_what_is_no_time_or_no_headers_is_refused_before_it_is_sent(passing: Topology) -> None:
    with TopologyTestDriver(passing) as driver:
        topic = driver.create_input_topic("in")
        times: list[Any] = [1.5, "5", None, True]
        for time in times:
            with pytest.raises(StreamsError, match=r"cannot have the timestamp .*: give it whole milliseconds"):
                topic.pipe_input("k", "v", time)
        wrong: list[Any] = [(("a", "text"),), {"a": b"1"}, ((b"a", b"1"),)]
        for headers in wrong:
            with pytest.raises(StreamsError, match="header"):
                topic.pipe_input("k", "v", 0, headers)
        assert driver.create_output_topic("out").is_empty()
        seven: Any = np.int64(7)
        pairs: Any = [["a", b"1"]]
        topic.pipe_input("k", "v", seven, pairs)
        assert driver.create_output_topic("out").read_record() == ("k", "v", 7, (("a", b"1"),))


def test_a_time_in_nanoseconds_is_refused(passing: Topology) -> None:
    with TopologyTestDriver(passing) as driver:
        for time in (1_700_000_000_000_000_000, 2**63):
            with pytest.raises(StreamsError, match=f"timestamp {time}, which is no time: give it milliseconds since"):
                driver.create_input_topic("in").pipe_input("k", "v", time)
        assert driver.create_output_topic("out").is_empty()


def test_a_time_before_1970_is_left_to_the_timestamp_extractor(passing: Topology) -> None:
    with TopologyTestDriver(passing) as driver:
        driver.create_input_topic("in").pipe_input("k", "v", -1)
        assert driver.create_output_topic("out").is_empty()
        assert driver.dropped() == 1


def test_many_records_are_tuples_and_of_a_list_with_another_none_is_sent(passing: Topology) -> None:
    with TopologyTestDriver(passing) as driver:
        topic, wrong = driver.create_input_topic("in"), Serdes.string()
        for no_record in ("kv", {"key": "k", "value": "v"}, wrong, ("k",), ("k", "v", 1, (), 0, 9)):
            with pytest.raises(StreamsError, match=r"is no record: give tuples such as \(key, value, timestamp\)"):
                topic.pipe_records([("k", "v", 1), no_record])  # type: ignore[list-item]
        assert driver.create_output_topic("out").is_empty()


def test_records_without_a_time_get_that_of_the_topics_clock(passing: Topology) -> None:
    with TopologyTestDriver(passing) as driver:
        topic = driver.create_input_topic("in", start_timestamp=5000, auto_advance="1 minute")
        topic.pipe_input("a", "1")
        topic.pipe_records([("a", "2"), ("a", "3", 7), ("a", "4")])
        topic.advance_time("1 second")
        topic.pipe_input("a", "5")
        records = driver.create_output_topic("out").read_records_to_list()
    assert [(record.value, record.timestamp) for record in records] == [
        ("1", 5000), ("2", 65_000), ("3", 7), ("4", 125_000), ("5", 186_000),
    ]  # fmt: skip


def test_a_topics_clock_stands_at_0_unless_it_is_moved_and_does_not_go_back(passing: Topology) -> None:
    with TopologyTestDriver(passing) as driver:
        topic = driver.create_input_topic("in")
        topic.pipe_records([("a", "1"), ("a", "2")])
        with pytest.raises(ValueError, match="negative"):
            topic.advance_time("-1 second")
        with pytest.raises(StreamsError, match="timestamp '9:00'"):
            driver.create_input_topic("in", start_timestamp="9:00")  # type: ignore[arg-type]
        records = driver.create_output_topic("out").read_records_to_list()
    assert [record.timestamp for record in records] == [0, 0]
