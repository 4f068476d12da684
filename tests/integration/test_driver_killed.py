"""The driver dies with kill -9 in the middle of its work, again and again, and nothing is lost or counted twice."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from streamskit import KafkaStreams, LogAndContinue
from streamskit.broker.base import Broker
from tests.integration.tallies import check_calls, check_copies, check_settled, check_tables, records, tallies

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow]

DRIVER = """
import sys
from pathlib import Path
from streamskit import KafkaStreams, LogAndContinue
from tests.integration.tallies import tallies
name, servers, state_dir = sys.argv[1:]
streams = KafkaStreams(
    tallies(name, Path(state_dir) / "calls.txt"), name, servers, state_dir=state_dir, max_records_per_batch=500,
    deserialization_handler=LogAndContinue(f"{name}-dead")
)
streams.start()
streams.await_processed("300 seconds")
"""

A_LIFE = 5_000
"""How many records there are for each life of the driver: ten micro-batches."""


@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=[pytest.mark.soak, pytest.mark.timeout(1_800)])])
def test_no_record_is_lost_and_each_counts_once_however_often_the_driver_is_killed(
    kills: int, default_broker: Broker, name: str, state_dir: Path
) -> None:
    broker = default_broker
    count = A_LIFE * (kills + 1)
    broker.create_topics(*(f"{name}-{suffix}" for suffix in ("in", "out", "settled", "dead")), partitions=2)
    broker.produce(f"{name}-in", records(count))
    moments = random.Random(kills)
    for _ in range(kills):
        kill_a_driver_at_work(broker, name, state_dir, moments.random())
    done = batches(state_dir / name, "commits")
    assert 0 < done < 2 * count // 500, "the driver was not killed in the middle of its work"

    with KafkaStreams(
        tallies(name, state_dir / "calls.txt"), name, broker.bootstrap_servers, state_dir=state_dir,
        deserialization_handler=LogAndContinue(f"{name}-dead"),
    ) as streams:  # fmt: skip
        streams.await_processed("240 seconds")
        check_tables(streams, count)
        check_settled(broker, f"{name}-settled", streams, count)
    check_copies(broker, f"{name}-out", count)
    check_calls(state_dir / "calls.txt", count)


def kill_a_driver_at_work(broker: Broker, name: str, state_dir: Path, delay: float) -> None:
    """Start a driver, and kill it so many seconds after it has planned some micro-batches."""
    before = batches(state_dir / name, "offsets")
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, name, broker.bootstrap_servers, str(state_dir)], start_new_session=True
    )
    deadline = time.monotonic() + 200
    while batches(state_dir / name, "offsets") < before + 4:
        assert driver.poll() is None, "the driver ended before it could be killed"
        assert time.monotonic() < deadline, "the driver did not get to work"
        time.sleep(0.02)
    time.sleep(delay)
    # The JVM that holds Spark goes with the Python process that started it.
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()


def batches(application: Path, log: str) -> int:
    return len(list(application.glob(f"*/{log}/[0-9]*")))
