"""What a query reports of its micro-batches, and what is counted of it."""

import json
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from streamskit import StreamsBuilder
from streamskit.planning.options import QueryOptions
from streamskit.planning.planner import plan
from streamskit.runtime.progress import Metrics


class Reports:
    """Stands for a streaming query; the reports are pairs of a micro-batch's number and how many records it read."""

    def __init__(self) -> None:
        self.reports: list[Any] = []
        self._jsq = SimpleNamespace(recentProgress=lambda: self.reports)

    def add(self, batch: int, read: int, reading: int = 1, whole: int = 1) -> None:
        """Report a micro-batch; one that has read nothing is a query that waits for records.

        Args:
            batch: its number.
            read: how many records it has read.
            reading: for how many milliseconds it has read them.
            whole: how many milliseconds it has taken.
        """
        said = {
            "id": str(uuid4()), "runId": str(uuid4()), "name": None, "timestamp": "", "batchId": batch,
            "batchDuration": whole, "durationMs": {"addBatch": reading} if read else {"triggerExecution": 1},
            "eventTime": {}, "stateOperators": [], "sources": [source(read)],
            "sink": {"description": "", "numOutputRows": 0}, "numInputRows": read, "inputRowsPerSecond": 0.0,
            "processedRowsPerSecond": 0.0, "observedMetrics": {},
        }  # fmt: skip
        took = said["durationMs"]
        self.reports.append(
            SimpleNamespace(batchId=lambda: batch, durationMs=lambda: took, json=lambda: json.dumps(said))
        )


def source(read: int) -> dict[str, Any]:
    return {
        "description": "KafkaV2", "startOffset": "{}", "endOffset": "{}", "latestOffset": "{}", "numInputRows": read,
        "inputRowsPerSecond": 0.0, "processedRowsPerSecond": 0.0,
    }  # fmt: skip


def test_a_micro_batch_counts_though_its_query_has_said_before_that_it_waits_for_records() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    query: Any = Reports()
    metrics = Metrics(query, plan(builder.build(), "app")[0])
    query.add(0, 0)
    metrics.update()
    query.add(0, 2)
    query.add(1, 0)
    metrics.update()
    query.add(1, 3)
    metrics.update()
    assert (metrics.batches, metrics.processed) == (2, 5)


def test_a_batch_in_real_time_mode_is_as_slow_as_what_it_does_beside_reading() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    for real_time, took in ((True, [40]), (False, [5_040])):
        query: Any = Reports()
        metrics = Metrics(query, plan(builder.build(), "app", QueryOptions(real_time=real_time))[0])
        query.add(0, 5, reading=5_000, whole=5_040)
        assert list(metrics.update().latencies) == took
