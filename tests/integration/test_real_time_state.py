"""State in Spark's real-time mode: each record's update at once, exact lateness, a crash in the middle of a batch."""

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from streamskit import KafkaStreams, Materialized, Serdes, StreamsBuilder, StreamsError, TimeWindows, Topology
from streamskit.broker import Broker
from streamskit.faults import Driver
from streamskit.testing import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.slow]

LONG = Serdes.long()
SIZE, ADVANCE = 10_000, 5_000
SECONDS = 90.0
"""How long something may take to come."""


def colours(name: str) -> Topology:
    """Return a topology that counts records by their values, behind a repartition topic."""
    builder = StreamsBuilder()
    counts = builder.stream(f"{name}-in").group_by(lambda v: v).count("counts")
    counts.to_stream().to(f"{name}-out", value=LONG)
    return builder.build()


def hours(name: str) -> Topology:
    """Return a topology that counts the records of each key in hopping windows, without grace."""
    builder = StreamsBuilder()
    windows = TimeWindows.of_size_with_no_grace(SIZE).advance_by(ADVANCE)
    builder.stream(f"{name}-in").group_by_key().windowed_by(windows).count(Materialized("counts", retention="1 day"))
    return builder.build()


@pytest.fixture
def started() -> Iterator[list[Driver]]:
    """What was started, to be ended with the test."""
    drivers: list[Driver] = []
    yield drivers
    for driver in drivers:
        driver.stop()


def counted(broker: Broker, topic: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for record in broker.records(topic, key=Serdes.string(), value=LONG):
        found.setdefault(record.key, []).append(record.value)
    return found


def test_each_update_of_a_count_behind_a_repartition_goes_out_long_before_the_batch_ends(
    broker: Broker, name: str, state_dir: Path, started: list[Driver]
) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out", partitions=2)
    driver = Driver(colours(name), name, broker.bootstrap_servers, state_dir=state_dir, real_time="10 minutes")
    started.append(driver)
    driver.start()
    broker.produce(f"{name}-in", [(f"k{number}", ("red", "blue")[number % 2]) for number in range(40)])
    every = list(range(1, 21))
    wait_until(lambda: counted(broker, f"{name}-out") == {"red": every, "blue": every}, "every update", SECONDS)
    changes = f"{name}-counts-changelog"
    assert counted(broker, changes) == {"red": every, "blue": every}
    wait_until(lambda: dict(driver.rows("counts")) == {"red": 20, "blue": 20}, "the local store", SECONDS)
    assert driver.metrics()["batches"].sum() == 0


@pytest.mark.soak
@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
def test_an_application_that_ended_in_its_first_batch_goes_on_beside_micro_batches_that_are_noted(
    is_killed: bool, broker: Broker, name: str, state_dir: Path, started: list[Driver]
) -> None:
    broker.create_topics(f"{name}-words", f"{name}-more-words", f"{name}-clicks")
    builder = StreamsBuilder()
    # In Python and of two topics, so not in real time.
    words = builder.stream(f"{name}-words", f"{name}-more-words")
    words.group_by_key().reduce(lambda one, other: one + other, "joined")
    builder.stream(f"{name}-clicks").group_by_key().count("counts")
    for joined, count in (("x", 1), ("xx", 2)):
        broker.produce(f"{name}-words", [("a", "x")])
        broker.produce(f"{name}-clicks", [("a", "1")])
        driver = Driver(builder.build(), name, broker.bootstrap_servers, state_dir=state_dir, real_time="10 minutes")
        started.append(driver)
        driver.start()
        for store, row in (("joined", joined), ("counts", count)):
            wait_until(partial(_has, driver, store, row), f"{row} in the store '{store}'", SECONDS)
        wait_until(partial(_has_noted_a_batch, driver), "a micro-batch that is noted", SECONDS)
        driver.kill() if is_killed else driver.stop()


def _has(driver: Driver, store: str, row: object) -> bool:
    return dict(driver.rows(store)) == {"a": row}


def _has_noted_a_batch(driver: Driver) -> bool:
    return bool(driver.metrics()["batches"].sum() >= 1)


def expected_counts(times: list[int]) -> tuple[dict[int, int], int]:
    """Return how many records in time each window has, by its start, and how many windows records were too late for."""
    counts, late, stream_time = Counter[int](), 0, 0
    for at in times:
        stream_time = max(stream_time, at)
        for start in range(max(0, at - at % ADVANCE - SIZE + ADVANCE), at + 1, ADVANCE):
            if start + SIZE > stream_time:
                counts[start] += 1
            else:
                late += 1
    return dict(counts), late


def test_lateness_is_exact_across_batches_and_after_a_crash_in_the_middle_of_one(
    broker: Broker, name: str, state_dir: Path, started: list[Driver]
) -> None:
    broker.create_topics(f"{name}-in")
    driver = Driver(hours(name), name, broker.bootstrap_servers, state_dir=state_dir, real_time="5 seconds")
    started.append(driver)
    driver.start()
    first = [0, 4_000, 12_000, 3_000, 9_000, 30_000, 14_000, 26_000]
    broker.produce(f"{name}-in", [("k", "x", at) for at in first])
    driver.await_processed("60 seconds")
    assert driver.metrics()["dropped"].sum() == expected_counts(first)[1]
    # Stream time is 30 s by what was read in a batch that is done, and 41 s in one that is killed.
    second = [21_000, 41_000, 24_000]
    broker.produce(f"{name}-in", [("k", "x", at) for at in second])
    wait_until(lambda: rows(driver) == expected_counts(first + second)[0], "the updates", SECONDS)
    driver.kill()
    third = [29_000, 34_000, 44_000]
    broker.produce(f"{name}-in", [("k", "x", at) for at in third])
    driver.start()
    driver.await_processed("60 seconds")
    every = first + second + third
    assert rows(driver) == expected_counts(every)[0]
    time.sleep(11)  # two more batches: closed windows are forgotten
    broker.produce(f"{name}-in", [("k", "x", at) for at in (20_000, 41_000, 60_000, 41_000)])
    driver.await_processed("60 seconds")
    assert rows(driver) == expected_counts([*every, 20_000, 41_000, 60_000, 41_000])[0]


def rows(driver: Driver) -> dict[int, int]:
    return {key.start: count for key, count in driver.rows("counts")}


@pytest.mark.soak
def test_a_lost_folder_is_rebuilt(broker: Broker, name: str, state_dir: Path, started: list[Driver]) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out")
    driver = Driver(colours(name), name, broker.bootstrap_servers, state_dir=state_dir, real_time="5 seconds")
    started.append(driver)
    driver.start()
    for _ in range(3):  # changes of several batches are copied
        broker.produce(f"{name}-in", [("k", "red"), ("k", "red"), ("k", "blue")])
        driver.await_processed("60 seconds")
    time.sleep(5)  # a copy is taken every two seconds
    driver.stop()
    shutil.rmtree(state_dir / name)
    broker.produce(f"{name}-in", [("k", "red")])
    driver.start()
    driver.await_processed("60 seconds")
    assert dict(driver.rows("counts")) == {"red": 7, "blue": 3}
    assert "has 2 rows of state again" in driver.log()


def test_an_application_goes_from_real_time_to_micro_batches_and_not_back(
    broker: Broker, name: str, state_dir: Path, started: list[Driver]
) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out")
    driver = Driver(colours(name), name, broker.bootstrap_servers, state_dir=state_dir, real_time="5 seconds")
    started.append(driver)
    driver.start()
    broker.produce(f"{name}-in", [("k", "red"), ("k", "red"), ("k", "blue")])
    driver.await_processed("60 seconds")
    driver.stop()
    broker.produce(f"{name}-in", [("k", "red")])
    with KafkaStreams(colours(name), name, broker.bootstrap_servers, state_dir=state_dir) as streams:
        streams.await_processed("60 seconds")
        assert dict(streams.store("counts").all()) == {"red": 3, "blue": 1}
    other = KafkaStreams(colours(name), f"{name}-b", broker.bootstrap_servers, state_dir=state_dir)
    with other:
        other.await_processed("60 seconds")
    with pytest.raises(StreamsError, match=rf"'{name}-b' has run in micro-batches"):
        KafkaStreams(
            colours(name), f"{name}-b", broker.bootstrap_servers, state_dir=state_dir, real_time="5 seconds"
        ).start()
