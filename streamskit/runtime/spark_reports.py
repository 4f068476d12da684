"""What Spark reports about an application's queries: the plan of each, and the tasks that it ran for them."""

import re
import time
from collections.abc import Iterator
from typing import Any, Protocol

import pandas as pd
from pyspark.sql.streaming import StreamingQuery

from streamskit import operators
from streamskit.environment.session import running_session
from streamskit.jvm.stream_threads import stream_threads_of
from streamskit.planning.plan import Plan
from streamskit.topology.nodes import Node

WIDTH = 120

TASK_COLUMNS = [
    "query",
    "job",
    "stage",
    "partition",
    "executor",
    "status",
    "records",
    "started",
    "milliseconds",
    "slots",
]

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


def in_words(plan: Plan, threads: int | None = None) -> str:
    """Return which steps of a query are Spark's own and which run in Python, and why.

    Args:
        plan: the plan of the query.
        threads: how many slots of Spark's it may use at a time; None for all.
    """
    lines = [f"Sub-topology {plan.name}: reads {', '.join(plan.topics)}"]
    if plan.options.real_time:
        why_not = plan.against_real_time
        lines.append(f"  Runs in micro-batches, because {why_not}" if why_not else "  Runs in real-time mode")
    if threads is not None:
        slots = "one slot" if threads == 1 else f"{threads} slots"
        lines.append(f"  Uses {slots} of Spark's at most, as num_stream_threads says; a task takes partitions in turn")
    if plan.native is not None:
        lines.append(f"  {plan.native.name}: Spark's own aggregation, groupBy in update mode")
    for slot in plan.operators:
        kind = type(slot.operator).__name__
        lines.append(
            f"  {slot.node.name}: Python, record by record ({kind} in transformWithState), because {why(slot.operator)}"
        )
    inside = {slot.node.name for slot in plan.operators} | ({plan.native.name} if plan.native else set())
    columns = [node.name for node in plan.nodes if _runs_columns(node) and node.name not in inside]
    if columns:
        lines.append(f"  {', '.join(columns)}: Spark Columns, compiled by Catalyst")
    for node in plan.nodes:
        if node.topic_names:
            lines += [f"  {node.name}: {serde} runs in Python, on Arrow batches of records"
                      for serde in dict.fromkeys((node.key, node.value)) if serde.runs_in_python]  # fmt: skip
    for sink in plan.partitioned_sinks:
        said = "a partitioner in Python chooses the partitions of each record, just before it is written"
        lines.append(f"  {sink.name}: {said}")
    if plan.keeps_partitions:
        lines.append("  What is kept stays in the partitions of its task, as a partitioner has placed what is read")
    return "\n".join(lines)


def _runs_columns(node: Node) -> bool:
    """Return whether a node has functions other than a partitioner."""
    return any(function is not node.partitioner for function in node.functions)


def why(operator: operators.Operator) -> str:
    """Return why Spark's own operators do not do what a task operator does."""
    return WHY.get(type(operator), "its functions are Python's")


WHY: dict[type[operators.Operator], str] = {
    operators.CountOperator: "each update has to be sent on its own, or a later step also keeps state",
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
    operators.TransformValuesOperator: "a transformer is a class of Python",
    operators.PartitionTimeOperator: "a record may need the time of those before it",
}


PLAN_SECONDS = 10.0
"""How long to wait for the plan of a batch that is about to begin, on the slowest of machines."""


def spark_plan(query: StreamingQuery, begins: bool = False) -> str:
    """Return the physical plan of the query's last batch as text, the operators outermost first.

    Args:
        query: the query.
        begins: whether its first batch begins without records, as in real-time mode; if so, wait for its plan.
    """
    deadline = time.monotonic() + (PLAN_SECONDS if begins else 0)
    while (text := query._jsq.explainInternal(False)).startswith("No physical plan"):
        if time.monotonic() > deadline or not query.isActive:
            break
        time.sleep(0.05)
    lines = [line for line in text.splitlines() if re.match(r"[ :+\-]*[!*]?(\(\d+\) )?[A-Z]\w+", line)]
    return "\n".join(_tidy(line) for line in lines)


def _tidy(line: str) -> str:
    for noise, instead in NOISE:
        line = re.sub(noise, instead, line)
    line = re.sub(r"\s+$", "", line)
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"


class RunsQueries(Protocol):
    """What runs Spark queries: a `KafkaStreams`."""

    def queries(self) -> list[StreamingQuery]:
        """Return them."""


def spark_tasks(streams: RunsQueries) -> pd.DataFrame:
    """Return Spark's own record of the tasks that the queries of an application have run, in the order of their jobs.

    One row for each attempt at a task: a query's micro-batch is one job, or several; a job has a stage for each step
    between two shuffles, and a stage one task for each partition. Where there are fewer stream threads than partitions
    (`num_stream_threads`), there are as many tasks, each of which takes several partitions in turn. `partition` is the
    number of a task in its stage; `executor` the id of the executor, "driver" where Spark runs in this process;
    `records` is how many it has read, from Kafka or from the stage before; `started` is in milliseconds since 1970;
    `slots` is how many stream threads there were, and so how many slots the query could use at a time; it is missing
    where that was all of Spark's.

    Args:
        streams: the application, a `KafkaStreams` that has been started.

    >>> spark_tasks(streams).groupby("query")["partition"].nunique()  # doctest: +SKIP

    Mirrors `KafkaStreams#metadataForLocalThreads`, which tells what task each stream thread has.
    """
    session = running_session()
    store = session.sparkContext._jsc.sc().statusStore() if session else None
    rows = [row for query in streams.queries() if store for row in _tasks(store, str(query.runId), query.name)]
    return pd.DataFrame(rows, columns=TASK_COLUMNS).astype({"slots": "Int64"})


def _tasks(store: Any, run: str, name: str) -> Iterator[tuple[Any, ...]]:
    for job in sorted(_each(store.jobsList(None)), key=lambda job: job.jobId()):
        group = job.jobGroup()
        if not group.isDefined() or group.get() != run:  # Spark names the jobs of a query after its run
            continue
        slots = stream_threads_of(job)
        for stage in sorted(_each(job.stageIds())):
            for task in _each(store.taskList(stage, 0, 2**31 - 1)):
                place = (task.partitionId(), task.executorId(), task.status())
                yield (name, job.jobId(), stage, *place, *_work(task), slots)


def _work(task: Any) -> tuple[int, int, int]:
    """Return how many records a task has read, when it has started, and for how many milliseconds it ran."""
    metrics, started = task.taskMetrics(), task.launchTime().getTime()
    if not metrics.isDefined():  # it was killed
        return 0, started, 0
    done = metrics.get()
    read = done.inputMetrics().recordsRead() + done.shuffleReadMetrics().recordsRead()
    return read, started, done.executorDeserializeTime() + done.executorRunTime()


def _each(sequence: Any) -> Iterator[Any]:
    """Yield the elements of a sequence of Scala's."""
    return (sequence.apply(number) for number in range(sequence.size()))
