"""Windows that Spark's own operators aggregate close by the stream time of their partition, record by record."""

from collections.abc import Sequence

import pytest
from pyspark.sql import functions as F

from streamskit import KafkaStreams, Materialized, StreamsBuilder, TimeWindows, Topology
from streamskit.broker.base import Broker
from streamskit.kafka.topic_partition import partition_for
from tests.integration.conftest import Run

pytestmark = [pytest.mark.broker, pytest.mark.spark]

MINUTE = 60_000
FAST, SLOW, LATER = (next(f"k{i}" for i in range(99) if partition_for(f"k{i}".encode(), 3) == p) for p in range(3))


def counted(source: str, windows: TimeWindows) -> Topology:
    builder = StreamsBuilder()
    grouped = builder.stream(source).filter(lambda v: v != "skip").group_by_key()
    grouped.windowed_by(windows).count(Materialized("counts", retention="30 days"))
    return builder.build()


def send(broker: Broker, streams: KafkaStreams, topic: str, key: str | None, minutes: Sequence[float]) -> None:
    """Produce a record for each of some minutes of event time, and wait until they are counted."""
    broker.produce(topic, [(key, "x", round(minute * MINUTE)) for minute in minutes])
    streams.await_processed("120 seconds")


def rows(streams: KafkaStreams) -> dict[tuple[str, float], int]:
    return {(row.key.key, row.key.start / MINUTE): row.value for row in streams.store("counts").all()}


def dropped(streams: KafkaStreams) -> int:
    return int(streams.metrics()["dropped"].sum())


def test_a_partition_that_lags_keeps_its_records_before_and_after_a_restart(
    broker: Broker, run: Run, name: str
) -> None:
    topic = f"{name}-in"
    broker.create_topics(topic, partitions=3)
    topology = counted(topic, TimeWindows.of_size_with_no_grace("1 minute"))
    streams = run(topology)
    send(broker, streams, topic, FAST, [60, 61, 62])
    assert "Spark's own aggregation" in streams.explain()
    send(broker, streams, topic, FAST, [63])
    send(broker, streams, topic, SLOW, [10, 11, 12])
    send(broker, streams, topic, SLOW, [11.5])
    assert rows(streams) == {(FAST, m): 1 for m in (60, 61, 62, 63)} | {(SLOW, m): 1 for m in (10, 11, 12)}
    assert dropped(streams) == 1
    streams.close()

    again = run(topology)
    send(broker, again, topic, LATER, [5])
    send(broker, again, topic, FAST, [62.5, 70])
    send(broker, again, topic, SLOW, [11.5, 12.5, 13])
    send(broker, again, topic, LATER, [5.5, 6, 5.7])
    assert rows(again) == (
        {(FAST, m): 1 for m in (60, 61, 62, 63, 70)} | {(SLOW, m): 1 for m in (10, 11, 13)} | {(SLOW, 12): 2}
        | {(LATER, 5): 2, (LATER, 6): 1}
    )  # fmt: skip
    assert dropped(again) == 3


def test_a_task_that_takes_several_partitions_in_turn_keeps_their_times_and_what_they_drop_apart(
    broker: Broker, run: Run, name: str
) -> None:
    topic, keys = f"{name}-in", (FAST, SLOW, LATER)
    broker.create_topics(topic, partitions=3)
    topology = counted(topic, TimeWindows.of_size_with_no_grace("1 minute"))
    for threads, first, late in ((1, 0, 0.5), (2, 2, 1.5), (None, 4, 3.5)):
        broker.produce(
            topic,
            [
                (key, "x", round((hour * 60 + minute) * MINUTE))
                for hour, key in enumerate(keys)
                for minute in (first, first + 1, late)
            ],
        )
        streams = run(topology, num_stream_threads=threads)
        streams.await_processed("120 seconds")
        assert rows(streams) == {
            (key, hour * 60 + minute): 1 for hour, key in enumerate(keys) for minute in range(first + 2)
        }
        assert dropped(streams) == 3
        streams.close()


def test_a_record_is_late_within_the_micro_batch_that_closed_its_window(broker: Broker, run: Run, name: str) -> None:
    topic = f"{name}-in"
    broker.create_topics(topic)
    broker.produce(topic, [("a", "x", m * MINUTE) for m in (0, 1, 3, 1, 2)] + [("a", "skip", 99 * MINUTE)])
    broker.produce(topic, [(None, "x", 98 * MINUTE), ("b", "x", 2 * MINUTE), ("b", "x", 0)])
    streams = run(counted(topic, TimeWindows.of_size_and_grace("1 minute", "1 minute")))
    streams.await_processed("120 seconds")
    assert rows(streams) == {("a", 0): 1, ("a", 1): 1, ("a", 3): 1, ("a", 2): 1, ("b", 2): 1}
    assert dropped(streams) == 3, "two that came late, and one without a key"


def test_a_late_record_still_counts_in_those_of_its_hopping_windows_that_are_open(
    broker: Broker, run: Run, name: str
) -> None:
    topic = f"{name}-in"
    broker.create_topics(topic)
    streams = run(counted(topic, TimeWindows.of_size_with_no_grace("3 minutes").advance_by("1 minute")))
    send(broker, streams, topic, "a", [5])
    send(broker, streams, topic, "a", [3, 2])
    assert rows(streams) == {("a", 3): 2, ("a", 4): 1, ("a", 5): 1}
    assert dropped(streams) == 5


@pytest.mark.parametrize("shape", ["one stream", "merged", "with times of their own"])
def test_columns_over_two_topics_take_their_records_in_the_order_of_time(
    broker: Broker, run: Run, name: str, shape: str
) -> None:
    one, two = f"{name}-one", f"{name}-two"
    broker.create_topics(one, two)
    builder = StreamsBuilder()
    if shape == "with times of their own":
        # The broker's times are in the opposite order.
        broker.produce(one, [("a", str(m * MINUTE), 1_000) for m in range(0, 40, 2)])
        broker.produce(two, [("a", str(m * MINUTE), 2_000 - m) for m in range(1, 40, 2)])
        both = builder.stream(one, two, timestamps=lambda v: v.cast("long"))
    else:
        broker.produce(one, [("a", "one", m * MINUTE) for m in range(0, 40, 2)])
        broker.produce(two, [("a", "two", m * MINUTE) for m in range(1, 40, 2)])
        both = builder.stream(one).merge(builder.stream(two)) if shape == "merged" else builder.stream(one, two)
    windowed = both.group_by_key().windowed_by(TimeWindows.of_size_with_no_grace("2 minutes"))
    windowed.aggregate(lambda v: F.count(v), Materialized("counts", retention="30 days"))
    streams = run(builder.build())
    streams.await_processed("120 seconds")
    assert dropped(streams) == 0
    assert rows(streams) == {("a", m): 2 for m in range(0, 40, 2)}
