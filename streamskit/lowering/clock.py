"""The wall clock of a query: rows that say what time it is, for processors that punctuate by it."""

from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import SourceProgress

from streamskit import tasks
from streamskit.errors import StreamsError, TopologyError
from streamskit.processor import PunctuationType
from streamskit.tasks.blame import read_blame
from streamskit.tasks.processing import Group

if TYPE_CHECKING:
    from streamskit.lowering.plan import Plan

CLOCK_TOPIC = "streamskit-wall-clock"
"""The topic of a record that moves the wall clock: of a test driver to its timestamp, of a running query to now."""

OFTEN = 10
"""How many such records a second there are at most: a micro-batch takes longer than the time between them."""


class NoPages:
    """State that is not there, and is not kept."""

    def load(self, page: str) -> bytes | None:
        """Return nothing."""
        return None

    def save(self, page: str, data: bytes | None) -> None:
        """Keep nothing."""


def _forget(
    key: bytes | None, value: bytes | None, timestamp: int, headers: Any,
    old: bytes | None = None, other: bytes | None = None, other_old: bytes | None = None,
) -> None:  # fmt: skip
    """Take what a processor forwards while it is only tried."""


def with_clock(frame: DataFrame, interval: int) -> DataFrame:
    """Return raw records with one of the clock's among them at least every `interval` milliseconds."""
    spark = frame.sparkSession
    often = max(1, min(OFTEN, round(1000 / interval)))
    ticks = spark.readStream.format("rate").option("rowsPerSecond", often).option("numPartitions", 1).load()
    given = {"topic": F.lit(CLOCK_TOPIC), "partition": F.lit(-1), "offset": F.lit(-1), "timestamp": ticks["timestamp"]}
    columns = [given.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name) for field in frame.schema]
    return frame.unionByName(ticks.select(*columns))


def is_clock(source: SourceProgress) -> bool:
    """Return whether a source of a query is the one that `with_clock` adds."""
    return source.description.startswith("RateStream")


def wakes_every(plan: "Plan") -> int | None:
    """Return the shortest wall-clock interval, in milliseconds, that processors of a plan ask for when they begin.

    Raises:
        TopologyError: a processor cannot be initialized.
    """
    intervals = []
    for slot in plan.slots:
        if isinstance(slot.operator, tasks.RunProcessors):
            # A try, on empty stores: what init() does is known here, before any record flows.
            try:
                stage = tasks.Stage([slot.operator], NoPages())
                group = Group(slot.operator, tasks.Task(stage, 0, slot.operator.name, _forget, is_cached=False))
            except Exception as failure:
                found = read_blame("\n".join(getattr(failure, "__notes__", ())))
                node = plan.topology[found.operator] if found else slot.node
                is_ours = isinstance(failure, StreamsError)
                said = str(failure).removeprefix(f"{node.name}: ") if is_ours else repr(failure)
                raise TopologyError(
                    f"{node.name} ({node.written_at}): the processor could not be initialized: {said}"
                ) from failure
            intervals += [schedule.interval for schedule in group.schedules.kept
                          if schedule.kind is PunctuationType.WALL_CLOCK_TIME]  # fmt: skip
    return min(intervals, default=None)
