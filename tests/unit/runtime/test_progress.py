"""What a query reports of its micro-batches, and what is counted of it."""

import json
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from streamskit import StreamsBuilder
from streamskit.planning.planner import plan
from streamskit.runtime.progress import Metrics


class Reports:
    """Stands for a streaming query; the reports are pairs of a micro-batch's number and how many records it read."""

    def __init__(self) -> None:
        self.reports: list[Any] = []
        self._jsq = SimpleNamespace(recentProgress=lambda: self.reports)

    def add(self, batch: int, read: int) -> None:
        """Report a micro-batch; one that has read nothing is a query that waits for records."""
        said = {
            "id": str(uuid4()), "runId": str(uuid4()), "name": None, "timestamp": "", "batchId": batch,
            "batchDuration": 1, "durationMs": {"addBatch": 1} if read else {"triggerExecution": 1}, "eventTime": {},
            "stateOperators": [], "sources": [source(read)], "sink": {"description": "", "numOutputRows": 0},
            "numInputRows": read, "inputRowsPerSecond": 0.0, "processedRowsPerSecond": 0.0, "observedMetrics": {},
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
