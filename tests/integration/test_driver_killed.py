"""The driver dies with kill -9 in the middle of its work, and nothing is lost or counted twice."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from streamskit import KafkaStreams
from streamskit.broker.base import Broker
from streamskit.datasets import trades
from tests.integration.trade_statistics import expected_statistics, trade_statistics

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow]

DRIVER = """
import sys
from streamskit import KafkaStreams
from tests.integration.trade_statistics import trade_statistics
name, servers, state_dir = sys.argv[1:]
streams = KafkaStreams(
    trade_statistics(f"{name}-trades", f"{name}-out"), name, servers, state_dir=state_dir, max_records_per_batch=1_000
)
streams.start()
streams.await_processed("300 seconds")
"""


def test_every_trade_is_counted_once_after_the_driver_is_killed(broker: Broker, name: str, state_dir: Path) -> None:
    records = list(trades(40_000))
    broker.create_topics(f"{name}-trades", f"{name}-out", partitions=2)
    broker.produce(f"{name}-trades", records)

    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, name, broker.bootstrap_servers, str(state_dir)], start_new_session=True
    )
    batches = state_dir / name / "0" / "offsets"
    deadline = time.monotonic() + 120
    while len(list(batches.glob("[0-9]*"))) < 4:
        assert driver.poll() is None, "the driver ended before it could be killed"
        assert time.monotonic() < deadline, "the driver did not get to its fourth batch"
        time.sleep(0.05)
    # The JVM that holds Spark goes with the Python process that started it.
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    done_before = len(list((state_dir / name / "0" / "commits").glob("[0-9]*")))
    assert 0 < done_before < 40, "the driver was not killed in the middle of its work"

    with KafkaStreams(
        trade_statistics(f"{name}-trades", f"{name}-out"), name, broker.bootstrap_servers, state_dir=state_dir
    ) as streams:
        streams.await_processed("240 seconds")
        store = streams.store("trade-aggregates").to_pandas().set_index(["key", "start"]).sort_index()
    expected = expected_statistics(records)
    columns = ["count", "min_price", "sum_price"]
    pd.testing.assert_frame_equal(store[columns], expected[columns], check_dtype=False)
