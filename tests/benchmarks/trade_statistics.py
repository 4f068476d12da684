"""Trade statistics in hopping windows: streamskit beside the same written by hand in PySpark."""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from streamskit import KafkaStreams
from streamskit.broker.base import Broker
from streamskit.environment.session import settings
from tests.integration.trade_statistics import trade_statistics

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
        return self.records / self.seconds


def _measured(query: StreamingQuery, seconds: float) -> Run:
    batches = query.recentProgress
    inside = sum(batch.durationMs.get("triggerExecution", 0) for batch in batches if batch.numInputRows) / 1000
    return Run(seconds, inside, sum(batch.numInputRows for batch in batches))


def with_streamskit(spark: SparkSession, broker: Broker, topic: str) -> Run:
    """Run the course's topology over a topic, from start() to the last update that a query of the store can see."""
    out = _fresh(broker, "bench-streamskit-out")
    with tempfile.TemporaryDirectory() as folder:
        streams = KafkaStreams(
            trade_statistics(topic, out),
            "bench-streamskit",
            broker.bootstrap_servers,
            spark=spark,
            state_dir=folder,
            max_records_per_batch=BATCH,
        )
        streams.clean_up()
        began = time.monotonic()
        streams.start()
        streams.await_processed("30 minutes")
        run = _measured(streams.queries()[0], time.monotonic() - began)
        streams.close()
        streams.clean_up()
    return run


def by_hand(spark: SparkSession, broker: Broker, topic: str) -> Run:
    """Run the same in plain PySpark: the averages to one topic, the aggregates to another."""
    out, store = _fresh(broker, "bench-by-hand-out"), _fresh(broker, "bench-by-hand-store")
    trades = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", broker.bootstrap_servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", BATCH)
        .load()
        .select(
            F.col("key").cast("string").alias("key"),
            F.from_json(F.col("value").cast("string"), "symbol string, price double, size int").alias("v"),
            "timestamp",
        )
    )
    statistics = (
        trades.where("v.price > 0")
        .withWatermark("timestamp", "0 seconds")
        .groupBy("key", F.window("timestamp", "5 seconds", "1 second"))
        .agg(F.count("*").alias("count"), F.min("v.price").alias("min_price"), F.sum("v.price").alias("sum_price"))
    )
    windowed = F.concat("key", F.lit("@"), F.col("window.start").cast("string")).cast("binary")
    average = (F.col("sum_price") / F.col("count")).cast("string").cast("binary")
    row = F.to_json(F.struct("count", "min_price", "sum_price")).cast("binary")
    both = F.array(
        F.struct(F.lit(out).alias("topic"), windowed.alias("key"), average.alias("value")),
        F.struct(F.lit(store).alias("topic"), windowed.alias("key"), row.alias("value")),
    )
    with tempfile.TemporaryDirectory() as folder, settings(spark, {"spark.sql.shuffle.partitions": str(PARTITIONS)}):
        began = time.monotonic()
        query = (
            statistics.select(F.explode(both).alias("row"))
            .select("row.*")
            .writeStream.format("kafka")
            .outputMode("update")
            .option("kafka.bootstrap.servers", broker.bootstrap_servers)
            .option("checkpointLocation", str(Path(folder)))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return _measured(query, time.monotonic() - began)


def _fresh(broker: Broker, topic: str) -> str:
    broker.delete_topics(topic, missing_ok=True)
    broker.create_topics(topic, partitions=PARTITIONS)
    return topic
