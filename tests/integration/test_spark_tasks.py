"""Spark's own record of the tasks that it ran for an application."""

from pathlib import Path

import pytest

from streamskit import KafkaStreams, Serdes, StreamsBuilder
from streamskit.broker.base import Broker
from streamskit.runtime.spark_reports import spark_tasks

pytestmark = [pytest.mark.broker, pytest.mark.spark]


@pytest.mark.usefixtures("spark")
def test_a_query_has_a_task_for_each_partition_and_they_read_each_record(
    broker: Broker, name: str, state_dir: Path
) -> None:
    broker.create_topics(f"{name}-in", partitions=3)
    broker.produce(f"{name}-in", [(f"k{number}", number) for number in range(300)])
    builder = StreamsBuilder()
    builder.stream(f"{name}-in", value=Serdes.long()).group_by_key().reduce(lambda one, two: one + two, "totals")
    with KafkaStreams(builder.build(), name, broker.bootstrap_servers, state_dir=state_dir) as streams:
        streams.await_processed()
        ran = spark_tasks(streams)
    assert set(ran["query"]) == {f"{name}: sub-topology 0"}
    assert set(ran["status"]) == {"SUCCESS"}
    assert set(ran["executor"]) == {"driver"}
    assert ran["slots"].isna().all()
    reading, computing = (tasks for _, tasks in ran.groupby("stage"))
    assert reading["partition"].tolist() == computing["partition"].tolist() == [0, 1, 2]
    assert reading["records"].sum() == 300
    assert (ran["milliseconds"] > 0).any()
