"""The last step before the sink: users' partitioners say which partitions finished records go to."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamskit.api.error_handlers import fails
from streamskit.execution.dead_letters import GivenRecord, RecordOrigin, failed
from streamskit.execution.native_aggregation import SKIPPED
from streamskit.execution.optimization_barrier import materialize_once
from streamskit.execution.outcomes import Write
from streamskit.execution.row_format import FINISHED_FIELDS
from streamskit.execution.stages import with_sources
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
    counted = [F.count_if((frame["sink"] == sink.name) & nowhere).alias(sink.name) for sink in sinks]
    frame = frame.observe(f"{SKIPPED} partitioners", *counted)
    own = frame["partition"] if "partition" in frame.columns else F.lit(None).cast("int")
    as_it_is = F.array(_row(frame, own))
    copies = F.transform(choice["partitions"], lambda partition: _row(frame, partition))
    rows = F.when(choice["partitions"].isNull(), as_it_is).otherwise(copies)
    notes = [note for sink in sinks for note in _notes(plan, sink, frame)]
    if notes:
        rows = F.concat(rows, F.array(*notes))
    return frame.select(F.explode(rows).alias("row")).where("row is not null").select("row.*")


def _chosen(plan: Plan, frame: DataFrame, counts: Mapping[str, int] | None) -> Column:
    """Return what the partitioner of a row's sink says, as a struct that is never null, whatever the sink."""
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
    """Yield the topics of which it is known that partitioners are asked about them."""
    for sink in plan.partitioned_sinks:
        if isinstance(sink.topic, str):
            yield plan.topic(sink)
        else:
            yield from counts


def _row(frame: DataFrame, partition: Column) -> Column:
    return F.struct(*(frame[name] for name in FINISHED_FIELDS), partition.alias("partition"))


def _notes(plan: Plan, sink: Sink, frame: DataFrame) -> Iterator[Column]:
    """Yield the rows that a record becomes where a partitioner has failed on it, each null where it has not."""
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
