"""Which records of its own topics an application no longer needs."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamskit import KafkaStreams, Serdes, StreamsBuilder

pytestmark = pytest.mark.spark


def application(folder: Path) -> KafkaStreams:
    builder = StreamsBuilder()
    values = builder.stream("in", value=Serdes.long()).select_key(lambda v: v.cast("string")).repartition("by-value")
    values.group_by_key().count("counts")  # Spark's own aggregation, a query of its own
    values.group_by_key().reduce(lambda one, two: one + two, "sums")
    return KafkaStreams(
        builder.build(), "app", "127.0.0.1:1", state_dir=folder, processing_guarantee="exactly_once_v2", real_time="off"
    )


def readers(streams: KafkaStreams, *positions: dict[int, int] | None) -> str:
    """Let the queries behind the repartition topic have come so far, each in partition 0; return that topic."""
    inside = streams._application
    (topic,) = inside.topics.between
    reading = [plan for plan in inside.plans if topic in plan.topics]
    assert len(reading) == len(positions)
    queries: list[Any] = [
        SimpleNamespace(plan=plan, position={} if position is None else {topic: position})
        for plan, position in zip(reading, positions, strict=True)
    ]
    inside.supervisor.queries[:] = queries
    return topic


def test_records_stay_until_the_slowest_query_that_reads_them_has_them(tmp_path: Path) -> None:
    streams = application(tmp_path)
    topic = readers(streams, {0: 100}, {0: 5000})
    assert streams._application._read_by_itself() == {topic: {0: 100}}
    readers(streams, {0: 5000}, {0: 100})
    assert streams._application._read_by_itself() == {topic: {0: 100}}


def test_records_stay_while_it_is_unknown_how_far_one_of_their_queries_has_come(tmp_path: Path) -> None:
    streams = application(tmp_path)
    readers(streams, {0: 5000}, None)
    assert streams._application._read_by_itself() == {}
