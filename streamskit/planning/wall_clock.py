"""How often the wall clock has to tick: asked of the processors of a plan, before any record flows."""

from typing import TYPE_CHECKING, Any

from streamskit import operators
from streamskit.api.processor import PunctuationType
from streamskit.common.errors import StreamsError, TopologyError
from streamskit.operators.failure_attribution import read_attribution
from streamskit.operators.pages import NoPages
from streamskit.operators.processors import RunningProcessorGroup

if TYPE_CHECKING:
    from streamskit.planning.plan import Plan

CLOCK_TOPIC = "streamskit-wall-clock"
"""The topic of a record that moves the wall clock: of a test driver to its timestamp, of a running query to now."""


def wakes_every(plan: "Plan") -> int | None:
    """Return the shortest wall-clock interval, in milliseconds, that processors of a plan ask for when they begin.

    Raises:
        TopologyError: a processor cannot be initialized.
    """
    intervals = []
    for slot in plan.slots:
        if isinstance(slot.operator, operators.ProcessorsOperator):
            # A try, on empty stores: what init() does is known here, before any record flows.
            try:
                stage = operators.StreamTask([slot.operator], NoPages())
                group = RunningProcessorGroup(
                    slot.operator, operators.OperatorContext(stage, 0, slot.operator.name, _forget, is_cached=False)
                )
            except Exception as failure:
                found = read_attribution("\n".join(getattr(failure, "__notes__", ())))
                node = plan.topology[found.operator] if found else slot.node
                is_ours = isinstance(failure, StreamsError)
                said = str(failure).removeprefix(f"{node.name}: ") if is_ours else repr(failure)
                raise TopologyError(
                    f"{node.name} ({node.call_site}): the processor could not be initialized: {said}"
                ) from failure
            intervals += [schedule.interval for schedule in group.schedules.kept
                          if schedule.kind is PunctuationType.WALL_CLOCK_TIME]  # fmt: skip
    return min(intervals, default=None)


def _forget(
    key: bytes | None, value: bytes | None, timestamp: int, headers: Any,
    old: bytes | None = None, other: bytes | None = None, other_old: bytes | None = None,
) -> None:  # fmt: skip
    """Take what a processor forwards while it is only tried."""
