"""Spark's slots for queries in real-time mode, whose tasks all run side by side permanently.

A **slot** runs one task at a time. Spark has one for each core of the machine, or as many as its executors have. In
this process an application gets additional ones, as its tasks wait for records most of the time.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from pyspark import SparkContext
from pyspark.sql import SparkSession

from streamskit.common.errors import StreamsError
from streamskit.environment.session import SLOT_CHECK
from streamskit.environment.spark_java import LOST
from streamskit.jvm import java_class
from streamskit.planning.plan import Plan

MOST_EXTRA = 64
"""At most this many slots are added if real-time mode was not set explicitly: each is a thread."""


def slots_needed(plans: Sequence[Plan], partitions: Mapping[str, int]) -> int:
    """Return how many slots an application keeps busy, including one for its queries in micro-batches, if any.

    Args:
        plans: the queries.
        partitions: how many each topic has.
    """
    return slots_kept_busy(plans, partitions) + any(not plan.fits_real_time for plan in plans)


def slots_kept_busy(plans: Sequence[Plan], partitions: Mapping[str, int]) -> int:
    """Return how many slots the queries in real-time mode occupy permanently."""
    return sum(plan.slots(partitions) for plan in plans if plan.fits_real_time)


def in_real_time(plans: Sequence[Plan], partitions: Mapping[str, int]) -> str:
    """Return part of a sentence: that queries run in real-time mode, and how many slots that takes."""
    all_of_it = "" if all(plan.fits_real_time for plan in plans) else "as far as it can, "
    return f"in real-time mode, {all_of_it}and keeps {slots_kept_busy(plans, partitions)} of Spark's slots busy"


def take_slots(
    spark: SparkSession, owner: str, plans: Sequence[Plan], partitions: Mapping[str, int], busy: int = 0
) -> None:
    """Make sure that there is a slot for each task of the queries in real-time mode.

    Args:
        spark: the session that is to run them.
        owner: identifies the application that gets the slots.
        plans: the queries.
        partitions: how many each topic has.
        busy: how many slots other applications of this process keep busy.

    Raises:
        StreamsError: Spark has too few slots, and they are on other machines: some partitions would never be read.
    """
    if can_add_slots(spark):
        java_class("ExtraSlots").take(owner, slots_kept_busy(plans, partitions))
        return
    slots, needed = spark.sparkContext.defaultParallelism, slots_needed(plans, partitions)
    if needed + busy > slots:
        others = f", of which other applications keep {busy} busy" if busy else ""
        raise StreamsError(
            f"Real-time mode keeps a slot of Spark's busy for each partition that it reads, and another for each in "
            f"which it keeps state: this application needs {needed}, and the session has {slots}{others}. Give Spark "
            "executors with more cores, or leave real_time out."
        )


def give_back_slots(owner: str) -> None:
    """Release the slots that were added for an application, if any."""
    if SparkContext._jvm is None:
        return
    with suppress(*LOST):
        java_class("ExtraSlots").giveBack(owner)


def can_add_slots(spark: SparkSession) -> bool:
    """Return whether slots can be added: Spark's tasks run in this process, and it does not count its slots."""
    context = spark.sparkContext
    return bool(context._jsc.sc().isLocal()) and context.getConf().get(SLOT_CHECK) == "false"
