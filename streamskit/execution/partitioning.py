"""The last steps before the sink: which partitions finished records go to, and in which order they are written.

Users' partitioners choose partitions. The order matters in repartition topics: records are written by the time of the
tasks that they come from. Each task writes its own records. Where one task is months ahead of another, a reader of the
topic in which they meet would consider the other's records late. So they go through a shuffle before the sink: all
rows for a partition go to one task, which writes them in the order in which `PartitionGroup` of Kafka Streams takes
them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamskit.api.error_handlers import fails
from streamskit.execution.dead_letters import GivenRecord, RecordOrigin, failed
from streamskit.execution.dropped_records import once, tell_dropped
from streamskit.execution.optimization_barrier import materialize_once
from streamskit.execution.outcomes import Write
from streamskit.execution.record_columns import WRITE_ORDER
from streamskit.execution.row_format import FINISHED_FIELDS
from streamskit.execution.stages import task_numbers, with_sources
from streamskit.jvm.functions import partition_of, row_place
from streamskit.operators.partitioning import SinkPartitioner, StreamPartitioners
from streamskit.planning.plan import Plan
from streamskit.topology.nodes import Sink

CHOICE = "partitions array<int>, error string, kind string"


def with_partitions(plan: Plan, frame: DataFrame, counts: Mapping[str, int] | None) -> DataFrame:
    """Return finished rows with the partition that their sink's partitioner has chosen: one row for each.

    Rows of sinks without a partitioner stay as they are. A record for which no partition was chosen is counted as
    dropped; one on which a partitioner failed becomes a note and dead letters.

    Args:
        plan: what runs.
        frame: with the columns of `row_format.FINISHED_FIELDS`, and `sink`, the name of the sink if that has a
            partitioner; perhaps with `partition`. The result has all of them but `sink`.
        counts: how many partitions each topic has; None if each has one.
    """
    sinks = plan.partitioned_sinks
    if not sinks:
        return frame
    handlers = plan.options.handlers
    frame = materialize_once(frame, _chosen(plan, frame, counts).alias("choice"))
    if handlers.ask_for_sources:
        frame = with_sources(frame, frame["sink"].isNotNull())
    choice = frame["choice"]
    nowhere = choice["error"].isNull() & (F.size(choice["partitions"]) == 0)
    times = {sink.name: once((frame["sink"] == sink.name) & nowhere) for sink in sinks}
    frame = tell_dropped(frame, "partitioners", times, plan.options)
    own = frame["partition"] if "partition" in frame.columns else F.lit(None).cast("int")
    as_it_is = F.array(_row(frame, own))
    copies = F.transform(choice["partitions"], lambda partition: _row(frame, partition))
    rows = F.when(choice["partitions"].isNull(), as_it_is).otherwise(copies)
    notes = [note for sink in sinks for note in _notes(plan, sink, frame)]
    if notes:
        rows = F.concat(rows, F.array(*notes))
    return frame.select(F.explode(rows).alias("row")).where("row is not null").select("row.*")


def _chosen(plan: Plan, frame: DataFrame, counts: Mapping[str, int] | None) -> Column:
    """Return what the partitioner of a row's sink says, as a struct that is never null, whatever the sink.

    It is called with the columns sink, topic, key and value of `frame`; the struct has the fields of `CHOICE`.
    """
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_type
    from pyspark.sql.types import StructType

    sinks = {sink.name: SinkPartitioner(sink.partitioner, sink.key, sink.value)
             for sink in plan.partitioned_sinks if sink.partitioner is not None}  # fmt: skip
    known = None if counts is None else {topic: counts[topic] for topic in _written(plan, counts)}
    ask = StreamPartitioners(sinks, known, plan.options.bootstrap_servers, plan.options.handlers)
    arrow_type = to_arrow_type(StructType.fromDDL(CHOICE))

    def choose(sink: pa.Array, topic: pa.Array, key: pa.Array, value: pa.Array) -> pa.Array:
        rows = zip(*(column.to_pylist() for column in (sink, topic, key, value)), strict=True)
        made = [{} if row[0] is None else ask.choose(*row)._asdict() for row in rows]
        return pa.array(made, arrow_type)

    given = (F.when(frame["sink"].isNotNull(), frame[name]) for name in ("sink", "topic", "key", "value"))
    return F.arrow_udf(choose, CHOICE)(*given)  # type: ignore[call-overload]


def _written(plan: Plan, counts: Mapping[str, int]) -> Iterator[str]:
    """Yield the topics that are known to be written through partitioners."""
    for sink in plan.partitioned_sinks:
        if isinstance(sink.topic, str):
            yield plan.topic(sink)
        else:
            yield from counts


def _row(frame: DataFrame, partition: Column) -> Column:
    """Return a finished row: the columns of `row_format.FINISHED_FIELDS`, and a partition."""
    return F.struct(*(frame[name] for name in FINISHED_FIELDS), partition.alias("partition"))


def _notes(plan: Plan, sink: Sink, frame: DataFrame) -> Iterator[Column]:
    """Yield the rows that a record becomes where a partitioner has failed on it, each null where it has not.

    `frame` has the columns of `row_format.FINISHED_FIELDS`, sink, choice, and those that `RecordOrigin.carried` reads.
    """
    handlers, choice = plan.options.handlers, frame["choice"]
    for kind, is_written in (("processing", False), ("production", True)):
        if fails(getattr(handlers, kind)):
            continue
        is_failed = (frame["sink"] == sink.name) & (choice["kind"] == kind)
        origin = replace(RecordOrigin.carried(frame), timestamp=frame["timestamp"])
        given = GivenRecord(sink.name, frame["topic"], frame["key"], frame["value"], F.lit(is_written))
        for write in failed(handlers, kind, sink, is_failed, choice["error"], origin, given):
            yield F.when(is_failed, _row_of(write))


def _row_of(write: Write) -> Column:
    record = write.record
    fields = {"topic": write.topic, "key": write.key, "value": write.value}
    fields |= {"timestamp": record.timestamp, "headers": record.headers, "partition": F.lit(None).cast("int")}
    return F.struct(*((F.lit(each) if isinstance(each, str) else each).alias(name) for name, each in fields.items()))


def writers(plan: Plan, partitions: Mapping[str, int]) -> int:
    """Return how many tasks write a plan's records in order: the largest partition count of its repartition topics."""
    return max(partitions[topic] for topic in plan.topics_by_time)


def with_write_order(plan: Plan, frame: DataFrame, partitions: Mapping[str, int]) -> DataFrame:
    """Return finished rows with the columns of `record_columns.WRITE_ORDER`.

    Rows that come from one task keep their order: one that was late there is also late for its readers.

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
    # Spark's aggregates come in no particular order.
    time = frame["timestamp"] if plan.native is not None else frame["row_place.time"]
    columns = (writer, time, frame["row_place.place"])
    return frame.select("*", *(column.alias(name) for name, column in zip(WRITE_ORDER, columns, strict=True)))


def _partition(plan: Plan, frame: DataFrame, partitions: Mapping[str, int]) -> Column:
    """Return the partition of its repartition topic to which a row goes; of other rows the number of their task.

    Reads the columns topic and key of `frame`, and partition, if it is there.
    """
    suffixes, own = plan.windowed_topics(), F.spark_partition_id()
    there = frame["partition"] if "partition" in frame.columns else F.lit(None).cast("int")
    chosen = own
    for topic in sorted(plan.topics_by_time):
        by_key = partition_of(frame["key"], suffixes.get(topic, 0), partitions[topic])
        chosen = F.when(frame["topic"] == topic, F.coalesce(there, by_key, own)).otherwise(chosen)
    return chosen
