"""What close() does with a micro-batch that is under way, and with what producers still hold back."""

import time
from collections import Counter
from typing import Any

import pytest
from pyspark import SparkContext

from streamskit import Processor, ProcessorContext, PunctuationType, Record, Serdes, StreamsBuilder, Topology
from streamskit.broker import Broker, EmbeddedBroker
from streamskit.runtime.recovery.checkpoint import Checkpoint
from streamskit.testing import wait_until
from tests.integration.conftest import Run

pytestmark = [pytest.mark.spark, pytest.mark.broker]

QUICK, SLOW = 10, 400
"""How many records two tasks have: one has written its results when the other one has hardly begun."""


def slowly(name: str) -> Topology:
    """Return a program that takes a fiftieth of a second for each record."""

    def copy(value: str) -> str:
        time.sleep(0.02)
        return value

    builder = StreamsBuilder()
    numbers = builder.stream(f"{name}-in", value=Serdes.string())
    numbers.group_by_key().reduce(lambda before, value: copy(value), materialized="last")
    numbers.map_values(lambda v: v).to(f"{name}-out")
    return builder.build()


class Ticking(Processor):
    """Is called ten times a second, so that one micro-batch begins when the one before it has ended."""

    def init(self, context: ProcessorContext) -> None:
        context.schedule("100 ms", PunctuationType.WALL_CLOCK_TIME, lambda now: None)

    def process(self, record: Record) -> None:
        """Do nothing: the clock is what makes micro-batches."""


def producers(name: str) -> list[str]:
    """Return the threads of producers that Spark's Java has for an application."""
    jvm: Any = SparkContext._jvm
    names = [thread.getName() for thread in jvm.Thread.getAllStackTraces().keySet()]
    return [each for each in names if each.startswith(f"kafka-producer-network-thread | {name}-")]


def test_an_application_that_never_waits_between_micro_batches_closes_at_once_when_there_is_nothing_to_do(
    broker: Broker, name: str, run: Run
) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out")
    broker.produce(f"{name}-in", [("a", "1")])
    builder = StreamsBuilder()
    builder.stream(f"{name}-in").group_by_key().count("counts").to_stream().to(f"{name}-out")
    streams = run(builder.build(), commit_interval=0, real_time="off")
    streams.await_processed()
    began = time.monotonic()
    streams.close()
    assert time.monotonic() - began < 5  # ten seconds are the most that a micro-batch under way may take


def test_a_micro_batch_under_way_is_finished_so_that_nothing_is_written_twice(
    broker: Broker, name: str, run: Run
) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out", partitions=2)
    records: Any = [
        {"key": f"k{each}", "value": str(each), "partition": int(each >= QUICK)} for each in range(QUICK + SLOW)
    ]
    broker.produce(f"{name}-in", records)  # before the start: one micro-batch takes them all
    streams = run(slowly(name))
    wait_until(lambda: len(broker.consume(f"{name}-out")) >= QUICK, "what the quick task writes", 60)
    assert streams.close()
    again = run(slowly(name))
    again.await_processed("120 seconds")
    again.close()
    assert Counter(broker.consume(f"{name}-out")["value"]) == Counter(map(str, range(QUICK + SLOW)))


@pytest.mark.parametrize("after", [0, 0.2, 0.4])
def test_a_micro_batch_that_is_still_being_planned_is_finished_too(
    broker: Broker, name: str, run: Run, after: float
) -> None:
    broker.create_topics(f"{name}-in", partitions=2)
    broker.produce(f"{name}-in", [("a", "1"), ("b", "2")])
    builder = StreamsBuilder()
    builder.stream(f"{name}-in").process(Ticking)
    streams = run(builder.build())
    streams.await_processed("60 seconds")
    time.sleep(after)
    assert streams.close()
    checkpoint = Checkpoint(streams.config.folder / "0")
    assert checkpoint.last_begun == checkpoint.last_finished


def test_a_closed_application_leaves_no_producer_behind(broker: Broker, name: str, run: Run) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out", partitions=2)
    streams = run(slowly(name))
    broker.produce(f"{name}-in", [("k", "1")])
    streams.await_processed("60 seconds")
    assert producers(name)
    streams.close()
    assert not producers(name)


def test_what_producers_hold_back_while_the_broker_is_away_does_not_come_after_the_next_run(
    name: str, run_on: Run
) -> None:
    with EmbeddedBroker() as broker:
        broker.create_topics(f"{name}-in", f"{name}-out", partitions=2)
        streams = run_on(broker, slowly(name))
        broker.produce(f"{name}-in", [(f"k{each % 7}", str(each)) for each in range(20)])
        streams.await_processed("60 seconds")
        broker.produce(f"{name}-in", [(f"k{each % 7}", str(each)) for each in range(20, 40)])
        wait_until(lambda: bool(streams.queries()[0].status["isTriggerActive"]), "a micro-batch", 60)
        broker.pause()
        streams.close("8 seconds")
        assert not producers(name)
        broker.resume()
        again = run_on(broker, slowly(name))
        again.await_processed("120 seconds")
        again.close()
        out = broker.consume(f"{name}-out")
        assert set(out["value"]) == set(map(str, range(40)))
