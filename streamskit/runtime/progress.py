"""How far a Spark query has come in its topics."""

import json
import logging
import threading
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.listener import StreamingQueryProgress

from streamskit.execution.dropped_records import SAID, SKIPPED
from streamskit.execution.sources import is_clock
from streamskit.planning.plan import Plan

logger = logging.getLogger("streamskit")

LATENCIES = 10
"""For how many micro-batches the durations are kept."""


def dropped(progress: StreamingQueryProgress) -> Counter[str]:
    """Return how many records each node dropped in a batch: too late (once for each window missed), or incomplete.

    Mirrors the metric `dropped-records-total` of Kafka Streams.
    """
    counts: Counter[str] = Counter()
    for name, row in progress.observedMetrics.items():
        if name.startswith(SKIPPED):
            counts.update({node: count for node, count in row.asDict().items() if count})
    return +counts


def quotes(progress: StreamingQueryProgress) -> dict[str, str]:
    """Return, for each node, the message about one of the records that it failed on in a batch."""
    said: dict[str, str] = {}
    for name, row in progress.observedMetrics.items():
        if name.startswith(SAID):
            said |= {node: quote for node, quote in row.asDict().items() if quote}
    return said


def batches_after(query: StreamingQuery, batch: int) -> list[StreamingQueryProgress]:
    """Return what a query reported of its micro-batches after number `batch`, oldest first.

    A query with nothing to read still reports now and then, under the number of its next micro-batch.
    """
    reported: Any = query._jsq.recentProgress()
    progresses: list[StreamingQueryProgress] = []
    for index in range(len(reported) - 1, -1, -1):
        if reported[index].batchId() <= batch:
            break
        if "addBatch" in reported[index].durationMs():
            progresses.insert(0, StreamingQueryProgress.fromJson(json.loads(reported[index].json())))
    return progresses


def warn_of_dropped(plan: Plan, node: str, lost: int, quote: str) -> None:
    """Log that a node skipped some records, and what was wrong with one of them."""
    count = "1 record" if lost == 1 else f"{lost} records"
    logger.warning("'%s': %s went on without %s, such as %s", plan.application_id, node, count, quote)


class Metrics:
    """Counts what a query's micro-batches report, each once; reports must be read before Spark discards them."""

    def __init__(self, query: StreamingQuery, plan: Plan) -> None:
        self._query, self._plan = query, plan
        self._batch = -1
        self._counting = threading.Lock()
        self.dropped: Counter[str] = Counter()
        self.processed = 0
        self.batches = 0
        self.rate = 0.0
        """How many records a second the last non-empty micro-batch processed."""
        self.latencies: deque[int] = deque(maxlen=LATENCIES)
        """How many milliseconds the last micro-batches took; in real-time mode, excluding the time spent reading."""

    def follow(self, query: StreamingQuery) -> None:
        """Go on with another query that runs the same plan on the same checkpoint: its batches count on."""
        self.update()
        with self._counting:
            self._query = query

    def update(self) -> "Metrics":
        """Take in what was reported since the last time."""
        with self._counting:
            for progress in batches_after(self._query, self._batch):
                if progress.batchId > self._batch:
                    self.batches += 1
                    self._count(progress)
                    if progress.sink.metrics.get("replayed") == "true":
                        logger.warning(
                            "'%s': sub-topology %s ran micro-batch %d again. Its records were written before, and were "
                            "not written a second time.",
                            self._plan.application_id, self._plan.name, progress.batchId,
                        )  # fmt: skip
                self._batch = max(self._batch, progress.batchId)
                lost = dropped(progress)
                self.dropped.update(lost)
                for node, quote in quotes(progress).items():
                    warn_of_dropped(self._plan, node, lost[node], quote)
        return self

    def _count(self, progress: StreamingQueryProgress) -> None:
        records = sum(source.numInputRows for source in progress.sources if not is_clock(source))
        took = progress.batchDuration
        self.processed += records
        # A batch in real-time mode runs for a fixed time: its latency is what comes before and after that.
        self.latencies.append(took - (progress.durationMs["addBatch"] if self._plan.runs_in_real_time else 0))
        if records:
            self.rate = 1000 * records / max(took, 1)


TopicOffsets = Mapping[str, Mapping[int, int]]
"""Offsets by topic and partition."""


@dataclass(frozen=True)
class Progress:
    """The offsets up to which a query has processed and committed: topic, partition, offset."""

    offsets: dict[str, dict[int, int]]

    @classmethod
    def of(cls, query: StreamingQuery) -> "Progress":
        """Return the progress of a query as it last reported it."""
        last = query.lastProgress
        offsets: dict[str, dict[int, int]] = {}
        for source in last.sources if last else ():
            end = json.loads(source.endOffset or "{}")
            for topic, partitions in end.items() if isinstance(end, dict) else ():  # the wall clock has none
                offsets.setdefault(topic, {}).update({int(number): offset for number, offset in partitions.items()})
        return cls(offsets)

    def lag(self, ends: TopicOffsets) -> int:
        """Return how many records lie between here and the given offsets."""
        return sum(
            max(0, offset - self.offsets.get(topic, {}).get(partition, 0))
            for topic, partitions in ends.items()
            for partition, offset in partitions.items()
        )

    def has_reached(self, ends: TopicOffsets) -> bool:
        """Return whether all the given offsets have been passed."""
        return self.lag(ends) == 0
