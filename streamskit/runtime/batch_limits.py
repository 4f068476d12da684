"""How much a micro-batch takes, and how many rows go to Python at a time: by records, and by their size.

A limit by number alone is no limit for large records: 500,000 of 100 kB are 50 GB, and a thousand rows in one Arrow
batch may be more than Java can hold in one piece. So the average size of the records in the topics counts as well. It
is determined when a query starts, when a micro-batch that an earlier run planned too large can still be made smaller.
While the query runs, `streamskit/jvm/RecordSizes.scala` checks the records that each micro-batch is about to take.
"""

from dataclasses import dataclass, replace

from kafka.errors import KafkaError

from streamskit.api.streams_config import StreamsConfig
from streamskit.common.errors import BrokerError
from streamskit.kafka.topics import record_sizes
from streamskit.planning.plan import Plan

MOST_FOR_TASKS = 500_000
"""How many records a micro-batch with operators in Python takes at most, by default."""

MOST_FOR_TRANSACTION = 2_000_000
"""The same without such operators, under exactly-once: the broker aborts transactions that stay open for minutes."""

BATCH_BYTES = 32 * 1024 * 1024
"""How many bytes a micro-batch takes: Python holds them in memory up to ten times, as records, rows and results."""

ARROW_BYTES = 8 * 1024 * 1024
"""How many bytes go to Python in one Arrow batch."""

MOST_ROWS = 10_000
"""How many rows go to Python in one Arrow batch; Spark's own default."""


@dataclass(frozen=True)
class BatchLimits:
    """What a micro-batch takes: `records` at most, or all there are; and `rows` in one Arrow batch."""

    records: int | None
    rows: int = MOST_ROWS

    @classmethod
    def of(cls, config: StreamsConfig, plan: Plan, size: float = 0.0) -> "BatchLimits":
        """Return the limits of a query.

        Args:
            config: the user's settings.
            plan: what the query runs.
            size: the average size of its largest records, in bytes; 0 if that is not known.
        """
        default = MOST_FOR_TASKS if plan.operators else MOST_FOR_TRANSACTION if config.exactly_once else None
        records = config.max_records_per_batch or default
        rows = MOST_ROWS
        if size > 0:
            rows = max(1, min(rows, int(ARROW_BYTES / size)))
            fitting = max(1, int(BATCH_BYTES / size))
            records = None if records is None else min(records, fitting)
        return cls(records, rows)

    def at_most(self, records: int | None) -> "BatchLimits":
        """Return the limits with at most this many records; None changes nothing."""
        least = min((each for each in (self.records, records) if each is not None), default=None)
        return replace(self, records=least)

    @classmethod
    def looked_up(cls, config: StreamsConfig, plan: Plan) -> "BatchLimits":
        """Return the limits of a query, based on the records now in its topics."""
        try:
            sizes = record_sizes(config.connection, plan.topics)
        except (KafkaError, BrokerError):  # some brokers refuse this to clients that may only read
            sizes = {}
        return cls.of(config, plan, max(sizes.values(), default=0.0))
