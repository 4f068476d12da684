"""What a small micro-batch costs on a large state: the bytes it writes, and how long it takes."""

import random
import string
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import SparkSession

from streamskit import KafkaStreams, StreamsBuilder
from streamskit.broker.base import Broker
from tests.benchmarks.table import Row

VALUE_BYTES, CHANGES, BATCHES = 200, 400, 30
SIZES = (10_000, 100_000)


def rows(spark: SparkSession, broker: Broker) -> Iterator[Row]:
    """Measure a reducer in Python with a few and with many keys: the second should cost what the first does.

    Args:
        spark: the session to run on.
        broker: the broker to go through.
    """
    for keys in SIZES:
        written, seconds = _measure(spark, broker, keys)
        changed = BATCHES * CHANGES * VALUE_BYTES
        yield Row(
            f"{CHANGES} changes of {keys:,} rows of {VALUE_BYTES} bytes",
            "",
            f"{seconds * 1000:,.0f} ms a batch",
            None,
            f"the checkpoint grew by {written / changed:.1f} times the changes",
        )


def _measure(spark: SparkSession, broker: Broker, keys: int) -> tuple[int, float]:
    """Return by how many bytes the checkpoint grew, and how long Spark took for a micro-batch, in seconds."""
    name = f"state-writes-{keys}"
    broker.create_topics(name)
    builder = StreamsBuilder()
    builder.stream(name).group_by_key().reduce(lambda old, new: new)
    chance = random.Random(17)

    def give(numbers: Iterator[int]) -> None:
        values = ((f"k{number}", "".join(chance.choices(string.ascii_letters, k=VALUE_BYTES))) for number in numbers)
        broker.produce(name, list(values))
        streams.await_processed("300 seconds")

    with tempfile.TemporaryDirectory() as folder:
        streams = KafkaStreams(builder.build(), name, broker.bootstrap_servers, spark=spark, state_dir=folder)
        with streams:
            give(iter(range(keys)))
            before, took = _size(Path(folder)), 0.0
            for _ in range(BATCHES):
                give(chance.randrange(keys) for _ in range(CHANGES))
                last = streams.queries()[0].lastProgress
                took += last.durationMs.get("triggerExecution", 0) / 1000 if last else 0.0
            grown = _size(Path(folder)) - before
    broker.delete_topics(name)
    return grown, took / BATCHES


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
