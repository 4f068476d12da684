"""Runs a case once, with streamskit or written by hand, over topics that are full."""

import tempfile
import time
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from streamskit import KafkaStreams, StreamsBuilder
from streamskit.broker.base import Broker
from streamskit.environment.session import settings
from tests.benchmarks.cases import Case

BATCH = 500_000
PARTITIONS = 4


@dataclass(frozen=True)
class Run:
    """One measured run: seconds in all, seconds inside Spark's batches, and the number of records."""

    seconds: float
    inside_spark: float
    records: int

    @property
    def rate(self) -> float:
        """Records a second."""
        return self.records / self.seconds

    @property
    def steady(self) -> float:
        """Records a second without the start of the query."""
        return self.records / self.inside_spark


def with_streamskit(
    case: Case, spark: SparkSession, broker: Broker, processing_guarantee: str = "at_least_once"
) -> Run:
    """Run a case's program, from start() to the last update that a query of the store can see."""
    _fresh(broker, "out")
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
        )
        streams.clean_up()
        began = time.monotonic()
        streams.start()
        streams.await_processed("60 minutes")
        run = _measured(streams.queries(), time.monotonic() - began)
        streams.close()
        streams.clean_up()
    return run


def by_hand(case: Case, spark: SparkSession, broker: Broker) -> Run:
    """Run the same in plain PySpark with the sink's own settings, from start() to the end of the last batch."""
    _fresh(broker, "out")
    _fresh(broker, "store")
    sources = {topic: _source(case, spark, broker, topic) for topic in case.topics}
    with tempfile.TemporaryDirectory() as folder, settings(spark, {"spark.sql.shuffle.partitions": str(PARTITIONS)}):
        frame = case.by_hand(sources)
        began = time.monotonic()
        query = (
            frame.writeStream.format("kafka")
            .outputMode(case.mode)
            .option("kafka.bootstrap.servers", broker.bootstrap_servers)
            .option("checkpointLocation", folder)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return _measured([query], time.monotonic() - began)


def _source(case: Case, spark: SparkSession, broker: Broker, topic: str):  # type: ignore[no-untyped-def]
    reader = spark.read if topic == "users" else spark.readStream
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic, "startingOffsets": "earliest"}
    if topic != "users":
        options["maxOffsetsPerTrigger"] = str(BATCH // len([each for each in case.topics if each != "users"]))
    return reader.format("kafka").options(**options).load()


def _measured(queries: list[StreamingQuery], seconds: float) -> Run:
    batches = [batch for query in queries for batch in query.recentProgress if batch.numInputRows]
    inside = sum(batch.durationMs.get("triggerExecution", 0) for batch in batches) / 1000
    return Run(seconds, inside, sum(batch.numInputRows for batch in batches))


def _fresh(broker: Broker, topic: str) -> None:
    broker.delete_topics(topic, missing_ok=True)
    broker.create_topics(topic, partitions=PARTITIONS)
