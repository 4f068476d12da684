"""Runs a case once, with streamskit or written by hand, over topics that are full."""

import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass

import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from streamskit import KafkaStreams, StreamsBuilder
from streamskit.api.config_keys import AUTO
from streamskit.broker.base import Broker
from streamskit.environment.session import settings
from tests.benchmarks.cases import Case

BATCH = 500_000
PARTITIONS = 4
REAL_TIME_BATCH = "30 seconds"
REAL_TIME = {"realTime": REAL_TIME_BATCH}
"""The trigger by hand, which PySpark's types do not know yet."""


@dataclass(frozen=True)
class Run:
    """One measured run.

    Args:
        seconds: how long it took.
        busy: seconds of processor time of this process and of those it has started, Spark's, but not the broker's.
        records: how many it got through.
        inside_spark: how many of its seconds a micro-batch was running; 0 in real-time mode.
    """

    seconds: float
    busy: float
    records: int
    inside_spark: float = 0.0

    @property
    def rate(self) -> float:
        """Records a second."""
        return self.records / self.seconds

    @property
    def steady(self) -> float:
        """Records a second without the start of the query."""
        return self.records / self.inside_spark

    @property
    def cost(self) -> float:
        """Microseconds of processor time for each record."""
        return 1e6 * self.busy / self.records


class Clock:
    """Measures from when it is made until it is read.

    Args:
        broker: what its processes do is not counted.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._began, self._busy = time.monotonic(), _processor_seconds(broker)

    def run(self, records: int, inside_spark: float = 0.0) -> Run:
        """Return what has been measured by now."""
        return Run(time.monotonic() - self._began, _processor_seconds(self._broker) - self._busy, records, inside_spark)


def _processor_seconds(broker: Broker) -> float:
    """Return how long processors have worked for this process and its children, without the broker's."""
    brokers = getattr(broker, "process", None)
    total, waiting = 0.0, [psutil.Process()]
    while waiting:
        process = waiting.pop()
        with suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])  # its own, and those of children that have ended
            waiting += [child for child in process.children() if brokers is None or child.pid != brokers.pid]
    return total


def with_streamskit(
    case: Case,
    spark: SparkSession,
    broker: Broker,
    processing_guarantee: str = "at_least_once",
    real_time: str = AUTO,
) -> Run:
    """Run a case's program, from start() to the last update that a query of the store can see."""
    fresh(broker, "out")
    builder = StreamsBuilder()
    case.program(builder)
    with tempfile.TemporaryDirectory() as folder:
        streams = KafkaStreams(
            builder.build(),
            "bench",
            broker.bootstrap_servers,
            spark=spark,
            state_dir=folder,
            max_records_per_batch=BATCH,
            processing_guarantee=processing_guarantee,
            real_time=real_time,
        )
        streams.clean_up()
        clock = Clock(broker)
        streams.start()
        streams.await_processed("60 minutes")
        is_in_batches = real_time == AUTO
        run = _in_batches(clock, streams.queries()) if is_in_batches else clock.run(records_in(broker, *case.topics))
        streams.close()
        streams.clean_up()
    return run


def by_hand(case: Case, spark: SparkSession, broker: Broker) -> Run:
    """Run the same in plain PySpark with the sink's own settings, from start() to the end of the last batch."""
    fresh(broker, "out")
    fresh(broker, "store")
    at_once = {"maxOffsetsPerTrigger": str(BATCH // len([each for each in case.topics if each != "users"]))}
    sources = {topic: source(spark, broker, topic, at_once) for topic in case.topics}
    with tempfile.TemporaryDirectory() as folder, settings(spark, {"spark.sql.shuffle.partitions": str(PARTITIONS)}):
        frame = case.by_hand(sources)
        clock = Clock(broker)
        query = (
            frame.writeStream.format("kafka")
            .outputMode(case.mode)
            .option("kafka.bootstrap.servers", broker.bootstrap_servers)
            .option("checkpointLocation", folder)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return _in_batches(clock, [query])


def source(spark: SparkSession, broker: Broker, topic: str, streamed: dict[str, str] | None = None) -> DataFrame:
    """Return a topic from its first record on, as a program by hand reads it: "users" once, any other as a stream.

    Args:
        spark: the session that reads it.
        broker: the broker that has it.
        topic: its name.
        streamed: options of a stream.
    """
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic, "startingOffsets": "earliest"}
    if topic == "users":
        return spark.read.format("kafka").options(**options).load()
    return spark.readStream.format("kafka").options(**options, **(streamed or {})).load()


def _in_batches(clock: Clock, queries: list[StreamingQuery]) -> Run:
    batches = [batch for query in queries for batch in query.recentProgress if batch.numInputRows]
    inside = sum(batch.durationMs.get("triggerExecution", 0) for batch in batches) / 1000
    return clock.run(sum(batch.numInputRows for batch in batches), inside)


def records_in(broker: Broker, *topics: str) -> int:
    """Return how many records some topics hold."""
    return sum(sum(broker.end_offsets(topic).values()) for topic in topics)


def fresh(broker: Broker, topic: str) -> None:
    """Make a topic anew."""
    broker.delete_topics(topic, missing_ok=True)
    broker.create_topics(topic, partitions=PARTITIONS)
