"""How many partitions the topics between queries get."""

from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import KTable, Processor, Record, Serdes, StreamsBuilder, StreamsError
from streamskit.planning.planner import plan
from streamskit.runtime.topics import ApplicationTopics

pytestmark = pytest.mark.columns


def summed(builder: StreamsBuilder, topic: str, rekeyed: bool = False) -> KTable:
    stream = builder.stream(topic, value=Serdes.json("n long"))
    keyed = stream.group_by(lambda k, v: k) if rekeyed else stream.group_by_key()
    return keyed.aggregate(lambda v: F.struct(F.sum(v.n).alias("n")), materialized=f"sum-of-{topic}")


def joined(builder: StreamsBuilder, rekeyed: bool = False) -> ApplicationTopics:
    one, two = summed(builder, "deals", rekeyed), summed(builder, "quotes")
    one.join(two, lambda a, b: F.struct((a.n + b.n).alias("n")), materialized="both")
    return ApplicationTopics("app", plan(builder.build(), "app"))


def test_two_of_sparks_own_aggregations_can_be_joined(spark: Any) -> None:
    topics, there = joined(StreamsBuilder()), {"deals": 3, "quotes": 3}
    between = topics._between(there)
    assert set(between.values()) == {3}
    topics._check_partners(there | between)


def test_those_with_different_numbers_of_partitions_are_refused(spark: Any) -> None:
    topics, there = joined(StreamsBuilder()), {"deals": 3, "quotes": 2}
    with pytest.raises(StreamsError, match="brings together"):
        topics._check_partners(there | topics._between(there))


def test_what_is_repartitioned_first_has_as_many_as_what_feeds_it(spark: Any) -> None:
    topics, there = joined(StreamsBuilder(), rekeyed=True), {"deals": 2, "quotes": 2}
    between = topics._between(there)
    assert set(between.values()) == {2}
    topics._check_partners(there | between)


class Pass(Processor):
    def process(self, record: Record) -> None:
        self.context.forward(record)


def test_a_processor_takes_topics_with_different_numbers_of_partitions_unless_it_reads_a_table(spark: Any) -> None:
    there = {"deals": 2, "quotes": 3, "names": 3}
    builder = StreamsBuilder()
    builder.stream("deals", "quotes").process(Pass).to("out")
    topics = ApplicationTopics("app", plan(builder.build(), "app"))
    topics._check_partners(there)
    assert topics.plans[0].tasks(there) == 3
    builder = StreamsBuilder()
    builder.table("names", materialized="names")
    builder.stream("deals").process(Pass, stores=["names"]).to("out")
    with pytest.raises(StreamsError, match=r"brings together 'names' \(3 partitions\) and 'deals' \(2 partitions\)"):
        ApplicationTopics("app", plan(builder.build(), "app"))._check_partners(there)


def test_an_aggregate_of_topics_with_different_numbers_of_partitions_is_refused(spark: Any) -> None:
    builder = StreamsBuilder()
    builder.stream("deals", "quotes").group_by_key().reduce(lambda one, other: other, "last")
    with pytest.raises(StreamsError, match="brings together"):
        ApplicationTopics("app", plan(builder.build(), "app"))._check_partners({"deals": 2, "quotes": 3})
