"""Results carry the headers of the record that made them, as in Kafka Streams, whoever aggregates."""

import pytest
from pyspark.sql import functions as F

from streamskit import StreamsBuilder, TimeWindows, TopologyTestDriver
from tests.driver_in_micro_batches import DriverInMicroBatches

pytestmark = pytest.mark.spark


def test_results_of_native_aggregations_have_the_headers_of_the_record_that_came_last() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    grouped.count("counts").to_stream().to("counted")
    windows = TimeWindows.of_size_and_grace("100 ms", "1 second")
    grouped.windowed_by(windows).aggregate(lambda v: F.max(v), "highest").to_stream().to("highest")
    with TopologyTestDriver(builder.build()) as driver:
        records = driver.create_input_topic("in")
        records.pipe_input("a", "x", 50, (("h", b"1"),))
        records.pipe_input("a", "y", 20, (("h", b"2"),))
        records.pipe_input("a", "z", 10)
        for topic in ("counted", "highest"):
            made = driver.create_output_topic(topic).read_records_to_list()
            assert [record.headers for record in made] == [(("h", b"1"),), (("h", b"2"),), ()], topic


@pytest.mark.parametrize("driver", [TopologyTestDriver, DriverInMicroBatches])
def test_a_record_keeps_headers_of_the_same_name_in_their_order(driver: type[TopologyTestDriver]) -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    headers = (("trace", b"1"), ("from", b"shop"), ("trace", b"2"))
    with driver(builder.build()) as opened:
        opened.create_input_topic("in").pipe_input("a", "x", 50, headers)
        assert opened.create_output_topic("out").read_record().headers == headers
