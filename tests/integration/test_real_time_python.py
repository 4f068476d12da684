"""Operators in Python in Spark's real-time mode: each record's update at once, failures that name a line, kills."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import functions as F

from streamskit import (
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    Serdes,
    SessionWindows,
    Stores,
    StreamsBuilder,
    StreamsError,
    Topology,
    UncaughtExceptionResponse,
)
from streamskit.broker import Broker
from streamskit.environment.processes import command_line
from streamskit.faults import Driver
from streamskit.serdes import Serde
from streamskit.testing import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.slow]

LONG = Serdes.long()
SECONDS = 90.0
"""How long something may take to come."""


def longest(name: str) -> Topology:
    """Return a topology that keeps the longest word of each first letter, behind a repartition topic."""
    builder = StreamsBuilder()
    words = builder.stream(f"{name}-in").group_by(lambda v: v.substr(1, 1))
    words.reduce(lambda one, other: max(one, other, key=len), "longest").to_stream().to(f"{name}-out")
    return builder.build()


def visits(name: str) -> Topology:
    """Return a topology that counts the records of each session; a pause of ten seconds ends one."""
    builder = StreamsBuilder()
    windows = SessionWindows.of_inactivity_gap_and_grace("10 seconds", "1 minute")
    counts = builder.stream(f"{name}-in").group_by_key().windowed_by(windows).count("visits")
    counts.to_stream(lambda k, v: k.key).to(f"{name}-out", value=LONG)
    return builder.build()


def meanings(name: str) -> Topology:
    """Return a topology that looks words up in a table."""
    builder = StreamsBuilder()
    table = builder.table(f"{name}-table", materialized="meanings")
    builder.stream(f"{name}-in").join(table, lambda word, meaning: F.concat(word, F.lit(": "), meaning)).to(
        f"{name}-out"
    )
    return builder.build()


class Tick(Processor):
    """Says every ten seconds of stream time how many records there were."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.count = 0
        context.schedule(10_000, PunctuationType.STREAM_TIME, self.tick)

    def process(self, record: Record) -> None:
        self.count += 1

    def tick(self, timestamp: int) -> None:
        self.context.forward(Record("records", str(self.count), timestamp))


def ticks(name: str) -> Topology:
    """Return a topology with a processor that waits for stream time."""
    builder = StreamsBuilder()
    builder.stream(f"{name}-in").process(Tick).to(f"{name}-out")
    return builder.build()


class Last(Processor):
    """Keeps the last value of each key."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.rows = context.state_store("last")

    def process(self, record: Record) -> None:
        self.rows.put(record.key, record.value)


def last_values(name: str) -> Topology:
    """Return a topology with a processor that keeps a store."""
    builder = StreamsBuilder()
    builder.stream(f"{name}-in").process(
        Last, stores=[Stores.persistent_key_value_store("last", Serdes.string(), Serdes.string())]
    )
    return builder.build()


def failing(name: str) -> Topology:
    """Return a topology whose reducer fails on some words."""
    builder = StreamsBuilder()
    words = builder.stream(f"{name}-in").group_by_key()
    words.reduce(lambda one, other: str(int(one) + int(other)), "sums")
    return builder.build()


def again(failure: StreamsError) -> UncaughtExceptionResponse:
    """Have a query that failed run again."""
    return UncaughtExceptionResponse.REPLACE_THREAD


@pytest.fixture
def driver(broker: Broker, name: str, state_dir: Path, request: pytest.FixtureRequest) -> Iterator[Driver]:
    """An application in real-time mode, in a process of its own."""
    make, batch = request.param
    broker.create_topics(f"{name}-in", f"{name}-table", f"{name}-out", partitions=2)
    settings: dict[Any, dict[str, Any]] = {
        visits: {"uncaught_exception_handler": again},
        meanings: {"max_task_idle_ms": -1},
    }
    driver = Driver(
        make(name), name, broker.bootstrap_servers, state_dir=state_dir, real_time=batch, **settings.get(make, {})
    )
    driver.start()
    yield driver
    driver.stop()


def values(broker: Broker, topic: str, value: Serde | None = None) -> list[object]:
    return [record.value for record in broker.records(topic, key=Serdes.string(), value=value)]


@pytest.mark.parametrize("driver", [(longest, "10 minutes")], indirect=True)
def test_each_update_of_a_reducer_goes_out_long_before_the_batch_ends(
    driver: Driver, broker: Broker, name: str
) -> None:
    broker.produce(f"{name}-in", [("k", word) for word in ("an", "and", "a", "answer", "or")])
    updates = ["an", "and", "and", "answer"]
    wait_until(
        lambda: [word for word in values(broker, f"{name}-out") if str(word).startswith("a")] == updates,
        "every update", SECONDS,
    )  # fmt: skip
    wait_until(lambda: dict(driver.rows("longest")) == {"a": "answer", "o": "or"}, "the local store", SECONDS)
    assert driver.metrics()["batches"].sum() == 0


@pytest.mark.parametrize("driver", [(last_values, "10 minutes")], indirect=True)
def test_what_a_processor_puts_can_be_queried_long_before_the_batch_ends(
    driver: Driver, broker: Broker, name: str
) -> None:
    broker.produce(f"{name}-in", [("a", "one"), ("b", "two"), ("a", "three")])
    wait_until(lambda: dict(driver.rows("last")) == {"a": "three", "b": "two"}, "the processor's store", SECONDS)
    assert driver.metrics()["batches"].sum() == 0


@pytest.mark.parametrize("driver", [(ticks, "10 minutes")], indirect=True)
def test_what_is_due_by_stream_time_does_not_wait_for_the_next_record(
    driver: Driver, broker: Broker, name: str
) -> None:
    broker.produce(f"{name}-in", [("k", "x", at) for at in (1_000, 2_000)])
    wait_until(lambda: values(broker, f"{name}-out") == ["1"], "the first punctuation", SECONDS)
    broker.produce(f"{name}-in", [("k", "x", 12_000)])
    wait_until(lambda: values(broker, f"{name}-out") == ["1", "3"], "the second punctuation", SECONDS)


@pytest.mark.parametrize("driver", [(visits, "5 seconds")], indirect=True)
def test_nothing_is_lost_when_the_driver_or_its_python_process_is_killed(
    driver: Driver, broker: Broker, name: str
) -> None:
    broker.produce(f"{name}-in", [("k", "x", at) for at in (1_000, 2_000, 3_000)])
    driver.await_processed("60 seconds")
    broker.produce(f"{name}-in", [("k", "x", 4_000)])
    wait_until(lambda: 4 in values(broker, f"{name}-out", value=LONG), "the update", SECONDS)
    workers = workers_of(driver)
    for worker in workers:
        worker.kill()
    broker.produce(f"{name}-in", [("k", "x", 5_000)])
    driver.await_processed("90 seconds")
    assert [count for _, count in driver.rows("visits")] == [5]
    broker.produce(f"{name}-in", [("k", "x", 6_000)])
    wait_until(lambda: 6 in values(broker, f"{name}-out", value=LONG), "the update", SECONDS)
    driver.kill()
    broker.produce(f"{name}-in", [("k", "x", at) for at in (7_000, 30_000)])
    driver.start()
    driver.await_processed("90 seconds")
    assert sorted(count for _, count in driver.rows("visits")) == [1, 7]


def workers_of(driver: Driver) -> list[psutil.Process]:
    """Return the processes that run tasks in Python, each forked from the one that has imported everything."""
    every = psutil.Process(driver.pid).children(recursive=True)
    daemons = [each for each in every if "streamskit.execution.task_daemon" in command_line(each)]
    found = [each for each in daemons if each.parent() in daemons]
    assert found, "no process runs tasks in Python"
    return found


@pytest.mark.parametrize("driver", [(meanings, "5 seconds")], indirect=True)
def test_a_join_that_waits_for_no_topic_takes_records_as_they_come_and_keeps_its_table(
    driver: Driver, broker: Broker, name: str
) -> None:
    expected = list[str]()

    def is_known(meaning: str) -> bool:
        return {row for _, row in driver.rows("meanings")} == {meaning}

    def are_joined() -> bool:
        return sorted(map(str, values(broker, f"{name}-out"))) == sorted(expected)

    for meaning in ("one", "two", "three"):
        broker.produce(f"{name}-table", [(f"key {number}", meaning) for number in range(10)])
        wait_until(partial(is_known, meaning), "the table", SECONDS)
        broker.produce(f"{name}-in", [(f"key {number}", f"{number}") for number in range(10)])
        expected += [f"{number}: {meaning}" for number in range(10)]
        wait_until(are_joined, "the joins", SECONDS)
    driver.await_processed("60 seconds")
    driver.kill()
    broker.produce(f"{name}-in", [("key 3", "again")])
    driver.start()
    wait_until(lambda: "again: three" in values(broker, f"{name}-out"), "the join after the start", SECONDS)


@pytest.mark.parametrize("driver", [(failing, "10 minutes")], indirect=True)
def test_a_reducer_that_fails_is_named_with_the_line_that_failed(driver: Driver, broker: Broker, name: str) -> None:
    broker.produce(f"{name}-in", [("k", "1"), ("k", "one")])
    wait_until(lambda: "invalid literal for int()" in driver.log(), "the failure", SECONDS)
    assert "KSTREAM-REDUCE" in driver.log()
    assert "words.reduce(lambda one, other: str(int(one) + int(other))" in driver.log()
