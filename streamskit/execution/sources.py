"""What a query reads: raw records of its topics, each decoded once into one frame, with the wall clock among them."""

from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import SourceProgress

from streamskit.api.error_handlers import LogAndContinue, fails
from streamskit.api.timestamp_extractor import TimestampExtractor
from streamskit.execution.dropped_records import once, tell_dropped, tell_quotes
from streamskit.execution.optimization_barrier import select_once
from streamskit.execution.record_columns import Datum, RecordColumns, change_from_bytes
from streamskit.operators.records import NO_TIMESTAMP
from streamskit.planning.plan import CLOCK_TOPIC, Plan, PlanInput
from streamskit.topology.nodes import GlobalTableSource, Source, of_kind


@dataclass(frozen=True)
class DecodedInput:
    """The records of one input of a plan, as Columns of the shared frame; `partition` says where each is from.

    Where unreadable records are no reason to fail, `error` says what was wrong with one.
    """

    source: PlanInput
    record: RecordColumns
    partition: Column
    error: Column | None = None


def decode(plan: Plan, raw: DataFrame) -> tuple[DataFrame, list[DecodedInput]]:
    """Read the bytes of the plan's topics with the serdes of its inputs.

    Args:
        plan: what runs.
        raw: with the columns key, value, topic, partition, offset, timestamp and headers of Spark's Kafka source.

    Returns:
        The frame, with the same columns (the timestamp in milliseconds) beside what was read, key_N and value_N of
        input N, and is_N, which says whether a record is of it, where there are several; and the records of each input.
    """
    read: dict[str, Column] = {}
    for number, source in enumerate(plan.inputs):
        is_its = None if _reads_alone(plan) else is_of(source, raw["topic"])
        if is_its is not None:
            read[f"is_{number}"] = is_its
        key, value = (_only(is_its, raw[part]) for part in ("key", "value"))
        if _is_forgiving(plan, source):
            read[f"key_{number}"] = source.node.key.try_from_bytes(key)
            read[f"value_{number}"] = source.node.value.try_from_bytes(value)
            continue
        read[f"key_{number}"] = source.node.key.from_bytes(key)
        if source.changes:
            value, read[f"old_bytes_{number}"] = change_from_bytes(value)
            read[f"value_bytes_{number}"] = value
        read[f"value_{number}"] = source.node.value.from_bytes(value)
    frame = select_once(
        raw,
        *(column.alias(name) for name, column in read.items()),
        *("key", "value", "topic", "partition", "offset", "headers"),
        F.unix_millis(raw["timestamp"]).alias("timestamp"),
    )
    inputs = []
    for number, source in enumerate(plan.inputs):
        if (dropped := _dropped_by_global_table(plan, source, number, frame)) is not None:
            name = source.node.name
            frame = tell_dropped(frame, f"{name} without a key", {name: once(dropped)}, plan.options)
        frame, decoded = _decoded(plan, source, number, frame)
        inputs.append(decoded)
    return frame, inputs


def _dropped_by_global_table(plan: Plan, source: PlanInput, number: int, frame: DataFrame) -> Column | None:
    """Return whether a raw record is one of a global table without a key, if the input is that topic and reports drops.

    Every task gets these records, and a row needs a key. A global store, which a processor fills, takes any record. A
    record that cannot be read is reported where it fails. `frame` has the columns topic, key, and value_N of input
    `number`.
    """
    if (
        not source.tells
        or not source.is_broadcast
        or not of_kind(GlobalTableSource, plan.topology.children(source.node))
    ):
        return None
    dropped = frame["topic"].isin(*source.topics) & frame["key"].isNull()
    return dropped & frame[f"value_{number}"]["error"].isNull() if _is_forgiving(plan, source) else dropped


def _decoded(plan: Plan, source: PlanInput, number: int, frame: DataFrame) -> tuple[DataFrame, DecodedInput]:
    """Return the records of an input, and the frame, in which records that failed may be counted.

    `frame` has the columns that `decode` returns: key_N, value_N and is_N of input `number`, and Kafka's key, value,
    topic, partition, offset, timestamp and headers.
    """
    if _is_forgiving(plan, source):
        return _forgiving_decoded(plan, source, number, frame)
    is_its = _is_its(plan, number, frame)
    key = Datum(frame[f"key_{number}"], _key_as_read(source, is_its, frame), source.node.key)
    if source.changes:
        value = Datum(frame[f"value_{number}"], frame[f"value_bytes_{number}"], source.node.value)
        old_bytes = frame[f"old_bytes_{number}"]
        old = Datum(source.node.value.from_bytes(old_bytes), old_bytes, source.node.value)
    else:
        value = Datum(frame[f"value_{number}"], _only(is_its, frame["value"]), source.node.value)
        old = None
    record = RecordColumns(key, value, frame["timestamp"], frame["headers"], old=old)
    record = record.where_if(is_its)
    frame, record = _timed(plan, source, frame, record, F.lit(True) if is_its is None else is_its)
    return frame, DecodedInput(source, record, _partition(frame))


def _partition(frame: DataFrame) -> Column:
    """Return the partition that a record is from, made of the columns topic and partition."""
    return F.concat_ws("-", frame["topic"], frame["partition"]).cast("binary")


def _is_from_outside(source: PlanInput) -> bool:
    """Return whether others may have written the records of an input."""
    return isinstance(source.node, Source) and not source.node.internal and not source.is_handover


def _key_as_read(source: PlanInput, is_its: Column | None, frame: DataFrame) -> Column | None:
    """Return the bytes of a key, made of the column key, to be passed on; None if the serde has to write them anew.

    Operators in Python, stores and topics compare keys by their bytes, and others may have written equal keys
    differently.
    """
    anew = _is_from_outside(source) and not source.node.key.is_canonical
    return None if anew else _only(is_its, frame["key"])


def _is_forgiving(plan: Plan, source: PlanInput) -> bool:
    """Return whether a record of a source that cannot be read is left to a handler."""
    return _is_from_outside(source) and not fails(plan.options.handlers.deserialization)


def _forgiving_decoded(plan: Plan, source: PlanInput, number: int, frame: DataFrame) -> tuple[DataFrame, DecodedInput]:
    """Return the records of a source, of which those that cannot be read are dropped.

    `frame` has the columns that `_decoded` takes; here key_N and value_N have the fields value and error.
    """
    node = source.node
    read = {part: frame[f"{part}_{number}"] for part in ("key", "value")}
    is_its = _is_its(plan, number, frame)
    # What a serde could read is passed on unchanged.
    key = Datum(read["key"]["value"], _key_as_read(source, is_its, frame), node.key, is_sure=True)
    value = Datum(read["value"]["value"], _only(is_its, frame["value"]), node.value, is_sure=True)
    wrong = [F.when(tried["error"].isNotNull(), F.concat(F.lit(f"the {part}: "), tried["error"]))
             for part, tried in read.items()]  # fmt: skip
    error = F.coalesce(*wrong)
    is_of_source = F.lit(True) if is_its is None else is_its
    if source.tells and plan.options.handlers.deserialization == LogAndContinue():
        bad, place = is_of_source & error.isNotNull(), F.concat_ws("-", frame["topic"], frame["partition"])
        said = F.concat(place, F.lit("@"), frame["offset"], F.lit(": "), error)
        frame = tell_dropped(frame, f"{node.name} read", {node.name: once(bad)}, plan.options)
        frame = tell_quotes(frame, node.name, {node.name: F.when(bad, said)}, plan.options)
    record = RecordColumns(key, value, frame["timestamp"], frame["headers"]).where(is_of_source & error.isNull())
    frame, record = _timed(plan, source, frame, record, is_of_source & error.isNull())
    return frame, DecodedInput(source, record, _partition(frame), error)


def _timed(
    plan: Plan, source: PlanInput, frame: DataFrame, record: RecordColumns, is_of_source: Column
) -> tuple[DataFrame, RecordColumns]:
    """Give a record the time that its source's timestamp extractor takes from it.

    Of `frame` only the column topic is read, for the error; the frame that is returned has the same columns.
    Records of global tables and stores keep their own time, as in `GlobalStateUpdateTask`.
    """
    node = source.node
    if not isinstance(node, Source) or node.internal or source.is_handover or source.is_broadcast:
        return frame, record
    extractor, time = node.timestamps or TimestampExtractor.fail_on_invalid(), record.timestamp
    if extractor.extract is not None:
        time = record.call(node, extractor.extract, node).cast("bigint")
    invalid = time.isNull() | (time < 0)
    if node.needs_partition_time:
        return frame, replace(record, timestamp=F.coalesce(time, F.lit(NO_TIMESTAMP)))
    if extractor.invalid == "fail":
        message = F.format_string(
            f"{node.name}: a record of topic %s has the timestamp %s, which is not a valid time. Fix the producer, or "
            "choose another TimestampExtractor: skip such records, or use the partition's time.",
            frame["topic"], F.coalesce(time.cast("string"), F.lit("null")),
        )  # fmt: skip
        return frame, replace(record, timestamp=F.when(invalid, F.raise_error(message).cast("bigint")).otherwise(time))
    if source.tells:
        frame = tell_dropped(frame, node.name, {node.name: once(is_of_source & invalid)}, plan.options)
    return frame, replace(record, timestamp=time).where(~invalid)


def is_of(source: PlanInput, topic: Column) -> Column:
    """Return whether a record is one of an input, by the name of its topic."""
    if source.pattern:
        return topic.rlike(f"^(?:{source.pattern})$")
    return topic.isin(*source.topics)


def _only(is_its: Column | None, column: Column) -> Column:
    """Return a column for the records of one source, and null for those of others, whose bytes mean something else."""
    return column if is_its is None else F.when(is_its, column)


def _is_its(plan: Plan, number: int, frame: DataFrame) -> Column | None:
    """Return whether a record is of input `number`, by the column is_N that `decode` made; None if all are."""
    return None if _reads_alone(plan) else frame[f"is_{number}"]


def _reads_alone(plan: Plan) -> bool:
    # The wall clock comes in among the records.
    return len(plan.inputs) == 1 and not plan.uses_wall_clock


# ---- the wall clock --------------------------------------------------------------------------------------------------

CLOCK_SOURCE = "org.apache.spark.sql.streamskit.WallClock"

OFTEN = 10
"""How many such records there are at most in a second: a micro-batch takes longer than the time between two."""


def with_clock(frame: DataFrame, interval: int) -> DataFrame:
    """Return raw records with one of the clock's among them at least every `interval` milliseconds.

    Args:
        frame: with the columns of Spark's Kafka source, as the frame that is returned.
        interval: how often the clock ticks at least, in milliseconds.
    """
    spark = frame.sparkSession
    every = min(1000, max(interval, 1000 // OFTEN))
    ticks = spark.readStream.format(CLOCK_SOURCE).option("every", every).load()
    given = {"topic": F.lit(CLOCK_TOPIC), "partition": F.lit(-1), "offset": F.lit(-1), "timestamp": ticks["timestamp"]}
    columns = [given.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name) for field in frame.schema]
    return frame.unionByName(ticks.select(*columns))


def is_clock(source: SourceProgress) -> bool:
    """Return whether a source of a query is the one that `with_clock` adds."""
    return source.description == "WallClock"
