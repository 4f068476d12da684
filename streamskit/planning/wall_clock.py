"""How often the wall clock has to tick: asked of the processors of a plan, before any record flows."""

from typing import Any

from streamskit import operators
from streamskit.api.processor import PunctuationType
from streamskit.common.errors import StreamsError, TopologyError
from streamskit.operators.failure_attribution import read_attribution
from streamskit.operators.pages import NoPages
from streamskit.operators.processors import RunningProcessorGroup
from streamskit.planning.plan import Plan, PlannedOperator


def wall_clock_interval(plan: Plan) -> int | None:
    """Return the shortest wall-clock interval, in milliseconds, that processors of a plan ask for when they begin.

    Raises:
        TopologyError: a processor cannot be initialized.
    """
    intervals = [
        schedule.interval
        for planned in plan.operators
        if isinstance(planned.operator, operators.ProcessorsOperator)
        for schedule in _initialized(planned, planned.operator, plan).schedules.kept
        if schedule.kind is PunctuationType.WALL_CLOCK_TIME
    ]
    return min(intervals, default=None)


def _initialized(planned: PlannedOperator, operator: operators.ProcessorsOperator, plan: Plan) -> RunningProcessorGroup:
    """Return processors after their init(), tried on empty stores."""
    try:
        task = operators.StreamTask([operator], NoPages())
        return RunningProcessorGroup(
            operator, operators.OperatorContext(task, 0, operator.name, _forget, is_cached=False)
        )
    except Exception as failure:
        blamed = read_attribution("\n".join(getattr(failure, "__notes__", ())))
        node = plan.topology[blamed.operator] if blamed else planned.node
        is_ours = isinstance(failure, StreamsError)
        said = str(failure).removeprefix(f"{node.name}: ") if is_ours else repr(failure)
        raise TopologyError(
            f"{node.name} ({node.call_site}): the processor could not be initialized: {said}"
        ) from failure


def _forget(
    key: bytes | None, value: bytes | None, timestamp: int, headers: Any,
    old: bytes | None = None, other: bytes | None = None, other_old: bytes | None = None,
) -> None:  # fmt: skip
    """Take what a processor forwards while it is only tried."""
