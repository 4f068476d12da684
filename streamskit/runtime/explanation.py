"""Spark's plan of a running query, stripped of what changes from run to run."""

import re

from pyspark.sql.streaming import StreamingQuery

from streamskit import operators
from streamskit.planning.plan import Plan
from streamskit.topology import Sink, Source

WIDTH = 120

NOISE = (
    (r"#\d+L?", ""),  # the numbers Spark gives to columns
    (r"\[plan_id=\d+\]", ""),
    (r"-T[\d.]+ms", ""),
    (r"(EventTimeWatermark) [0-9a-f-]{36}", r"\1"),
    (r", ?org\.apache[\w.$@]+", ""),
    (r"\[id = [^\]]*\]", ""),
    (r"state info \[.*?\]", "state"),
    (r"org\.apache\.spark\.sql\.\S*?(\w+)\$?@\w+", r"\1"),
)


def in_words(plan: Plan) -> str:
    """Return which steps of a query are Spark's own and which run in Python, and why."""
    lines = [f"Sub-topology {plan.name}: reads {', '.join(plan.topics)}"]
    if plan.native is not None:
        lines.append(f"  {plan.native.name}: Spark's own aggregation, groupBy in update mode")
    for slot in plan.operators:
        kind = type(slot.operator).__name__
        lines.append(
            f"  {slot.node.name}: Python, record by record ({kind} in transformWithState), because {why(slot.operator)}"
        )
    inside = {slot.node.name for slot in plan.operators} | ({plan.native.name} if plan.native else set())
    columns = [node.name for node in plan.nodes if node.functions and node.name not in inside]
    if columns:
        lines.append(f"  {', '.join(columns)}: Spark Columns, compiled by Catalyst")
    for node in plan.nodes:
        if isinstance(node, Source | Sink):
            lines += [f"  {node.name}: {serde} runs in Python, on Arrow batches of records"
                      for serde in dict.fromkeys((node.key, node.value)) if serde.runs_in_python]  # fmt: skip
    return "\n".join(lines)


def why(operator: operators.Operator) -> str:
    """Return why Spark's own operators do not do what a task operator does."""
    return WHY.get(type(operator), "its functions are Python's")


WHY: dict[type[operators.Operator], str] = {
    operators.CountOperator: "each update has to go out by itself, or a step after it keeps state too",
    operators.StreamTableJoinOperator: "Spark has no join of a stream with a table that changes",
    operators.StreamJoinOperator: "Spark's join closes windows by another clock, and finds no unmatched records in "
    "update mode",
    operators.TableJoinOperator: "Spark has no join of two tables that change",
    operators.TableAggregateOperator: "Spark cannot take a row's old value out of an aggregate",
    operators.LatestValueOperator: "a step after it asks for a row's old value",
    operators.SessionAggregateOperator: "Spark has no sessions in update mode, and no deletions of those that grow "
    "together",
    operators.WindowAggregateOperator: "its windows or functions are not Spark's",
    operators.SlidingWindowAggregateOperator: "its windows or functions are not Spark's",
    operators.SuppressOperator: "Spark would hold back what the store has to show",
    operators.ProcessorsOperator: "a processor is a class of Python",
    operators.PartitionTimeOperator: "a record may need the time of those before it",
}


def spark_plan(query: StreamingQuery) -> str:
    """Return the physical plan of the query's last micro-batch as text, the operators outermost first."""
    text = query._jsq.explainInternal(False)
    lines = [line for line in text.splitlines() if re.match(r"[ :+\-]*[!*]?(\(\d+\) )?[A-Z]\w+", line)]
    return "\n".join(_tidy(line) for line in lines)


def _tidy(line: str) -> str:
    for noise, instead in NOISE:
        line = re.sub(noise, instead, line)
    line = re.sub(r"\s+$", "", line)
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"
