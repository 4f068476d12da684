"""In which order the task operators of a query run: each on a level above those whose results it gets."""

from typing import TYPE_CHECKING

from streamskit.planning.planned_operators import PlannedOperator, place, slot_for
from streamskit.planning.processor_groups import comes_back
from streamskit.topology import Node, Process, StreamTableJoin

if TYPE_CHECKING:
    from streamskit.planning.plan import Plan


def slots_by_level(plan: "Plan") -> tuple[PlannedOperator, ...]:
    """Return the task operators of a plan, those of the lowest level first.

    Raises:
        TopologyError: a node cannot run on Spark.
    """
    found: dict[str, PlannedOperator] = {}
    # The second time round, operators that share a table know the highest level among them.
    for _ in range(2):
        for entry in plan.entries:
            _follow(plan, found, entry.node, None, 0, frozenset())
        highest: dict[str, int] = {}
        for slot in found.values():
            highest[slot.shares] = max(slot.level, highest.get(slot.shares, 0))
        found |= {name: slot.at(highest[slot.shares]) for name, slot in found.items() if slot.shares}
    return tuple(sorted(found.values(), key=lambda slot: slot.level))


def _follow(
    plan: "Plan", found: dict[str, PlannedOperator], node: Node, giver: Node | None, level: int, before: frozenset[str]
) -> None:
    """Follow a record that `giver` passes on to `node`; `before` are the operators that it went through."""
    where = place(node, plan)
    exits: tuple[Node, ...] = (node,)
    if where is not None:
        if isinstance(node, Process) and where.operator in before:
            raise comes_back(node, plan)
        slot = found.get(where.operator) or slot_for(node, plan)
        level = max(slot.level, level + 1)
        found[where.operator] = slot.at(level)
        exits, before = slot.exits, before | {where.operator}
    if isinstance(node, StreamTableJoin) and giver is not None and node.table == giver.name:
        return  # the table's side of a join makes no results of its own
    for each in exits:
        for child in plan.following(each):
            if child not in exits:
                _follow(plan, found, child, each, level, before)
