"""A processor that forwards a record to one of the steps behind it, some of which are aggregations of Spark's own."""

import pytest
from pyspark.sql import functions as F

from streamskit import FixedKeyProcessor, Serdes, StreamsBuilder, TopologyTestDriver
from streamskit.api.processor import FixedKeyRecord

pytestmark = pytest.mark.spark

LONG = Serdes.long()


class Route(FixedKeyProcessor):
    """Passes records on to the step that their key begins with, and to all steps where there is none."""

    def process(self, record: FixedKeyRecord) -> None:
        self.context.forward(record, {"s": "sums", "m": "most", "p": "plain"}.get(record.key[0]))


def test_each_of_several_aggregates_gets_only_what_was_forwarded_to_it() -> None:
    builder = StreamsBuilder()
    routed = builder.stream("in", value=LONG).process_values(Route, name="route", value=LONG)
    grouped = routed.group_by_key()
    grouped.aggregate(lambda v: F.sum(v), "sum-store", name="sums").to_stream().to("sums-out")
    grouped.aggregate(lambda v: F.max(v), "most-store", name="most").to_stream().to("most-out")
    routed.map_values(lambda v: v, name="plain").to("plain-out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_records(
            [(key, value, 0) for key, value in [("all", 1), ("s", 2), ("m", 3), ("p", 4), ("all", 5), ("s", 6)]]
        )

        def written(topic: str) -> list[tuple[str, int]]:
            made = driver.create_output_topic(topic).read_records_to_list()
            return [(record.key, record.value) for record in made]

        assert written("sums-out") == [("all", 1), ("s", 2), ("all", 6), ("s", 8)]
        assert written("most-out") == [("all", 1), ("m", 3), ("all", 5)]
        assert written("plain-out") == [("all", 1), ("p", 4), ("all", 5)]
