"""How rows go through the task operators of a query, level by level."""

from collections.abc import Callable
from functools import cache

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from streamskit.lowering.aggregation import SKIPPED
from streamskit.lowering.packing import pack
from streamskit.lowering.plan import Plan
from streamskit.lowering.stage import Inputs, TaskProcessor
from streamskit.lowering.wire import DROPPED, FIELDS, ORDER, RESULTS, SCHEMA, SEQUENCE, SIDES, Wire, wire_row

Results = Callable[[int, Wire], Column | None]
"""What becomes of the results of operator number n: an array of rows, or nothing."""


def with_order(plan: Plan, frame: DataFrame, rows: Column, tasks: int) -> DataFrame:
    """Return a frame of rows with their task and their place in it.

    Args:
        plan: what runs.
        frame: raw records with topic, partition and offset.
        rows: the array of rows that each record becomes.
        tasks: how many tasks there are.
    """
    numbers = task_numbers(frame.sparkSession, tasks)
    task = F.element_at(F.array(*map(F.lit, numbers)), frame["partition"] + 1)
    everywhere = [topic for entry in plan.entries if entry.everywhere for topic in entry.topics]
    if everywhere:  # each task keeps a global table of its own
        own = F.array(task)
        task = F.explode(F.when(frame["topic"].isin(*everywhere), F.array(*map(F.lit, numbers))).otherwise(own))
    origin = F.array_position(F.array(*map(F.lit, plan.topics)), frame["topic"]).cast("int")
    placed = frame.select(
        rows.alias("rows"), task.alias("task"), origin.alias("origin"), frame["offset"].alias("position")
    )
    return _exploded(placed, "origin", "position")


def run_stages(plan: Plan, frame: DataFrame, results: Results, counting: Callable[[DataFrame], DataFrame]) -> DataFrame:
    """Return the rows that are finished when all levels have run; `counting` sets a frame to count what is dropped."""
    levels = sorted({slot.level for slot in plan.slots})
    for level in levels:
        numbers = [number for number, slot in enumerate(plan.slots) if slot.level == level]
        processor = _processor(plan, numbers, first=level == levels[0])
        if not plan.options.test:  # a test driver's batch is one record, and packing takes another Python worker
            frame = pack(frame)
        frame = frame.groupBy("task").transformWithStateInPandas(processor, SCHEMA, "Update", "None")
        frame = _without_dropped(plan, frame, numbers, level)
        frame = _routed(frame, numbers, results, counting)
    return frame


def _processor(plan: Plan, numbers: list[int], first: bool) -> TaskProcessor:
    ports = {number * SIDES + side: (place, side) for place, number in enumerate(numbers) for side in range(SIDES)}
    everywhere = {topic for entry in plan.entries if entry.everywhere for topic in entry.topics}
    front = frozenset(number for number, topic in enumerate(plan.topics, 1) if topic in everywhere)
    inputs = Inputs(ports, single=not first or len(plan.topics) == 1, first=front if first else frozenset())
    operators = [plan.slots[number].operator for number in numbers]
    options = plan.options
    return TaskProcessor(operators, numbers, inputs, options.cache, options.emit_interval, options.test)


def _without_dropped(plan: Plan, frame: DataFrame, numbers: list[int], level: int) -> DataFrame:
    """Report how many records each operator dropped, and take the rows that said so out."""
    counts = [
        F.sum(F.when((frame["port"] == DROPPED) & (frame["origin"] == number), frame["position"])).alias(
            plan.slots[number].node.name
        )
        for number in numbers
    ]
    return frame.observe(f"{SKIPPED} {level}", *counts).where(frame["port"] != DROPPED)


def _routed(
    frame: DataFrame, numbers: list[int], results: Results, counting: Callable[[DataFrame], DataFrame]
) -> DataFrame:
    """Put what follows from each result in its place; rows that are no results stay as they are."""
    wire = Wire(frame)
    rows = F.array(wire_row(wire.port, **{name: frame[name] for name in FIELDS if name != "port"}))
    for number in reversed(numbers):
        made = results(number, wire)
        found = F.array().cast(f"array<struct<{_fields()}>>") if made is None else made
        rows = F.when(wire.port == RESULTS + number, found).otherwise(rows)
    placed = counting(frame).select(rows.alias("rows"), frame["task"], frame["position"])
    return _exploded(placed, F.lit(SEQUENCE).alias("origin"), "position")


def _exploded(frame: DataFrame, *order: Column | str) -> DataFrame:
    exploded = frame.select(F.posexplode("rows").alias("step", "row"), "task", *order).where("row is not null")
    return exploded.select("row.*", *ORDER)


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
