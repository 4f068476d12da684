"""In which order a micro-batch is written to repartition topics: by the time of the tasks that its records come from.

Each task writes its own records. Where one of them is months ahead of another, whoever reads the topic in which they
meet would take the others' records for late ones. So they go through a shuffle before the sink: all rows for a
partition come to one task, which writes them as `PartitionGroup` of Kafka Streams would take them.
"""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamskit.execution.record_columns import WRITE_ORDER
from streamskit.execution.stages import task_numbers
from streamskit.jvm.functions import partition_of, row_place
from streamskit.planning.plan import Plan


def writers(plan: Plan, partitions: Mapping[str, int]) -> int:
    """Return how many tasks write a plan's records in order: one for each partition of its repartition topics."""
    return max(partitions[topic] for topic in plan.topics_by_time)


def with_write_order(plan: Plan, frame: DataFrame, partitions: Mapping[str, int]) -> DataFrame:
    """Return finished rows with the columns of `record_columns.WRITE_ORDER`.

    Rows that come from one task keep their order: one that was late there is late for whoever reads it.

    Args:
        plan: what runs; it has `topics_by_time`.
        frame: with at least the columns topic, key and timestamp, perhaps with partition; each of Spark's partitions
            holds the rows of a task, in order.
        partitions: how many partitions each topic has.
    """
    frame = frame.select("*", row_place(frame["timestamp"]).alias("row_place"))
    count = writers(plan, partitions)
    numbers = F.array(*map(F.lit, task_numbers(frame.sparkSession, count)))
    writer = F.element_at(numbers, F.pmod(_partition(plan, frame, partitions), F.lit(count)) + 1)
    # What Spark has aggregated comes in no order.
    time = frame["timestamp"] if plan.native is not None else frame["row_place.time"]
    columns = (writer, time, frame["row_place.place"])
    return frame.select("*", *(column.alias(name) for name, column in zip(WRITE_ORDER, columns, strict=True)))


def _partition(plan: Plan, frame: DataFrame, partitions: Mapping[str, int]) -> Column:
    """Return the partition of its repartition topic to which a row goes; of other rows the number of their task."""
    suffixes, own = plan.windowed_topics(), F.spark_partition_id()
    there = frame["partition"] if "partition" in frame.columns else F.lit(None).cast("int")
    chosen = own
    for topic in sorted(plan.topics_by_time):
        by_key = partition_of(frame["key"], suffixes.get(topic, 0), partitions[topic])
        chosen = F.when(frame["topic"] == topic, F.coalesce(there, by_key, own)).otherwise(chosen)
    return chosen
