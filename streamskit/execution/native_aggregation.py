"""Aggregations by Spark's own operators: `groupBy` and `window`, in update mode.

Which windows have closed is decided by stream time, record by record, before Spark groups the records. Spark's
watermark follows the partition that is furthest behind, and only removes windows that have closed in all of them.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from streamskit.api.windows import TimeWindows
from streamskit.columns import user_functions
from streamskit.common.errors import TopologyError
from streamskit.execution.dropped_records import once, tell_dropped
from streamskit.execution.row_format import HEADER_TYPE
from streamskit.jvm.functions import stream_time
from streamskit.jvm.stream_threads import end_of_stage
from streamskit.planning.options import QueryOptions
from streamskit.topology.nodes import Aggregation, ColumnAggregate, Node

DEFAULT_OPTIONS = QueryOptions()

HEADERS = ("headers", "order")
"""The columns of a record's headers, and of its place in the order in which records came.

Spark keeps them in the state and sorts records for them, which takes longer, so only a test driver requests them.
"""


def aggregate(
    node: Aggregation,
    frame: DataFrame,
    parent: Node,
    folder: str,
    by_partition: bool = False,
    options: QueryOptions = DEFAULT_OPTIONS,
) -> DataFrame:
    """Return the updates of an aggregate: one row for each key (and window) that the batch changed.

    The result's timestamp is the latest of the records in it, as in Kafka Streams.

    Args:
        node: the aggregation.
        frame: its records in the order of their offsets, in the columns key, value, timestamp and partition; and with
            `HEADERS`, if results are to have the headers of the last record in them.
        parent: the node that passes them on.
        folder: where the query keeps stream time from one micro-batch to the next.
        by_partition: whether equal keys of different partitions are counted apart; then the result has `partition`.
        options: how the query runs.

    Raises:
        TopologyError: Spark has no operator for the windows.
    """
    own = ["partition"] if by_partition else []
    if isinstance(node, ColumnAggregate):
        value = user_functions.typed_column(frame["value"], parent.value.data_type, "v")
        made = user_functions.apply(node.aggregator, [value], f"{node.name} at {node.call_site}")
    else:
        made = F.count("*")
    # As in Kafka Streams, records without a key are not aggregated, and those without a value only in windows.
    takes_part = frame["key"].isNotNull()
    if node.windows is None:
        takes_part &= frame["value"].isNotNull()
    by_text = ["key_text"] if has_fractions(frame.schema["key"].dataType) else []
    if by_text:  # Spark groups 0.0 and -0.0 together, which are two keys in Kafka; their text differs
        frame = frame.select("*", F.col("key").cast("string").alias("key_text"), F.col("key").alias("own_key"))
    key = F.col("own_key" if by_text else "key")
    results = (
        *([F.first("own_key").alias("own_key")] if by_text else []),
        made.alias("value"),
        F.max("timestamp").alias("timestamp"),
        F.max_by(*HEADERS).alias("headers") if _has_headers(frame) else F.lit(None).cast(HEADER_TYPE).alias("headers"),
    )
    left_out, threads_of = once(~takes_part), options.threads_of
    if node.windows is None:
        counted = tell_dropped(frame, node.name, {node.name: left_out}, options).where(takes_part)
        grouped = end_of_stage(counted, threads_of).groupBy("key", *by_text, *own).agg(*results)
        return grouped.select(key.alias("key"), "value", "timestamp", "headers", *own)
    if not isinstance(node.windows, TimeWindows):
        raise TopologyError(f"{node.name} ({node.call_site}): Spark has no windows of this kind for Columns.")
    timed = _timed(node.windows, frame, folder, own)
    times = F.coalesce(left_out, F.lit(0)) + F.coalesce(timed["late"], F.lit(0))
    counted = tell_dropped(timed, node.name, {node.name: times}, options)
    passed = ["key", "value", "timestamp", *by_text, *(["own_key"] if by_text else []), *own]
    in_windows = _in_open_windows(node.windows, counted.where(takes_part), passed)
    if options.driver:  # behind a watermark Spark no longer knows that this is one partition
        in_windows = in_windows.coalesce(1)
    grouped = end_of_stage(in_windows, threads_of).groupBy("key", *by_text, "start", "closes", *own).agg(*results)
    windowed_key = F.struct(key.alias("key"), "start", (F.col("start") + node.windows.size).alias("end"))
    return grouped.select(windowed_key.alias("key"), "value", "timestamp", "headers", *own)


def _timed(windows: TimeWindows, frame: DataFrame, folder: str, own: list[str]) -> DataFrame:
    """Return each record with the state of its windows by stream time.

    Args:
        windows: the windows.
        frame: the records, with the columns key, value, timestamp and partition. One without a key does not count.
        folder: where the query keeps stream time.
        own: "partition", if that is to stay.

    Returns:
        A frame that has in place of the partition, or beside it: `at`, as `stream_time` gives it; `first` and `last`,
        the starts in milliseconds of the first and the last of a record's windows that are open (none, if `first` is
        the later one); and `late`, how many of its windows have closed.
    """
    size, advance, time = windows.size, windows.advance, F.col("timestamp")
    counts = F.when(F.col("key").isNotNull(), time)
    at = stream_time(F.col("partition"), counts, folder, size, windows.grace).alias("at")
    passed = [name for name in frame.columns if name != "partition" or name in own]
    closed = F.col("at.stream_time") - windows.grace - size
    open_from = F.when(closed >= 0, closed - closed % advance + advance).otherwise(0)
    # Kafka Streams has no window that starts before 1970.
    earliest = F.greatest(time - size + advance, F.lit(0))
    starts = frame.select(*passed, at).select(
        *passed,
        "at",
        open_from.alias("open_from"),
        (earliest - earliest % advance).alias("earliest"),
        (time - time % advance).alias("last"),
    )
    late = (F.least("open_from", F.col("last") + advance) - F.col("earliest")) / advance
    return starts.select(
        *passed,
        "at",
        F.greatest("open_from", "earliest").alias("first"),
        "last",
        F.greatest(late.cast("bigint"), F.lit(0)).alias("late"),
    )


def _in_open_windows(windows: TimeWindows, frame: DataFrame, passed: list[str]) -> DataFrame:
    """Return each record once for each of its windows that are open.

    Args:
        windows: the windows.
        frame: what `_timed` gives: the columns `passed`, at, first and last, perhaps with `HEADERS`.
        passed: the columns that stay.

    Returns:
        A frame with the columns `passed`, `HEADERS` if they were there, `start` of the window in milliseconds, and
        `closes`: when Spark may forget it, by a watermark that the frame carries.
    """
    closed = F.timestamp_millis(F.greatest("at.closed", F.lit(0)))
    marked = frame.where("first <= last").withColumn("closed", closed).withWatermark("closed", "0 seconds")
    start = F.col("last")
    if windows.advance != windows.size:
        start = F.explode(F.sequence("first", "last", F.lit(windows.advance).cast("bigint")))
    passed = [*passed, *(HEADERS if _has_headers(frame) else ())]
    in_windows = marked.select(*passed, "at", start.alias("start"))
    shift = F.when(F.col("start") > F.col("at.after"), F.col("at.shift")).otherwise(F.col("at.shift_before"))
    # Spark drops late rows and old state by the grouping column that has this metadata.
    mark = {"spark.watermarkDelayMs": 0}
    closes = F.timestamp_millis(F.col("start") + windows.size + shift).alias("closes", metadata=mark)
    return in_windows.select(*passed, "start", closes)


def _has_headers(frame: DataFrame) -> bool:
    """Return whether a frame has the columns of `HEADERS`, whatever others it has."""
    return set(HEADERS) <= set(frame.columns)


def has_fractions(data_type: T.DataType) -> bool:
    """Return whether values of a type have floating-point numbers in them, whose 0.0 and -0.0 are two keys."""
    if isinstance(data_type, T.StructType):
        return any(has_fractions(each.dataType) for each in data_type)
    if isinstance(data_type, T.ArrayType):
        return has_fractions(data_type.elementType)
    return isinstance(data_type, T.FractionalType) and not isinstance(data_type, T.DecimalType)
