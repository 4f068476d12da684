"""Spark's real-time mode: what an application needs to run in it, and what it is told if it cannot."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from streamskit.api.streams_config import StreamsConfig
from streamskit.common.errors import StreamsError
from streamskit.environment.session import is_chosen, spark_session
from streamskit.jvm import plan_contains
from streamskit.planning.plan import Plan
from streamskit.runtime.recovery.checkpoint import Checkpoint

IN_REAL_TIME = {"kafka.linger.ms": "0"}
"""Settings of the sink in this mode: nobody waits for more records to send along."""

WITH_STATE_IDS = {"spark.sql.streaming.stateStore.checkpointFormatVersion": "2"}
"""Has files of state be named as in real-time mode, where those of a batch that is tried again replace no others."""

FROM_ANY_CHECKPOINT = {"spark.sql.streaming.realTimeMode.dangerouslyAllowCheckpointV1.enabled": "true"}
"""Has a query go on with a checkpoint of micro-batches; it is not dangerous to one that keeps no state."""


def against_setting(config: StreamsConfig) -> str:
    """Return which setting of an application rules real-time mode out, as a part of a sentence; "" if none does."""
    if config.exactly_once:
        return "exactly-once output shows no record before its whole batch is written"
    if config.num_stream_threads is not None:
        return "num_stream_threads limits Spark's slots, and real-time mode keeps one for each partition"
    return ""


def why_none_fits(plans: Sequence[Plan]) -> str:
    """Return why real-time mode can run none of some queries, as a part of a sentence; "" if it can run one."""
    if any(plan.fits_real_time for plan in plans):
        return ""
    return "; ".join(f"in sub-topology {plan.name} {plan.against_real_time}" for plan in plans)


def against(config: StreamsConfig, plans: Sequence[Plan], needed: int, free: int | None) -> str:
    """Return why `real_time="auto"` runs an application in micro-batches, as a part of a sentence; "" if it need not.

    Args:
        config: of the application.
        plans: its queries, planned for real-time mode and for micro-batches: it may have run in either before.
        needed: how many slots of Spark's that keeps busy.
        free: how many there are for it; None if a session is yet to be started, with as many as are needed.
    """
    fit = [plan for plan in plans if plan.is_stateful and plan.fits_real_time]
    kept = [(plan, Checkpoint(config.folder / plan.name)) for plan in fit]
    begun = [(plan, checkpoint) for plan, checkpoint in kept if checkpoint.last_finished >= 0]
    for plan, checkpoint in begun:
        if not checkpoint.has_state_ids:
            return f"sub-topology {plan.name} has kept its state in micro-batches, and goes on in them"
    # Micro-batches cannot go on with what Python has kept in real time: then a lack of slots is an error.
    if free is None or needed <= free or any(plan.operators for plan, _ in begun):
        return ""
    return f"real-time mode would keep {needed} of Spark's slots busy (free: {free})"


def check_some_fit(application_id: str, plans: Sequence[Plan]) -> None:
    """Check that real-time mode can run something of an application.

    Raises:
        StreamsError: it cannot; the sentence says why of each query.
    """
    if plans and (why := why_none_fits(plans)):
        raise StreamsError(
            f"real_time= has nothing to run in '{application_id}': {why}. Spark's real-time mode takes steps of "
            "Columns, and operators with state that read one topic. Leave real_time out, or change these steps."
        )


def slots_needed(plans: Sequence[Plan], partitions: Mapping[str, int]) -> int:
    """Return how many slots of Spark's an application keeps busy: one for those in micro-batches, if there are any.

    Args:
        plans: the queries.
        partitions: how many each topic has.
    """
    return slots_kept_busy(plans, partitions) + any(not plan.fits_real_time for plan in plans)


def slots_kept_busy(plans: Sequence[Plan], partitions: Mapping[str, int]) -> int:
    """Return how many slots of Spark's the queries in real-time mode keep busy all the while."""
    return sum(plan.slots(partitions) for plan in plans if plan.fits_real_time)


def check_slots(spark: SparkSession, plans: Sequence[Plan], partitions: Mapping[str, int], busy: int = 0) -> None:
    """Check that all tasks of the queries in real-time mode can run at the same time.

    Args:
        spark: the session that is to run them.
        plans: the queries.
        partitions: how many each topic has.
        busy: how many slots other applications of this process keep busy.

    Raises:
        StreamsError: Spark has too few slots: some partitions would never be read.
    """
    slots, needed = spark.sparkContext.defaultParallelism, slots_needed(plans, partitions)
    if needed + busy > slots:
        others = f", of which other applications keep {busy} busy" if busy else ""
        raise StreamsError(
            f"Real-time mode keeps a slot of Spark's busy for each partition that it reads, and another for each in "
            f"which it keeps state: this application needs {needed}, and the session has {slots}{others}. Start Spark "
            f"with more of them before anything else, streamskit.spark_session('local[{needed + busy}]'); "
            "there may be more than the machine has cores. Or leave real_time out."
        )


def check_no_udf(plan: Plan, frame: DataFrame) -> None:
    """Check that no Column of a query calls Python, which shows only once its functions have been asked for Columns.

    Args:
        plan: the query.
        frame: what it was compiled to; its columns are those of the sink.

    Raises:
        StreamsError: one does, and Spark would stop the query at its first batch.
    """
    if plan_contains(frame, "PYTHON_UDF"):
        names = ", ".join(node.name for node in plan.nodes if node.functions)
        raise StreamsError(
            f"A function of sub-topology {plan.name} of '{plan.application_id}' ({names}) calls F.udf or another UDF "
            "in Python, which Spark's real-time mode does not run. Write it with Spark's own functions, or leave "
            "real_time out."
        )


def free_slots(spark: SparkSession | None, busy: int) -> int | None:
    """Return how many slots of Spark's are free for an application; None if it starts Spark with all it needs.

    Args:
        spark: the session that it was given; streamskit's own if none.
        busy: how many slots other applications of this process keep busy.
    """
    if spark is None and not is_chosen():
        return None
    return max(0, (spark or spark_session()).sparkContext.defaultParallelism - busy)


def session_for(config: StreamsConfig, plans: Sequence[Plan], partitions: Mapping[str, int]) -> SparkSession:
    """Return the running session, or a new one, with enough slots where that runs in this process.

    Args:
        config: of the application.
        plans: its queries.
        partitions: how many each topic has.
    """
    if not config.in_real_time or is_chosen():
        return spark_session()
    return spark_session(master_for(slots_needed(plans, partitions)))


def master_for(needed: int) -> str:
    """Return where to run Spark in this process, so that it has enough slots."""
    return f"local[{max(needed, os.cpu_count() or 1)}]"


def check_states(plans: Sequence[Plan], config: StreamsConfig) -> None:
    """Check that the state of queries was kept as the mode needs it in which they are to go on.

    Raises:
        StreamsError: it was not.
    """
    for plan in plans:
        in_real_time = config.in_real_time and plan.fits_real_time
        check_state(plan, config.folder / plan.name, in_real_time, config.exactly_once)


def check_state(plan: Plan, checkpoint: Path, in_real_time: bool, exactly_once: bool) -> None:
    """Check that the state of a query was kept as the mode needs it in which it is to go on.

    Args:
        plan: the query.
        checkpoint: its folder.
        in_real_time: whether it is to run in real-time mode.
        exactly_once: whether each of its micro-batches is to be one transaction.

    Raises:
        StreamsError: it was not.
    """
    begun = Checkpoint(checkpoint)
    if not plan.is_stateful or begun.last_finished < 0:
        return
    of_real_time = begun.has_state_ids
    again = (
        "To begin anew, call clean_up(): the next start reads the topics from their first records and makes all "
        "results again."
    )
    if in_real_time and not of_real_time:
        raise StreamsError(
            f"'{plan.application_id}' has run in micro-batches, and Spark's real-time mode cannot go on with the state "
            f"that sub-topology {plan.name} has kept then. Leave real_time out. {again}"
        )
    if plan.operators and of_real_time and not in_real_time:
        raise StreamsError(
            f"'{plan.application_id}' has run in real-time mode, and micro-batches cannot go on with the state that "
            f"sub-topology {plan.name} has kept then, as it runs in Python. Set real_time again. {again}"
        )
    if of_real_time and exactly_once:
        raise StreamsError(
            f"'{plan.application_id}' has run in real-time mode, and exactly-once output cannot go on with the state "
            f"that sub-topology {plan.name} has kept then. Choose processing_guarantee='at_least_once'. {again}"
        )
