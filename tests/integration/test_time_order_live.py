"""Tables are whole before streams pass, and records of several topics are taken in the order of their time."""

import random
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import KafkaStreams, StreamsBuilder, Topology
from streamskit.broker import Broker
from streamskit.testing import wait_until
from tests.integration.conftest import Run

pytestmark = [pytest.mark.spark, pytest.mark.broker]

MANY, AT_ONCE = 60, 20


def joined(name: str, kind: str) -> Topology:
    """A stream that looks its keys up in a table."""
    builder = StreamsBuilder()
    stream = builder.stream(f"{name}-stream")
    if kind == "global table":
        table = builder.global_table(f"{name}-table")
        found = stream.join(table, lambda value, row: F.concat(value, row), key_selector=lambda key, value: key)
    else:
        found = stream.join(builder.table(f"{name}-table"), lambda value, row: F.concat(value, row))
    found.to(f"{name}-out")
    return builder.build()


def fill(broker: Broker, topic: str, rows: range, begin: int) -> None:
    records: Any = [{"key": f"k{number}", "value": f"{number};", "timestamp": begin + number} for number in rows]
    broker.produce(topic, records)


def written(broker: Broker, name: str) -> list[Any]:
    return list(broker.consume(f"{name}-out", isolation="read_committed")["value"])


@pytest.mark.parametrize(
    ("kind", "guarantee"),
    [
        ("table", "at_least_once"),
        ("global table", "at_least_once"),
        pytest.param("table", "exactly_once", marks=pytest.mark.soak),
    ],
)
def test_a_table_is_whole_before_a_stream_looks_into_it_and_so_is_what_came_while_the_application_was_away(
    kind: str, guarantee: str, broker: Broker, run: Run, name: str
) -> None:
    broker.create_topics(f"{name}-table", f"{name}-stream", f"{name}-out")
    expected: list[str] = []
    for start in range(2):
        rows = range(start * MANY, (start + 1) * MANY)
        # All of the table is earlier than all of the stream, and no micro-batch holds one of them.
        fill(broker, f"{name}-table", rows, begin=start * 1_000_000)
        fill(broker, f"{name}-stream", rows[::-1], begin=start * 1_000_000 + 500_000)
        streams = run(joined(name, kind), max_records_per_batch=AT_ONCE, processing_guarantee=guarantee)
        streams.await_processed("120 seconds")
        streams.close()
        expected += [f"{number};{number};" for number in rows[::-1]]
        assert sorted(written(broker, name)) == sorted(expected)


def test_a_stream_finds_the_rows_of_its_own_micro_batch_in_tables_whose_updates_the_cache_holds(
    broker: Broker, run: Run, name: str
) -> None:
    broker.create_topics(f"{name}-table", f"{name}-stream", f"{name}-out", f"{name}-groups")
    builder = StreamsBuilder()
    stream, table = builder.stream(f"{name}-stream"), builder.table(f"{name}-table")
    table.group_by(lambda key, row: (F.lit("all"), row)).count().to_stream().to(f"{name}-groups")
    counts = stream.group_by_key().count()
    found = stream.join(table, lambda value, row: F.concat(value, row))
    found.join(counts, lambda value, count: F.concat(value, count.cast("string"))).to(f"{name}-out")
    fill(broker, f"{name}-table", range(MANY), begin=0)
    for time in (500_000, 600_000):
        fill(broker, f"{name}-stream", range(MANY), begin=time)
    streams = run(builder.build())
    streams.await_processed("120 seconds")
    assert len([each for each in streams.queries()[0].recentProgress if each.numInputRows]) == 1
    assert written(broker, name) == [f"{number};{number};{count}" for count in (1, 2) for number in range(MANY)]


def test_a_global_table_is_read_to_its_end_whatever_its_times(broker: Broker, run: Run, name: str) -> None:
    broker.create_topics(f"{name}-table", f"{name}-stream", f"{name}-out")
    fill(broker, f"{name}-table", range(MANY), begin=500_000)
    fill(broker, f"{name}-stream", range(MANY), begin=0)
    run(joined(name, "global table"), max_records_per_batch=AT_ONCE).await_processed("120 seconds")
    assert written(broker, name) == [f"{number};{number};" for number in range(MANY)]


def test_rows_of_a_table_that_are_later_than_the_stream_are_not_seen_by_it(broker: Broker, run: Run, name: str) -> None:
    broker.create_topics(f"{name}-table", f"{name}-stream", f"{name}-out")
    fill(broker, f"{name}-stream", range(MANY), begin=0)
    fill(broker, f"{name}-table", range(MANY), begin=MANY // 2)  # the row of k30 is from when the stream ends
    fill(broker, f"{name}-stream", range(MANY // 2), begin=MANY)
    run(joined(name, "table"), max_records_per_batch=AT_ONCE).await_processed("120 seconds")
    assert written(broker, name) == [f"{number};{number};" for number in range(MANY // 2)]


def test_a_task_waits_for_a_topic_without_records_as_long_as_max_task_idle_says(
    broker: Broker, run: Run, name: str
) -> None:
    broker.create_topics(f"{name}-table", f"{name}-stream", f"{name}-out")
    fill(broker, f"{name}-stream", range(100, 101), begin=0)
    streams: KafkaStreams = run(joined(name, "table"), max_task_idle_ms=120_000)
    wait_until(lambda: bool(streams.queries()), "a query", 60)
    records: Any = [("k100", "early;", 50), ("k100", "late;", 150)]  # the last one lets the stream's record pass
    broker.produce(f"{name}-table", records)
    wait_until(lambda: bool(written(broker, name)), "the joined record", 100)
    assert written(broker, name) == ["100;early;"]


def test_without_max_task_idle_a_task_takes_what_there_is(broker: Broker, run: Run, name: str) -> None:
    broker.create_topics(f"{name}-table", f"{name}-stream", f"{name}-out")
    fill(broker, f"{name}-stream", range(1), begin=100)
    streams = run(joined(name, "table"))
    streams.await_processed("120 seconds")
    fill(broker, f"{name}-table", range(1), begin=0)
    streams.await_processed("120 seconds")
    assert written(broker, name) == []


def in_turn(*topics: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records of one partition of each topic as a task takes them: the one with the earliest next record."""
    left, taken = [list(reversed(topic)) for topic in topics], []
    while any(left):
        taken.append(min(filter(None, left), key=lambda topic: topic[-1]["timestamp"]).pop())
    return taken


def test_a_backlog_of_which_each_micro_batch_takes_a_part_is_taken_in_turn_however_its_times_go_to_and_fro(
    broker: Broker, run: Run, name: str
) -> None:
    broker.create_topics(f"{name}-table", f"{name}-stream", f"{name}-out", partitions=2)
    count, chance = 14_000, random.Random(7)
    records: dict[tuple[str, int], list[dict[str, Any]]] = {
        (topic, partition): [
            {
                "key": f"{partition}-{chance.randrange(5)}",
                "value": f"{number};",
                "partition": partition,
                # No two topics have a time in common. Now and then some records come late, as many have one time.
                "timestamp": 4 * (number // 3 + chance.choice([0, 0, -30, 500])) + 10_000 + (topic == "stream"),
            }
            for number in range(count)
        ]
        for topic in ("table", "stream")
        for partition in range(2)
    }
    for (topic, _), each in records.items():
        broker.produce(f"{name}-{topic}", each)
    expected, rows = [], dict[str, str]()
    for partition in range(2):
        table, stream = records["table", partition], records["stream", partition]
        for record in in_turn(table, stream):
            if record["timestamp"] % 4 == 0:
                rows[record["key"]] = record["value"]
            elif record["key"] in rows:
                expected.append(record["value"] + rows[record["key"]])
    streams = run(joined(name, "table"), max_records_per_batch=23_000)
    streams.await_processed("120 seconds")
    assert len([each for each in streams.queries()[0].recentProgress if each.numInputRows]) == 3
    assert sorted(written(broker, name)) == sorted(expected)
