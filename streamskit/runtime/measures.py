"""What the queries of an application measure: for Prometheus, and as the table that `KafkaStreams.metrics` returns."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import pandas as pd

from streamskit.environment.spark_java import LOST
from streamskit.queries.measures import Measure
from streamskit.runtime.group_offsets import GroupOffsets, Lags
from streamskit.runtime.query import RunningQuery
from streamskit.runtime.recovery.data_loss import DataLoss
from streamskit.runtime.states import State
from streamskit.runtime.supervisor import Supervisor

GLOBAL = "global"
"""What stands in the place of a sub-topology where a global table is read without a query."""


def measures(
    state: State, supervisor: Supervisor, losses: DataLoss, offsets: GroupOffsets, skipped: Mapping[str, int]
) -> Iterator[Measure]:
    """Yield what is measured now; less where Spark's Java has ended or no broker answers.

    Args:
        state: the application's.
        supervisor: has the queries.
        losses: knows what was deleted before it was read.
        offsets: asks the broker for the lag.
        skipped: how many records of global tables were dropped, by node, as for `as_table`.
    """
    for each in State:
        yield Measure("stream_metrics_state", float(each is state), {"state": each.name})
    with suppress(*LOST):
        alive = sum(query.query.isActive for query in supervisor.queries)
        yield Measure("stream_metrics_alive_stream_threads", alive)
    yield Measure("stream_metrics_failed_stream_threads", sum(query.restarts for query in supervisor.queries))
    queries = list(supervisor.queries)
    for query, lags in zip(queries, _lags(queries, supervisor, offsets), strict=True):
        lost, thread = losses.lost[query.plan.name], {"subtopology": query.plan.name}
        yield Measure("stream_task_metrics_lost_records_total", lost, thread)
        with suppress(*LOST):
            yield from _of_query(query)
        for (topic, partition), lag in lags.items():
            where = {"topic": topic, "partition": str(partition)}
            yield Measure("stream_task_metrics_records_lag", lag, thread | where)
    for node, count in list(skipped.items()):  # records are read, and may be dropped, at the same time
        yield _dropped(GLOBAL, node, count)


def as_table(
    supervisor: Supervisor, losses: DataLoss, offsets: GroupOffsets, skipped: Mapping[str, int]
) -> pd.DataFrame:
    """Return a row for each node that dropped records, at least one for each query.

    Its columns are query, batches, records, node, dropped, restarts, lost and lag, which may be unknown.

    Args:
        supervisor: has the queries.
        losses: knows what was deleted before it was read.
        offsets: asks the broker for the lag.
        skipped: how many records of global tables were dropped, by node; a table that no step looks up is read
            without a query.

    Raises:
        StreamsError: Spark's Java has ended.
    """
    rows, queries = [], list(supervisor.queries)
    for query, lags in zip(queries, _lags(queries, supervisor, offsets), strict=True):
        lag, name = sum(lags.values()) if lags else None, query.plan.name
        with supervisor.calls_of_spark():
            now = query.metrics.update()
        for node, count in now.dropped.items() or [("", 0)]:
            rows.append((name, now.batches, now.processed, node, count, query.restarts, losses.lost[name], lag))
    rows += [(GLOBAL, 0, 0, node, count, 0, 0, None) for node, count in skipped.items()]
    columns = ["query", "batches", "records", "node", "dropped", "restarts", "lost", "lag"]
    return pd.DataFrame(rows, columns=columns).astype({"lag": "Int64"})


def _lags(queries: Sequence[RunningQuery], supervisor: Supervisor, offsets: GroupOffsets) -> Sequence[Lags]:
    """Return each query's lag by partition; nothing if Spark's Java has ended or no broker answers."""
    with suppress(*LOST):
        if not supervisor.broker.is_away and (found := offsets.lags([query.position for query in queries])) is not None:
            return found
    return [{} for _ in queries]


def _of_query(query: RunningQuery) -> Iterator[Measure]:
    now, thread = query.metrics.update(), {"subtopology": query.plan.name}
    yield Measure("stream_thread_metrics_process_total", now.processed, thread)
    yield Measure("stream_thread_metrics_commit_total", now.batches, thread)
    if now.latencies:
        yield Measure("stream_thread_metrics_process_rate", now.rate, thread)
        average = sum(now.latencies) / len(now.latencies)
        yield Measure("stream_thread_metrics_commit_latency_avg", average, thread)
        yield Measure("stream_thread_metrics_commit_latency_max", max(now.latencies), thread)
    for node, count in now.dropped.items():
        yield _dropped(query.plan.name, node, count)


def _dropped(name: str, node: str, count: int) -> Measure:
    where = {"subtopology": name, "processor_node": node}
    return Measure("stream_task_metrics_dropped_records_total", count, where)
