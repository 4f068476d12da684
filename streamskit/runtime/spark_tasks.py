"""The tasks that Spark ran for an application: for which partition, on which executor, how much, for how long."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import SparkSession

from streamskit.runtime.streams import KafkaStreams

COLUMNS = ["query", "job", "stage", "partition", "executor", "status", "records", "started", "milliseconds"]


def spark_tasks(streams: KafkaStreams) -> pd.DataFrame:
    """Return Spark's own record of the tasks that the queries of an application have run, in the order of their jobs.

    One row for each attempt at a task: a query's micro-batch is one job, or several; a job has a stage for each step
    between two shuffles, and a stage one task for each partition. `executor` is the id of the executor, "driver" where
    Spark runs in this process; `records` is how many it has read, from Kafka or from the stage before; `started` is in
    milliseconds since 1970.

    Args:
        streams: the application, which has been started.

    >>> spark_tasks(streams).groupby("query")["partition"].nunique()

    Mirrors `KafkaStreams#metadataForLocalThreads`, which tells what task each stream thread has.
    """
    context = SparkSession.getActiveSession()
    store = context.sparkContext._jsc.sc().statusStore() if context else None
    rows = [row for query in streams.queries() if store for row in _tasks(store, str(query.runId), query.name)]
    return pd.DataFrame(rows, columns=COLUMNS)


def _tasks(store: Any, run: str, name: str) -> Iterator[tuple[Any, ...]]:
    for job in sorted(_each(store.jobsList(None)), key=lambda job: job.jobId()):
        group = job.jobGroup()
        if not group.isDefined() or group.get() != run:  # Spark names the jobs of a query after its run
            continue
        for stage in sorted(_each(job.stageIds())):
            for task in _each(store.taskList(stage, 0, 2**31 - 1)):
                yield (name, job.jobId(), stage, task.partitionId(), task.executorId(), task.status(), *_work(task))


def _work(task: Any) -> tuple[int, int, int]:
    """Return how many records a task has read, when it has started, and for how many milliseconds it ran."""
    metrics, started = task.taskMetrics(), task.launchTime().getTime()
    if not metrics.isDefined():  # it was killed
        return 0, started, 0
    done = metrics.get()
    read = done.inputMetrics().recordsRead() + done.shuffleReadMetrics().recordsRead()
    return read, started, done.executorDeserializeTime() + done.executorRunTime()


def _each(found: Any) -> Iterator[Any]:
    """Yield the elements of a sequence of Scala's."""
    return (found.apply(number) for number in range(found.size()))
