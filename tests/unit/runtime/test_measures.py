"""What is measured beside the queries: Prometheus is told the same as metrics()."""

from types import SimpleNamespace
from typing import Any

from streamskit.queries.measures import Measure
from streamskit.runtime.measures import as_table, measures
from streamskit.runtime.states import State

NO_QUERIES: Any = SimpleNamespace(queries=[], broker=SimpleNamespace(is_away=True))
NOTHING: Any = None


def test_records_that_a_global_table_drops_are_measured_though_no_query_reads_them() -> None:
    skipped = {"GLOBAL-SOURCE": 3}
    found = list(measures(State.RUNNING, NO_QUERIES, NOTHING, NOTHING, skipped))
    where = {"subtopology": "global", "processor_node": "GLOBAL-SOURCE"}
    assert Measure("stream_task_metrics_dropped_records_total", 3, where) in found
    (row,) = as_table(NO_QUERIES, NOTHING, NOTHING, skipped).to_dict("records")
    assert (row["query"], row["node"], row["dropped"]) == ("global", "GLOBAL-SOURCE", 3)
