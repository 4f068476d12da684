"""An application that begins on a long backlog: its tasks meet behind a repartition in the order of their time."""

from itertools import count

import pytest

from streamskit import Materialized, Serdes, StreamsBuilder, TimeWindows, Topology
from streamskit.broker.base import Broker
from streamskit.kafka.topic_partition import partition_for
from tests.integration.conftest import Run

pytestmark = [pytest.mark.broker, pytest.mark.spark]

HOUR, PARTITIONS, HOURS = 3_600_000, 3, 400
OF_PARTITION = [next(f"k{i}" for i in count() if partition_for(f"k{i}".encode(), PARTITIONS) == p)
                for p in range(PARTITIONS)]  # fmt: skip


def counted_by_value(source: str) -> Topology:
    """Count by value and hour: records of all partitions meet, and may be an hour late."""
    builder = StreamsBuilder()
    in_hours = builder.stream(source).group_by(lambda v: v, name="by-value", key=Serdes.string())
    in_hours.windowed_by(TimeWindows.of_size_and_grace("1 hour", "1 hour")).count(
        Materialized("counts", retention="300 days")
    )
    return builder.build()


@pytest.mark.parametrize(
    ("guarantee", "most"),
    [
        ("at_least_once", None),
        pytest.param("at_least_once", 500, marks=pytest.mark.soak),
        pytest.param("exactly_once", 500, marks=pytest.mark.soak),
    ],
)
def test_a_backlog_loses_nothing_behind_a_repartition_with_a_small_grace(
    guarantee: str, most: int | None, broker: Broker, run: Run, name: str
) -> None:
    topic = f"{name}-in"
    broker.create_topics(topic, partitions=PARTITIONS)
    for key in OF_PARTITION:
        late = [(key, f"{hour % 5}", (hour - 1) * HOUR) for hour in range(2, HOURS)]
        records = [(key, f"{hour % 5}", hour * HOUR) for hour in range(2, HOURS)]
        too_late = [(key, "0", 0)]
        broker.produce(topic, [each for pair in zip(records, late, strict=True) for each in pair] + too_late)
    streams = run(counted_by_value(topic), max_records_per_batch=most, processing_guarantee=guarantee)
    streams.await_processed("180 seconds")

    expected: dict[tuple[str, int], int] = {}
    for hour in range(2, HOURS):
        for start in (hour, hour - 1):
            expected[f"{hour % 5}", start] = expected.get((f"{hour % 5}", start), 0) + PARTITIONS
    found = {(row.key.key, row.key.start // HOUR): row.value for row in streams.store("counts").all()}
    assert found == expected
    assert int(streams.metrics()["dropped"].sum()) == PARTITIONS, "those that were too late in their own partition"
