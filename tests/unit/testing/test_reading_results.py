"""What a test reads from an output topic: records, or only what it compares."""

from collections.abc import Iterator

import pytest

from streamskit import StreamsBuilder, StreamsError, TopologyTestDriver
from streamskit.serdes import Serdes
from streamskit.testing import TestOutputTopic

pytestmark = pytest.mark.spark


@pytest.fixture
def out() -> Iterator[TestOutputTopic]:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_records([("KO", "1"), ("PEP", "2"), ("KO", "3")])
        yield driver.create_output_topic("out")


def test_the_next_record_can_be_read_in_parts(out: TestOutputTopic) -> None:
    assert out.get_queue_size() == 3
    assert (out.read_key_value(), out.read_value(), out.read_record().value) == (("KO", "1"), "2", "3")
    assert (out.get_queue_size(), out.is_empty()) == (0, True)
    with pytest.raises(StreamsError, match="Topic 'out' has no more records"):
        out.read_value()


def test_all_that_is_left_can_be_read_in_parts(out: TestOutputTopic) -> None:
    assert out.read_value() == "1"
    assert out.read_key_values_to_list() == [("PEP", "2"), ("KO", "3")]
    assert out.is_empty()


def test_the_values_are_read_in_order(out: TestOutputTopic) -> None:
    assert out.read_values_to_list() == ["1", "2", "3"]


def test_a_map_has_the_last_value_of_each_key(out: TestOutputTopic) -> None:
    assert out.read_key_values_to_map() == {"KO": "3", "PEP": "2"}


def test_a_map_of_keys_that_a_dict_cannot_have_is_refused_with_what_to_write() -> None:
    builder = StreamsBuilder()
    builder.stream("in", key=Serdes.json("a bigint")).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input({"a": 1}, "x")
        with pytest.raises(StreamsError, match=r"keys that a dict cannot have.*read_key_values_to_list\(\)"):
            driver.create_output_topic("out").read_key_values_to_map()


def test_the_driver_knows_which_topics_were_written() -> None:
    builder = StreamsBuilder()
    evens, odds = (builder.stream("in", value=Serdes.long()).filter(lambda v, n=n: v % 2 == n) for n in (0, 1))
    evens.to("evens")
    odds.group_by_key().count(materialized="odds").to_stream().to("counts")
    with TopologyTestDriver(builder.build()) as driver:
        numbers = driver.create_input_topic("in")
        assert driver.produced_topic_names() == set()
        numbers.pipe_input("a", 2)
        assert driver.produced_topic_names() == {"evens"}
        numbers.pipe_input("a", 1)
        driver.create_output_topic("evens").read_record()
        assert driver.produced_topic_names() == {"evens", "counts", "test-odds-changelog"}
