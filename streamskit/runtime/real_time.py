"""Spark's real-time mode: what an application needs to run in it, and the errors if it cannot."""

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame

from streamskit.api.streams_config import StreamsConfig
from streamskit.common.errors import StreamsError
from streamskit.jvm import plan_contains
from streamskit.planning.plan import Plan
from streamskit.runtime.recovery.checkpoint import Checkpoint

IN_REAL_TIME = {"kafka.linger.ms": "0"}
"""Settings of the sink in this mode: it does not wait for more records to send along."""

UNLISTED = {"spark.sql.streaming.realTimeMode.allowlistCheck": "false"}
"""Spark has a list of the operators and sinks that it has tried in this mode: our sink is not on it."""

WITH_STATE_IDS = {"spark.sql.streaming.stateStore.checkpointFormatVersion": "2"}
"""Names state files as in real-time mode, where those of a retried batch do not overwrite others."""

FROM_ANY_CHECKPOINT = {"spark.sql.streaming.realTimeMode.dangerouslyAllowCheckpointV1.enabled": "true"}
"""Lets a query continue from a checkpoint of micro-batches; this is not dangerous for one that keeps no state."""


def check_some_fit(application_id: str, plans: Sequence[Plan]) -> None:
    """Check that real-time mode can run something of an application.

    Raises:
        StreamsError: it cannot; the sentence says why of each query.
    """
    if plans and not any(plan.fits_real_time for plan in plans):
        why = "; ".join(f"in sub-topology {plan.name} {plan.against_real_time}" for plan in plans)
        raise StreamsError(
            f"real_time= has nothing to run in '{application_id}': {why}. Spark's real-time mode takes steps of "
            "Columns, and operators with state that read one topic. Leave real_time out, or change these steps."
        )


def check_no_udf(plan: Plan, frame: DataFrame) -> None:
    """Check that no Column of a query calls Python, which shows only once its functions have returned their Columns.

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


def check_states(plans: Sequence[Plan], config: StreamsConfig) -> None:
    """Check that the state of queries was kept in the form that their next mode needs.

    Raises:
        StreamsError: it was not.
    """
    for plan in plans:
        in_real_time = config.in_real_time and plan.fits_real_time
        check_state(plan, config.folder / plan.name, in_real_time, config.exactly_once)


def check_state(plan: Plan, checkpoint: Path, in_real_time: bool, exactly_once: bool) -> None:
    """Check that the state of a query was kept in the form that its next mode needs.

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
