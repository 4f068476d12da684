"""Aggregations by Spark's own operators: `groupBy`, `window` and a watermark, in update mode."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamskit.lowering.records import HEADERS, columns_of
from streamskit.topology import Aggregate, Node

SKIPPED = "skipped records"
"""The name under which a query reports how many records could not take part in an aggregation."""


def aggregate(node: Aggregate, frame: DataFrame, parent: Node) -> DataFrame:
    """Return the updates of an aggregate: one row for each key (and window) that the batch changed.

    The result's timestamp is the latest of the records in it, as in Kafka Streams. Spark's watermark is stream time
    minus grace: it drops a record's late windows and forgets closed ones.
    """
    made = columns_of(frame).call(node, node.aggregator, parent.key, parent.value)
    # As in Kafka Streams: no key, no part in an aggregation; and a null value takes part in windows only.
    takes_part = frame["key"].isNotNull()
    if node.windows is None:
        takes_part &= frame["value"].isNotNull()
    counted = frame.observe(f"{SKIPPED} {node.name}", F.count_if(~takes_part).alias(SKIPPED)).where(takes_part)
    results = (made.alias("value"), F.max("timestamp").alias("timestamp"), F.lit(None).cast(HEADERS).alias("headers"))
    if node.windows is None:
        return counted.groupBy("key").agg(*results)
    size, advance, grace = (
        f"{duration} milliseconds" for duration in (node.windows.size, node.windows.advance, node.windows.grace)
    )
    in_windows = (
        counted.withWatermark("timestamp", grace)
        .select("key", "value", "timestamp", F.window("timestamp", size, advance).alias("window"))
        # Kafka Streams has no window that starts before 1970.
        .where(F.col("window.start") >= F.timestamp_millis(F.lit(0)))
    )
    start, end = F.unix_millis("window.start"), F.unix_millis("window.end")
    windowed_key = F.struct(F.col("key"), start.alias("start"), end.alias("end"))
    return (
        in_windows.groupBy("key", "window")
        .agg(*results)
        .select(windowed_key.alias("key"), "value", "timestamp", "headers")
    )
