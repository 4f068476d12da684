"""A driver or a broker that dies in the middle of a transaction costs time, and no record."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition

from streamskit import KafkaStreams
from streamskit.broker import Broker, EmbeddedBroker
from tests.integration.conftest import Run
from tests.integration.counting_program import check_exactly_once, counting, create_topics, produce, written
from tests.integration.kafka_defaults import KAFKA_DEFAULTS

pytestmark = [pytest.mark.spark, pytest.mark.broker]

DRIVER = """
import sys
from streamskit import KafkaStreams
from tests.integration.counting_program import counting
name, servers, state_dir, most = sys.argv[1:]
streams = KafkaStreams(
    counting(name), name, servers, state_dir=state_dir, processing_guarantee="exactly_once",
    max_records_per_batch=int(most),
)
streams.start()
streams.await_processed("300 seconds")
"""


@contextlib.contextmanager
def driver(broker: Broker, name: str, state_dir: Path, most: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run the application in a process of its own, and end that with kill -9: the JVM goes with it."""
    arguments = [sys.executable, "-c", DRIVER, name, broker.bootstrap_servers, str(state_dir), str(most)]
    process = subprocess.Popen(arguments, start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextlib.contextmanager
def uncommitted(broker: Broker, topic: str) -> Iterator[Callable[[], int]]:
    """Count the records of a topic that lie in transactions which are open."""
    servers = broker.bootstrap_servers
    with (
        closing(KafkaConsumer(bootstrap_servers=servers, isolation_level="read_uncommitted")) as latest,
        closing(KafkaConsumer(bootstrap_servers=servers, isolation_level="read_committed")) as stable,
    ):
        partitions = [TopicPartition(topic, number) for number in range(2)]

        def count() -> int:
            before = sum(stable.end_offsets(partitions).values())
            return sum(latest.end_offsets(partitions).values()) - before

        yield count


@pytest.mark.slow
def test_a_driver_killed_in_the_middle_of_a_transaction_leaves_nothing_behind(
    default_broker: Broker, name: str, run_on: Run, state_dir: Path
) -> None:
    broker = default_broker
    ids = range(100_000)
    create_topics(broker, name)
    produce(broker, name, ids)
    with uncommitted(broker, f"{name}-out") as count, driver(broker, name, state_dir, len(ids)) as process:
        deadline = time.monotonic() + 120
        while not count():
            assert process.poll() is None, "the driver ended before it could be killed"
            assert time.monotonic() < deadline, "the driver opened no transaction"
    left = len(broker.consume(f"{name}-out"))
    assert 0 < left < len(ids), "the driver was not killed in the middle of its transaction"
    assert written(broker, name) == Counter()
    streams = run_on(broker, counting(name), processing_guarantee="exactly_once")
    streams.await_processed("120 seconds")
    check_exactly_once(broker, name, streams, ids)
    assert len(broker.consume(f"{name}-out")) == left + len(ids)  # the first try is there, and no reader sees it


@pytest.mark.soak
def test_a_broker_killed_in_the_middle_of_a_transaction_costs_only_time(
    tmp_path: Path, name: str, state_dir: Path
) -> None:
    ids = range(100_000)
    with EmbeddedBroker(data_dir=tmp_path / "broker", settings=KAFKA_DEFAULTS) as frail:
        create_topics(frail, name)
        options: dict[str, Any] = {"state_dir": state_dir, "processing_guarantee": "exactly_once"}
        with KafkaStreams(counting(name), name, frail.bootstrap_servers, **options) as streams:
            streams.await_processed()
            with uncommitted(frail, f"{name}-out") as count:
                produce(frail, name, ids)
                deadline = time.monotonic() + 60
                while not count():
                    assert time.monotonic() < deadline, "there was no transaction"
            frail.kill()
            time.sleep(3)
            frail.start()
            streams.await_processed("120 seconds")
            check_exactly_once(frail, name, streams, ids)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_a_driver_killed_ten_times_at_random_loses_and_doubles_nothing(
    default_broker: Broker, name: str, run_on: Run, state_dir: Path
) -> None:
    broker = default_broker
    ids, chance = range(200_000), random.Random(7)
    create_topics(broker, name)
    produce(broker, name, ids)
    offsets = state_dir / name / "0" / "offsets"
    for _ in range(10):
        before = len(list(offsets.glob("[0-9]*")))
        with driver(broker, name, state_dir, 3_000) as process:
            deadline = time.monotonic() + 120
            while len(list(offsets.glob("[0-9]*"))) < before + 3:
                assert process.poll() is None, "the driver ended before it could be killed"
                assert time.monotonic() < deadline, "the driver did not come to work"
                time.sleep(0.02)
            time.sleep(chance.random())
    streams = run_on(broker, counting(name), processing_guarantee="exactly_once")
    streams.await_processed("300 seconds")
    check_exactly_once(broker, name, streams, ids)
