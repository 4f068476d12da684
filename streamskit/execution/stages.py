"""How rows go through the task operators of a query, level by level."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from streamskit.execution.dropped_records import tell_dropped
from streamskit.execution.optimization_barrier import select_once
from streamskit.execution.outcomes import Rows
from streamskit.execution.row_format import (
    AT_ONCE,
    DROPPED,
    FIELDS,
    NAMES,
    ORDER,
    RESULT_SCHEMA,
    RESULTS,
    SEQUENCE,
    SIDES,
    row_struct,
)
from streamskit.execution.sources import is_of
from streamskit.execution.stage_rows import StageInputs
from streamskit.execution.task_processor import TaskProcessor
from streamskit.jvm.functions import packed, unpacked, with_ends
from streamskit.jvm.python_task import run_by_batch, run_by_row
from streamskit.jvm.stream_threads import end_of_stage
from streamskit.operators.records import SOURCE_HEADERS
from streamskit.planning.lookups import looked_into
from streamskit.planning.plan import Plan, PlannedOperator

SOURCE = "source"
"""The column of a result that holds which record it was made of, if a handler may ask."""

CompileResults = Callable[[DataFrame, list[int]], tuple[DataFrame, dict[int, Rows]]]
"""What happens to the results of the operators with some numbers: a frame with what it takes, and the rows of each."""


def with_order(plan: Plan, frame: DataFrame, rows: Rows, tasks: int) -> DataFrame:
    """Return a frame of rows with their task and their place in it, with the columns of `row_format.SCHEMA`.

    Args:
        plan: what runs.
        frame: decoded records, with at least the columns topic, partition and offset.
        rows: what each record becomes.
        tasks: how many tasks there are.
    """
    numbers = task_numbers(frame.sparkSession, tasks)
    task = F.element_at(F.array(*map(F.lit, numbers)), frame["partition"] + 1)
    if plan.uses_wall_clock or any(entry.is_broadcast for entry in plan.inputs):
        # Each task keeps its own copy of a global table, and gets the clock.
        own, every = F.array(task), F.array(*map(F.lit, numbers))
        is_broadcast = frame["topic"].isin(*plan.broadcast_topics)
        task = F.explode(F.when(is_broadcast, every).otherwise(own))
    origin = F.array_position(F.array(*map(F.lit, plan.topics)), frame["topic"]).cast("int")
    for each in plan.inputs:
        if each.pattern:
            origin = F.when(is_of(each, frame["topic"]), plan.topics.index(each.pattern) + 1).otherwise(origin)
    return _placed(frame, rows, task.alias("task"), origin.alias("origin"), frame["offset"].alias("position"))


def run_stages(
    plan: Plan, frame: DataFrame, compile_results: CompileResults, tasks: int, runs: Sequence[int]
) -> DataFrame:
    """Return the rows that are finished when all levels have run.

    Args:
        plan: what runs.
        frame: the rows that come in, with the columns of `row_format.SCHEMA`, as those that are returned.
        compile_results: what becomes of the operators' results.
        tasks: how many tasks there are.
        runs: with which micro-batches the query's runs began.
    """
    numbered = task_numbers(frame.sparkSession, tasks)
    if plan.runs_in_real_time:
        frame = frame.select(with_ends(F.struct("*")))
    levels = sorted({slot.level for slot in plan.operators})
    for level in levels:
        numbers = [number for number, slot in enumerate(plan.operators) if slot.level == level]
        inputs = _inputs(plan, numbers, numbered)
        operators = [plan.operators[number].operator for number in numbers]
        uncached = frozenset(name for number in numbers if (name := _without_cache(plan.operators[number])))
        looked = frozenset(plan.operators[number].operator.name for number in looked_into(plan))
        ports = [*numbers, *(number + AT_ONCE for number in numbers)]
        processor = TaskProcessor(operators, ports, inputs, plan.options, runs, uncached, looked)
        frame = _by_row(frame, processor) if plan.runs_in_real_time else _by_batch(frame, processor, plan)
        if plan.options.driver:  # Spark does not know that this is still one partition
            frame = frame.coalesce(1)
        frame = _without_dropped(plan, frame, numbers, level)
        if plan.options.handlers.ask_for_sources:
            frame = with_sources(frame, frame["port"] >= RESULTS)
        frame = _routed(frame, numbers, compile_results)
    return frame


def _by_row(frame: DataFrame, processor: TaskProcessor) -> DataFrame:
    """Return what a stage makes of each row as it comes; the columns are those of `row_format.SCHEMA`."""
    return run_by_row(frame.select(*NAMES), processor)


def _by_batch(frame: DataFrame, processor: TaskProcessor, plan: Plan) -> DataFrame:
    """Return what a stage makes of the rows of each micro-batch, with the columns of `row_format.RESULT_SCHEMA`."""
    frame = end_of_stage(frame.select(packed(F.struct("*"))), plan.options.threads_of)
    return run_by_batch(frame, processor).select(unpacked(F.col("records"), RESULT_SCHEMA))


def _without_cache(slot: PlannedOperator) -> str:
    """Return the name of an operator whose store is kept without the record cache; "" for others."""
    kept = [store for store in slot.node.stores if store not in slot.node.own_stores]
    return slot.operator.name if any(not store.cached for store in kept) else ""


def _inputs(plan: Plan, numbers: list[int], tasks: tuple[int, ...]) -> StageInputs:
    """Return what a stage of the operators with these numbers has to know of the rows that come in."""
    ports = {number * SIDES + side: (place, side) for place, number in enumerate(numbers) for side in range(SIDES)}
    levels = {number: slot.level for number, slot in enumerate(plan.operators)}
    every = plan.options.handlers.ask_for_sources
    timed = [levels[number] for number, slot in enumerate(plan.operators) if every or slot.operator.punctuates]
    level, last_timed = levels[numbers[0]], max(timed, default=0)
    later = StageInputs(
        ports,
        single=True,
        tasks=tasks,
        sub_topology=plan.number,
        is_timed=last_timed >= level,
        tells=last_timed > level,
    )
    if level > min(levels.values()):
        return later
    return replace(
        later,
        single=len(plan.topics) == 1,
        first=frozenset(number for number, topic in enumerate(plan.topics, 1) if topic in plan.broadcast_topics),
        topics=tuple(plan.topics),
        begins_apart=plan.tells_beginnings,
    )


def _without_dropped(plan: Plan, frame: DataFrame, numbers: list[int], level: int) -> DataFrame:
    """Report how many records operators dropped, by port, origin and position, and remove the rows that said so."""
    said = {number: (frame["port"] == DROPPED) & (frame["origin"] == number) for number in numbers}
    times = {plan.operators[number].node.name: F.when(each, frame["position"]) for number, each in said.items()}
    return tell_dropped(frame, str(level), times, plan.options).where(frame["port"] != DROPPED)


def with_sources(frame: DataFrame, carries: Column) -> DataFrame:
    """Move what headers say about the record that a row was made from into its own column.

    Args:
        frame: with the column headers, among any others.
        carries: which rows have such headers.
    """
    headers = frame["headers"]
    own = F.when(
        F.size(headers) > SOURCE_HEADERS, F.slice(headers, SOURCE_HEADERS + 1, F.size(headers) - SOURCE_HEADERS)
    )
    return frame.select(
        *(frame[name] for name in frame.columns if name != "headers"),
        F.when(carries, own).otherwise(headers).alias("headers"),
        F.when(carries, headers).alias(SOURCE),
    )


def _routed(frame: DataFrame, numbers: list[int], compile_results: CompileResults) -> DataFrame:
    """Replace each result by what follows from it; other rows, of the columns `NAMES`, stay as they are."""
    frame, made = compile_results(frame, numbers)
    as_it_is = row_struct(frame["port"], **{name: frame[name] for name in FIELDS if name != "port"})
    # Most operators turn a result into one row: then nothing has to be exploded.
    alone = all(rows.is_alone for rows in made.values())
    chosen = as_it_is if alone else F.array(as_it_is)
    for number, rows in made.items():
        mine = rows.alone if alone else rows.as_array() if rows else F.array().cast(f"array<struct<{_fields()}>>")
        chosen = F.when(frame["port"] == RESULTS + number, mine).otherwise(chosen)
    order = (frame["task"], F.lit(SEQUENCE).alias("origin"), frame["position"])
    return _placed(frame, Rows.of(chosen) if alone else Rows.of_array(chosen), *order)


def _placed(frame: DataFrame, rows: Rows, *order: Column) -> DataFrame:
    """Return rows, which are made of a frame with any columns, each with its place: the columns of `NAMES`."""
    if rows.is_alone:
        step = F.lit(0).alias("step")
        placed = select_once(frame, rows.alone.alias("row"), step, *order, where="row is not null")
    else:
        arrays = select_once(frame, rows.as_array().alias("rows"), *order)
        each = arrays.select(F.posexplode("rows").alias("step", "row"), "task", "origin", "position")
        placed = each.where("row is not null")
    return placed.select("row.*", *ORDER)


def _fields() -> str:
    return ", ".join(f"{name}: {kind}" for name, kind in FIELDS.items())


@cache
def task_numbers(spark: SparkSession, tasks: int) -> tuple[int, ...]:
    """Return a number for each task such that Spark's hash puts each into a partition of its own."""
    if tasks == 1:
        return (0,)
    numbered = spark.range(tasks * 64).select(
        F.col("id").cast("int").alias("id"), F.pmod(F.hash(F.col("id").cast("int")), F.lit(tasks)).alias("partition")
    )
    found: dict[int, int] = {}
    for row in numbered.collect():
        found.setdefault(row.partition, row.id)
    return tuple(found[partition] for partition in range(tasks))
