"""Fills a topic with millions of trades, in the order of their time, faster than Python could."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamskit.broker.base import Broker
from streamskit.datasets import NEW_YEAR, SYMBOLS
from streamskit.lowering.records import TIMESTAMP_HEADER
from streamskit.runtime.kafka import STAMP

TRADES_PER_SECOND = 1_000


def load_trades(spark: SparkSession, broker: Broker, topic: str, count: int, partitions: int = 4) -> None:
    """Create a topic and write `count` trades to it, a thousand in a second of event time."""
    broker.delete_topics(topic, missing_ok=True)
    broker.create_topics(topic, partitions=partitions)
    symbol = F.element_at(F.lit(list(SYMBOLS)), (F.pmod(F.xxhash64("id"), F.lit(len(SYMBOLS))) + 1).cast("int"))
    price = F.round(20 + F.pmod(F.xxhash64("id", F.lit(1)), F.lit(18_000)) / 100, 2)
    # A whole number of milliseconds between trades, and one task, so that time runs forward in each partition.
    timestamp = F.lit(NEW_YEAR) + F.floor(F.col("id") * 1000 / TRADES_PER_SECOND)
    (
        spark.range(0, count, 1, 1)
        .select(
            F.lit(topic).alias("topic"),
            symbol.cast("binary").alias("key"),
            F.to_json(F.struct(symbol.alias("symbol"), price.alias("price"), F.lit(10).alias("size")))
            .cast("binary")
            .alias("value"),
            F.array(
                F.struct(
                    F.lit(TIMESTAMP_HEADER).alias("key"),
                    timestamp.cast("string").cast("binary").alias("value"),
                )
            ).alias("headers"),
        )
        .write.format("kafka")
        .option("kafka.bootstrap.servers", broker.bootstrap_servers)
        .option("includeHeaders", "true")
        .option("kafka.interceptor.classes", STAMP)
        .option("kafka.linger.ms", "50")
        .option("kafka.batch.size", "262144")
        .save()
    )
