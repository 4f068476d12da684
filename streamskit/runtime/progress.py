"""How far a Spark query has come in its topics."""

import json
from dataclasses import dataclass

from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.listener import StreamingQueryProgress

from streamskit.lowering.aggregation import SKIPPED


def dropped(progress: StreamingQueryProgress) -> int:
    """Return how many records a batch dropped: too late (once for each window they missed), or without a key or value.

    Mirrors the metric `dropped-records-total` of Kafka Streams.
    """
    late = sum(operator.numRowsDroppedByWatermark for operator in progress.stateOperators)
    return late + sum(row[SKIPPED] for name, row in progress.observedMetrics.items() if name.startswith(SKIPPED))


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
            for topic, partitions in (json.loads(source.endOffset or "{}") or {}).items():
                offsets.setdefault(topic, {}).update({int(number): offset for number, offset in partitions.items()})
        return cls(offsets)

    def lag(self, wanted: dict[str, dict[int, int]]) -> int:
        """Return how many records lie between here and the wanted offsets."""
        return sum(
            max(0, offset - self.offsets.get(topic, {}).get(partition, 0))
            for topic, partitions in wanted.items()
            for partition, offset in partitions.items()
        )

    def has_reached(self, wanted: dict[str, dict[int, int]]) -> bool:
        """Return whether the wanted offsets are all behind."""
        return self.lag(wanted) == 0
