"""Chooses the mode of an application whose config leaves that to the start: real-time mode, or micro-batches.

Real-time mode is chosen for a program if the mode can run all of it, writes the same records as micro-batches in the
same order, and handles about as many a second: then only the latency differs. Updates that the record cache folds,
steps that run in Python, and topics that are read together in the order of their time stay in micro-batches.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from streamskit.api.streams_config import StreamsConfig
from streamskit.environment.session import spark_session
from streamskit.execution.compiler import compile_plan
from streamskit.jvm import plan_contains
from streamskit.planning.plan import Plan
from streamskit.runtime.recovery.checkpoint import Checkpoint
from streamskit.runtime.slots import MOST_EXTRA, can_add_slots, slots_needed


def against_settings(config: StreamsConfig) -> str:
    """Return which setting of an application rules real-time mode out, as a part of a sentence; "" if none does."""
    if config.exactly_once:
        return "exactly-once output shows no record before its whole batch is written"
    if config.num_stream_threads is not None:
        return "num_stream_threads limits Spark's slots, and real-time mode keeps one for each partition"
    return ""


def against(
    config: StreamsConfig,
    in_real_time: Sequence[Plan],
    in_micro_batches: Sequence[Plan],
    partitions: Callable[[], Mapping[str, int]],
    spark: SparkSession | None,
) -> str:
    """Return why an application runs in micro-batches, as a part of a sentence; "" if it runs in real-time mode.

    Args:
        config: the application's; its settings do not rule out real-time mode.
        in_real_time: its queries as they are planned for that mode.
        in_micro_batches: its queries as they are planned for micro-batches.
        partitions: returns how many each topic has.
        spark: the session that it was given; streamskit's own if none.

    Raises:
        StreamsError: a topic is missing.
    """
    begun = [
        (plan, checkpoint)
        for plan in (*in_real_time, *in_micro_batches)
        if plan.is_stateful and plan.fits_real_time
        if (checkpoint := Checkpoint(config.folder / plan.name)).last_finished >= 0
    ]
    for plan, checkpoint in begun:
        if not checkpoint.has_state_ids:
            return f"sub-topology {plan.name} has kept its state in micro-batches, and goes on in them"
    if any(plan.operators for plan, _ in begun):  # micro-batches cannot continue with real-time state of Python
        return ""
    for plan in in_real_time:
        if why := against_plan(plan, config.statestore_cache_max_bytes > 0):
            return f"in sub-topology {plan.name} {why}" if len(in_real_time) > 1 else why
    return _against_session(in_real_time, partitions(), spark)


def against_plan(plan: Plan, has_cache: bool) -> str:
    """Return what a query would do differently in real-time mode, as a part of a sentence; "" if nothing.

    Args:
        plan: the query, as it is planned for that mode, which has no cache.
        has_cache: whether its application has a record cache in micro-batches.
    """
    if plan.against_real_time:
        return plan.against_real_time
    if plan.operators:
        return f"{plan.operators[0].node.name} runs in Python, which takes more records a second there"
    if plan.native is not None and has_cache:
        return f"the record cache folds the updates of {plan.native.name} (statestore_cache_max_bytes=0 takes it away)"
    if (len(plan.topics) > 1 or plan.waits_for_topics) and not plan.options.as_they_come:
        return "it takes several topics in the order of their time (max_task_idle_ms=-1 does without the order)"
    if plan.topics_by_time and not plan.options.as_they_come:
        return f"its records meet in {min(plan.topics_by_time)} in the order of their time"
    return ""


def _against_session(plans: Sequence[Plan], partitions: Mapping[str, int], spark: SparkSession | None) -> str:
    """Return what the Spark session lacks for real-time mode, or which function it cannot run in it."""
    session = spark or spark_session()
    if not can_add_slots(session):
        return "Spark gets no further slots: its tasks run in other processes, or its session is not streamskit's"
    if (needed := slots_needed(plans, partitions)) > MOST_EXTRA:
        return f"real-time mode would keep {needed} of Spark's slots busy, and adds {MOST_EXTRA} at most"
    for plan in plans:
        if plan_contains(compile_plan(plan, lambda topics: _unread(session, topics), 1, "unused"), "PYTHON_UDF"):
            return f"a function of sub-topology {plan.name} calls F.udf or another UDF in Python"
    return ""


def _unread(session: SparkSession, topics: Sequence[str]) -> DataFrame:
    """Return a frame with the columns of Spark's Kafka source; it is never read."""
    reader: Any = session.readStream.format("kafka").option("kafka.bootstrap.servers", "unused:9092")
    frame: DataFrame = reader.option("subscribe", ",".join(topics)).option("includeHeaders", "true").load()
    return frame
