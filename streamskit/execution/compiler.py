"""The compiler: from a plan to one streaming DataFrame whose rows are Kafka records to write.

It goes through these passes, each in a module of its own: `sources` decodes what is read, `steps` follows each record
from step to step and `error_guard` lets it fail on the way, `outcomes` turns the outcomes into rows, `stages` runs the
rows through the stateful operators, and finished rows go to the sink.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamskit.api.error_handlers import fails
from streamskit.columns.user_functions import noting_users_lines_only
from streamskit.execution.dead_letters import RecordOrigin, counted
from streamskit.execution.error_guard import ErrorGuard
from streamskit.execution.operator_results import compile_results
from streamskit.execution.optimization_barrier import ComputedAhead
from streamskit.execution.outcomes import Outcome, Rows, Write, count_dropped, either, rows_of
from streamskit.execution.partitioning import with_partitions, with_write_order
from streamskit.execution.record_columns import RecordColumns, to_sink
from streamskit.execution.row_format import (
    BEGIN,
    CLOCK,
    FINISHED,
    TIME_UNDECIDED,
    TO_OWN_PARTITION,
    TO_PARTITIONER,
    row_struct,
)
from streamskit.execution.sinks import learn_to_ask_for_topics
from streamskit.execution.sources import DecodedInput, decode, with_clock
from streamskit.execution.stages import run_stages, task_numbers, with_order
from streamskit.execution.steps import Steps
from streamskit.jvm.stream_threads import end_of_stage
from streamskit.planning.plan import CLOCK_TOPIC, STREAM_TIME_KEY, Plan
from streamskit.topology.nodes import Source

Read = Callable[[list[str]], DataFrame]
"""How a plan gets its input: a function from topics to their raw records, as Spark's Kafka source gives them."""


@noting_users_lines_only()
def compile_plan(
    plan: Plan,
    read: Read,
    tasks: int,
    checkpoint: str,
    runs: Sequence[int] = (0,),
    partitions: Mapping[str, int] | None = None,
    by_time: bool = False,
) -> DataFrame:
    """Return the streaming DataFrame of a plan: one row for each record to write.

    Args:
        plan: what to run.
        read: gives the raw records of topics, with the columns key, value, topic, partition, offset, timestamp and
            headers of Spark's Kafka source.
        tasks: how many tasks the query has.
        checkpoint: the folder where Spark notes what the query has done.
        runs: the numbers of the micro-batches with which the query's runs began, this one included.
        partitions: how many partitions each topic has; partitioners need this.
        by_time: whether records of several tasks meet in repartition topics in time order; the sink must ensure it.

    Returns:
        A frame with the columns topic, key, value, timestamp and headers, `partition` where not every row goes by its
        key, and `record_columns.WRITE_ORDER` where records are written in a certain order.

    Raises:
        TopologyError: Spark cannot run this shape of program.
    """
    raw = read(plan.topics)
    if not fails(plan.options.handlers.production):
        learn_to_ask_for_topics(raw.sparkSession)
    if plan.wall_clock_interval is not None:
        raw = with_clock(raw, plan.wall_clock_interval)
    frame, inputs = decode(plan, raw)
    finished = (
        _with_operators(plan, frame, inputs, tasks, runs)
        if plan.operators
        else _in_one_pass(plan, frame, inputs, checkpoint)
    )
    finished = counted(plan, with_partitions(plan, finished, partitions))
    written = to_sink(with_write_order(plan, finished, partitions) if by_time and partitions else finished)
    return end_of_stage(written, plan.options.threads_of)


def _in_one_pass(plan: Plan, frame: DataFrame, inputs: list[DecodedInput], checkpoint: str) -> DataFrame:
    """Return the finished rows of a plan without stateful operators, with the columns of a record to write.

    They have `partition` where the plan keeps partitions, and `sink` where it has sinks with partitioners.
    """
    guard = ErrorGuard(plan.options.handlers, RecordOrigin.of(frame), plan.tells_failures)
    outcomes: list[Outcome] = []
    ahead = ComputedAhead()
    for decoded in inputs:
        node, record = decoded.source.node, decoded.record
        outcomes += guard.unread(decoded)
        for step in Steps(plan, guard).whole_frame_path(node) if len(inputs) == 1 else ():
            frame, record = Steps(plan, guard, checkpoint, ahead=ahead).advance(frame, step, record, node)
            node = step
        if plan.native is not None:
            itself = record.key_bytes(node.key), record.value_bytes(node.value)
            origin = RecordOrigin.lost(record.timestamp, record.headers, *itself)
            if plan.keeps_partitions:
                origin = replace(origin, partition=frame["partition"])
            guard = ErrorGuard(guard.handlers, origin)
        outcomes += Steps(plan, guard, ahead=ahead).go_on(node, record)
    rows = rows_of(outcomes, plan)
    # There may be nothing to write: nobody reads an aggregate, or no record can fail in a query that exists for those.
    rows = rows or rows_of([_nothing(record)], plan)
    # All outputs of a record leave in one pass over it, whatever their number.
    row = rows.alone if rows.is_alone else F.explode(rows.as_array())
    frame = count_dropped(ahead.added_to(frame), outcomes, plan)
    return frame.select(row.alias("row")).where("row is not null").select("row.*")


def _nothing(record: RecordColumns) -> Outcome:
    empty = F.lit(None).cast("binary")
    return Write(record.where(F.lit(False)), "", empty, empty)


def _with_operators(
    plan: Plan, frame: DataFrame, inputs: list[DecodedInput], tasks: int, runs: Sequence[int]
) -> DataFrame:
    """Return the finished rows of a plan with stateful operators: rows go through them level by level.

    They have the columns of a record to write, `partition`, null where its key decides, and `sink` where the plan has
    sinks with partitioners.
    """
    guard = ErrorGuard(plan.options.handlers, RecordOrigin.of(frame))
    ahead = ComputedAhead()
    outcomes = [Steps(plan, guard, ahead=ahead).arrive(decoded) for decoded in inputs]
    unread = [guard.unread(decoded) for decoded in inputs]
    alternatives = [
        either([rows_of(one, plan), rows_of(other, plan)]) for one, other in zip(outcomes, unread, strict=True)
    ]
    if plan.uses_wall_clock:
        clock = row_struct(CLOCK, key=frame["key"], timestamp=frame["timestamp"])
        alternatives.append(Rows.of(F.when(frame["topic"] == CLOCK_TOPIC, clock)))
    rows = _beginning(plan, frame, inputs, either(alternatives))
    frame = count_dropped(ahead.added_to(frame), [outcome for each in outcomes for outcome in each], plan)
    frame = with_order(plan, frame, rows, tasks)
    finished = run_stages(plan, frame, lambda frame, numbers: compile_results(plan, frame, numbers), tasks, runs)
    if plan.uses_wall_clock or _has_beginnings(plan) or plan.runs_in_real_time:
        finished = finished.where(finished["port"] == FINISHED)
    own = F.array_position(F.array(*map(F.lit, task_numbers(finished.sparkSession, tasks))), finished["task"]) - 1
    partition = F.when(finished["other"] == F.lit(TO_OWN_PARTITION), own).cast("int").alias("partition")
    sink = F.when(
        F.startswith(finished["other"], F.lit(TO_PARTITIONER)),
        F.substring(finished["other"], F.lit(len(TO_PARTITIONER) + 1), F.octet_length(finished["other"])),
    )
    sinks = [sink.cast("string").alias("sink")] if plan.partitioned_sinks else []
    return finished.select("topic", "key", "value", "timestamp", "headers", partition, *sinks)


def _has_beginnings(plan: Plan) -> bool:
    """Return whether a row marks the beginning of each record: for handlers that need it, and for the time of tasks."""
    return plan.options.handlers.ask_for_sources or any(planned.operator.punctuates for planned in plan.operators)


def _beginning(plan: Plan, frame: DataFrame, inputs: list[DecodedInput], rows: Rows) -> Rows:
    """Return the rows of records, preceded, if needed, by one that says where the record comes from, and its time.

    A record that cannot be read, or is skipped for its time, gets no such row. `frame` has the columns that `decode`
    gives; of those topic, key, value and headers are read.
    """
    if not _has_beginnings(plan):
        return rows
    begin = F.coalesce(*(_beginning_of(plan, frame, each) for each in inputs if not each.source.is_broadcast))
    if plan.runs_in_real_time:  # the next record may take long to arrive: what is due by stream time is due now
        end = F.when(begin.isNotNull(), row_struct(CLOCK, key=F.lit(STREAM_TIME_KEY), timestamp=F.lit(-1)))
        return Rows([(begin, False), *rows.parts, (end, False)])
    if rows.is_alone and not plan.tells_beginnings:  # even a record that leaves no rows moves the task's time
        return Rows.of(F.coalesce(rows.alone, begin))
    return Rows([(begin, False), *rows.parts])


def _beginning_of(plan: Plan, frame: DataFrame, decoded: DecodedInput) -> Column:
    """Return the row that begins the records of one input, made from the columns topic, key, value and headers."""
    record, node = decoded.record, decoded.source.node
    told = {"timestamp": record.timestamp}
    if plan.options.handlers.ask_for_sources:
        told |= {name: frame[name] for name in ("key", "value", "headers")}
    if isinstance(node, Source) and node.needs_partition_time and not decoded.source.is_handover:
        told |= {"other": F.lit(TIME_UNDECIDED)}
    if plan.waits_for_topics:
        told |= {"topic": frame["topic"]}
    begin = row_struct(BEGIN, **told)
    return begin if record.condition is None else F.when(record.condition, begin)
