"""Spark's real-time mode: what it needs before a query without state can pass each record on as it comes."""

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from streamskit.common.durations import Duration, spell, to_milliseconds
from streamskit.common.errors import StreamsError
from streamskit.planning.plan import Plan

SHORTEST = 5_000


def real_time_batch(duration: Duration | None) -> int | None:
    """Return for how many milliseconds a real-time batch runs; None where there is none.

    Raises:
        StreamsError: it is shorter than Spark allows.
    """
    if duration is None:
        return None
    milliseconds = to_milliseconds(duration, "real_time")
    if milliseconds < SHORTEST:
        raise StreamsError(
            f"real_time={spell(milliseconds)!r} is too short: Spark pauses between real-time batches to note how far "
            f"it has come, and wants them to take {spell(SHORTEST)} or more. No record waits for the end of a batch."
        )
    return milliseconds


def check_slots(spark: SparkSession, plans: Sequence[Plan], partitions: Mapping[str, int]) -> None:
    """Check that every partition of the queries without state can be read at the same time.

    Args:
        spark: the session that is to run them.
        plans: the queries.
        partitions: how many each topic has.

    Raises:
        StreamsError: Spark has too few slots: some partitions would never be read.
    """
    slots = spark.sparkContext.defaultParallelism
    busy = sum(plan.tasks(partitions) for plan in plans if not plan.is_stateful)
    needed = busy + any(plan.is_stateful for plan in plans)
    if needed > slots:
        raise StreamsError(
            f"Real-time mode keeps a slot of Spark's busy for each partition that it reads: this application needs "
            f"{needed}, and the session has {slots}. Start Spark with more of them before anything else, "
            f"spark_session('local[{needed}]') of streamskit.environment.session, or leave real_time out."
        )
