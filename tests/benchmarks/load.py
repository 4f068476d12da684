"""Fills topics with millions of records, in the order of their time, faster than Python could."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamskit.broker.base import Broker
from streamskit.course.datasets.event_time import NEW_YEAR
from streamskit.course.datasets.trades import SYMBOLS
from streamskit.execution.row_format import HEADER_TYPE
from streamskit.runtime.spark_io import WITH_TIME

RECORDS_PER_SECOND = 1_000


def load(spark: SparkSession, broker: Broker, topic: str, count: int, keys: int, partitions: int = 4) -> None:
    """Create a topic and write `count` records to it, a thousand in a second of event time.

    Args:
        spark: the session that writes.
        broker: the broker to write to.
        topic: "trades", "orders", "payments" or "users": what the records are.
        count: how many; of users there is one for each key.
        keys: how many different keys there are.
        partitions: of the topic.
    """
    broker.delete_topics(topic, missing_ok=True)
    broker.create_topics(topic, partitions=partitions)
    number = F.col("id") if topic == "users" else F.pmod(F.xxhash64("id", F.lit(topic)), F.lit(keys))
    if topic == "trades":
        key = F.element_at(F.lit(list(SYMBOLS)), (F.pmod(F.xxhash64("id"), F.lit(len(SYMBOLS))) + 1).cast("int"))
        price = F.round(20 + F.pmod(F.xxhash64("id", F.lit(1)), F.lit(18_000)) / 100, 2)
        value = F.to_json(F.struct(key.alias("symbol"), price.alias("price"), F.lit(10).alias("size")))
    else:
        key = F.concat(F.lit("user-"), number.cast("string"))
        amount = F.pmod(F.xxhash64("id", F.lit(2)), F.lit(1_000)).cast("int")
        order = F.to_json(F.struct(key.alias("user"), amount.alias("amount")))
        value = F.concat(F.lit("name of "), key) if topic == "users" else order
    # A whole number of milliseconds between records, and one task, so that time runs forward in each partition.
    timestamp = F.lit(NEW_YEAR) + (F.lit(0) if topic == "users" else F.floor(F.col("id") * 1000 / RECORDS_PER_SECOND))
    (
        spark.range(0, keys if topic == "users" else count, 1, 1)
        .select(
            F.lit(topic).alias("topic"),
            key.cast("binary").alias("key"),
            value.cast("binary").alias("value"),
            timestamp.cast("long").alias("timestamp"),
            F.lit(None).cast(HEADER_TYPE).alias("headers"),
        )
        .write.format(WITH_TIME)
        .mode("append")
        .option("kafka.bootstrap.servers", broker.bootstrap_servers)
        .option("kafka.linger.ms", "50")
        .option("kafka.batch.size", "262144")
        .save()
    )
