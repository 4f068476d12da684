"""Aggregations by Spark's own operators: `groupBy`, `window` and a watermark, in update mode."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamskit.api.windows import TimeWindows
from streamskit.columns import user_functions
from streamskit.common.errors import TopologyError
from streamskit.execution.row_format import HEADER_TYPE
from streamskit.topology.nodes import Aggregation, ColumnAggregate, Node

SAID = "streamskit said"
"""How the name begins under which a query quotes, node by node, what was wrong with one of the records it dropped."""

SKIPPED = "skipped records"
"""How the name begins under which a query reports, node by node, how many records it dropped."""


def aggregate(node: Aggregation, frame: DataFrame, parent: Node) -> DataFrame:
    """Return the updates of an aggregate: one row for each key (and window) that the batch changed.

    The result's timestamp is the latest of the records in it, as in Kafka Streams. Spark's watermark is stream time
    minus grace: it drops a record's late windows and forgets closed ones.

    Args:
        node: the aggregation.
        frame: its records, in the columns key, value and timestamp.
        parent: the node that passes them on.
    """
    if isinstance(node, ColumnAggregate):
        value = user_functions.typed_column(frame["value"], parent.value.data_type, "v")
        made = user_functions.apply(node.aggregator, [value], f"{node.name} at {node.call_site}")
    else:
        made = F.count("*")
    # As in Kafka Streams: no key, no part in an aggregation; and a null value takes part in windows only.
    takes_part = frame["key"].isNotNull()
    if node.windows is None:
        takes_part &= frame["value"].isNotNull()
    counted = frame.observe(f"{SKIPPED} {node.name}", F.count_if(~takes_part).alias(node.name)).where(takes_part)
    results = (
        made.alias("value"),
        F.max("timestamp").alias("timestamp"),
        F.lit(None).cast(HEADER_TYPE).alias("headers"),
    )
    if node.windows is None:
        return counted.groupBy("key").agg(*results)
    if not isinstance(node.windows, TimeWindows):
        raise TopologyError(f"{node.name} ({node.call_site}): Spark has no windows of this kind for Columns.")
    size, advance, grace = (
        f"{duration} milliseconds" for duration in (node.windows.size, node.windows.advance, node.windows.grace)
    )
    in_windows = (
        counted.withColumn("time", F.timestamp_millis("timestamp"))
        .withWatermark("time", grace)
        .select("key", "value", "timestamp", F.window("time", size, advance).alias("window"))
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
