"""Windows that Spark's own operators aggregate: which records of several partitions count, however batches are cut."""

import json
import random
from collections import Counter
from collections.abc import Iterable

import pytest

from streamskit import Materialized, Serdes, StreamsBuilder, TimeWindows, Topology
from streamskit.environment.session import spark_session
from streamskit.planning.options import QueryOptions
from streamskit.planning.planner import plan
from streamskit.testing.memory import MemoryQuery, Raw

pytestmark = pytest.mark.spark

Windows = Counter[tuple[str, int]]
"""How many records were counted, by key and the window's start."""


def counting(windows: TimeWindows) -> Topology:
    builder = StreamsBuilder()
    grouped = builder.stream("in", value=Serdes.string()).group_by_key()
    grouped.windowed_by(windows).count(Materialized("counts", retention="1 day")).to_stream().to("out")
    return builder.build()


def as_kafka_streams(records: Iterable[Raw], windows: TimeWindows) -> tuple[Windows, int]:
    """Count as KStreamWindowAggregate does in each partition, and say how often a record came late for a window."""
    counts, late, stream_time = Windows(), 0, Counter[int | None]()
    for record in records:
        time = stream_time[record.partition] = max(stream_time[record.partition], record.timestamp)
        for start in windows.starting_for(record.timestamp):
            if start + windows.size <= time - windows.grace:
                late += 1
            else:
                counts[str(record.key, "utf8") if record.key else "", start] += 1
    return counts, late


def at_random(chance: random.Random) -> list[list[Raw]]:
    """Return micro-batches of records: partitions begin late, lag, stand still and come back."""
    now = {partition: chance.choice([0, 50, 5_000]) for partition in range(3)}
    batches = []
    for batch in range(6):
        records = []
        for _ in range(chance.randrange(1, 12)):
            partition = chance.randrange(1 + min(batch, 2))
            now[partition] += chance.choice([0, 1, 7, 7, 30, 400])
            time = max(0, now[partition] - chance.choice([0, 0, 0, 5, 25, 60]))
            records.append(Raw("in", f"p{partition}{chance.choice('ab')}".encode(), b"x", time, partition=partition))
        batches.append(records)
    return batches


@pytest.mark.parametrize("seed", range(4))
def test_a_record_counts_in_the_windows_that_its_partition_has_not_closed(seed: int) -> None:
    chance = random.Random(seed)
    size = chance.choice([10, 24])
    windows = TimeWindows.of_size_and_grace(size, chance.choice([0, 15]))
    if seed % 2:
        windows = windows.advance_by(size // 2)
    (query_plan,) = plan(counting(windows), "app", QueryOptions(cache=True))
    assert query_plan.native is not None
    query = MemoryQuery(spark_session(), query_plan)
    batches, counted = at_random(chance), Windows()
    try:
        for batch in batches:
            for written in query.run(batch):
                if written.topic == "out" and written.key and written.value:
                    start = int.from_bytes(written.key[-8:], "big")
                    counted[written.key[:-8].decode(), start] = int.from_bytes(written.value, "big")
        right, late = as_kafka_streams([record for batch in batches for record in batch], windows)
        assert counted == right
        assert sum(query.dropped.values()) == late
    finally:
        query.stop()


def test_spark_forgets_windows_that_all_partitions_have_closed() -> None:
    windows = TimeWindows.of_size_with_no_grace(10)
    (query_plan,) = plan(counting(windows), "app", QueryOptions(cache=True))
    query = MemoryQuery(spark_session(), query_plan)
    try:
        for number in range(25):
            time = 100 * number
            query.run([Raw("in", b"a", b"x", 1_000_000 + time), Raw("in", b"b", b"x", time, partition=1)])
            query.run([Raw("in", b"c", b"x", 500 + time, partition=2)])
        remembered = json.loads(query.query._jsq.lastProgress().json())["stateOperators"][0]["numRowsTotal"]
        assert remembered <= 12, "three partitions, and what the last few micro-batches closed"
    finally:
        query.stop()
