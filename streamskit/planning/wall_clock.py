"""How often the wall clock has to tick: asked of the processors of a plan, before any record flows."""

from typing import Any

from streamskit import operators
from streamskit.api.processor import PunctuationType
from streamskit.common.errors import StreamsError, TopologyError
from streamskit.operators.error_handling import read_attribution
from streamskit.operators.processors import RunningProcessors
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
        for schedule in _initialized(planned, planned.operator, plan).punctuations.schedules
        if schedule.kind is PunctuationType.WALL_CLOCK_TIME
    ]
    return min(intervals, default=None)


def _initialized(planned: PlannedOperator, operator: operators.ProcessorsOperator, plan: Plan) -> RunningProcessors:
    """Return processors after their init(), tried on empty stores."""
    try:
        task = operators.StreamTask([operator], operators.NoPages())
        return RunningProcessors(operator, operators.OperatorContext(task, 0, operator.name, _forget, is_cached=False))
    except Exception as failure:
        failed = read_attribution("\n".join(getattr(failure, "__notes__", ())))
        node = plan.topology[failed.operator] if failed else planned.node
        is_ours = isinstance(failure, StreamsError)
        said = str(failure).removeprefix(f"{node.name}: ") if is_ours else repr(failure)
        raise TopologyError(
            f"{node.name} ({node.call_site}): the processor could not be initialized: {said}"
        ) from failure


def _forget(*_: Any, **__: Any) -> None:
    """Take what a processor forwards while it is only tried."""
