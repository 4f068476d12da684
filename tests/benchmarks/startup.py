"""How long things take to start, and how much memory they hold, each in a process of its own."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from streamskit.broker import EmbeddedBroker
from streamskit.broker.base import Broker
from tests.benchmarks.table import Row

Figures = dict[str, float]


def rows(broker: Broker) -> Iterator[Row]:
    """Measure the start of Spark, of a first pipeline and of a broker."""
    for topic in ("orders", "out"):
        broker.delete_topics(topic, missing_ok=True)
        broker.create_topics(topic, partitions=4)
    broker.produce("orders", [{"key": "user-1", "value": '{"user": "user-1", "amount": 900}'}])
    hand, kit = _of("by-hand", broker), _of("streamskit", broker)
    for what in ("import", "Spark session", "first micro-batch"):
        yield Row(f"start: {what}", f"{hand[what]:.1f} s", f"{kit[what]:.1f} s", kit[what] / hand[what])
    for what in ("JVM", "Python"):
        yield Row(f"memory: {what}", f"{hand[what]:,.0f} MB", f"{kit[what]:,.0f} MB", kit[what] / hand[what])
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, EmbeddedBroker(data_dir=folder) as fresh:
        took, process = time.perf_counter() - began, fresh.process
        assert process is not None
        yield Row("start: broker", "", f"{took:.1f} s", None, f"{process.memory_info().rss / 1024**2:,.0f} MB")


def _of(way: str, broker: Broker) -> Figures:
    """Return the figures of one way, measured in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.first_batch", way, broker.bootstrap_servers]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))
