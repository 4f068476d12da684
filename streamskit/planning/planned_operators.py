"""Which steps run as task operators, in Python, one record after the other; and what becomes of their results."""

from dataclasses import dataclass, replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple

from streamskit import operators
from streamskit.api.windows import SessionWindows
from streamskit.common.errors import TopologyError
from streamskit.planning.old_values import needs_old_values, stores_latest
from streamskit.topology import (
    Aggregate,
    Aggregation,
    CogroupAggregate,
    Count,
    ForeignKeyStep,
    Node,
    Process,
    Reduce,
    Source,
    StreamJoinSide,
    StreamTableJoin,
    Suppress,
    TableAggregate,
    TableJoinSide,
)

if TYPE_CHECKING:
    from streamskit.planning.plan import Plan


PARTITION_TIME = "partition time"


class OperatorInput(NamedTuple):
    """Where a record goes: to which task operator, and to which of its sides."""

    operator: str
    side: int


@dataclass(frozen=True)
class PlannedOperator:
    """A task operator in a query. Its results go on from `node`; those with the same `shares` share a table."""

    operator: operators.Operator
    node: Node
    level: int = 1
    shares: str = ""
    members: tuple[Node, ...] = ()
    """The nodes that the operator runs, where it runs several whose results differ."""

    @property
    def exits(self) -> tuple[Node, ...]:
        """The nodes from which results go on."""
        return self.members or (self.node,)

    def at(self, level: int) -> "PlannedOperator":
        """Return the same at another level."""
        return replace(self, level=level)


def place(node: Node, plan: "Plan") -> OperatorInput | None:
    """Return where a node's records go if it runs as a task operator, or None if it runs as Columns."""
    if isinstance(node, Source):
        return OperatorInput(node.name, 0) if needs_partition_time(node) else None
    if isinstance(node, StreamJoinSide | TableJoinSide | CogroupAggregate):
        return OperatorInput(node.group, node.side)
    if isinstance(node, ForeignKeyStep):
        return _foreign_key_place(node)
    if node is plan.native:
        return None
    if node.name in plan.taken_up:  # by Spark's own operators, which do not tell the old value
        return OperatorInput(node.name, 0) if needs_old_values(node, plan.topology) else None
    if isinstance(node, Process):
        return OperatorInput(plan.groups[node.name].name, 0)
    if isinstance(node, Aggregation | TableAggregate | StreamTableJoin | Suppress) or stores_latest(
        node, plan.topology
    ):
        return OperatorInput(node.name, 0)
    return None


def needs_partition_time(node: Source) -> bool:
    """Return whether a source puts the latest time of its partition where a record has none."""
    return node.timestamps is not None and PARTITION_TIME in (node.timestamps.invalid, node.timestamps.missing)


def _foreign_key_place(node: ForeignKeyStep) -> OperatorInput | None:
    join = node.join
    if join is None or node.role in ("answer", "output"):
        return None
    if node.role in ("subscribe", "notify"):
        return OperatorInput(f"{join.name}-answer", 0 if node.role == "subscribe" else 1)
    return OperatorInput(f"{join.name}-{node.role}", 0)


def slot_for(node: Node, plan: "Plan") -> PlannedOperator:
    """Return the task operator that runs a node.

    Raises:
        TopologyError: there is none for it.
    """
    found = place(node, plan)
    if found is None:
        raise TopologyError(f"{node.name} ({node.call_site}): a {type(node).__name__} cannot run on Spark.")
    if isinstance(node, Source):
        skips = node.timestamps is not None and node.timestamps.invalid == "skip"
        return PlannedOperator(
            operators.PartitionTimeOperator(found.operator, PARTITION_TIME, "skip" if skips else "fail"), node
        )
    if stores_latest(node, plan.topology) or node.name in plan.taken_up:
        store = node.stores[0] if node.stores else None
        history = store.retention if store is not None and store.kind == "versioned" else None
        return PlannedOperator(operators.LatestValueOperator(found.operator, history), node)
    group = [each for each in plan.nodes if (where := place(each, plan)) and where.operator == found.operator]
    return _slot(group[0], group, found.operator, plan)


@singledispatch
def _slot(node: Node, group: list[Node], name: str, plan: "Plan") -> PlannedOperator:
    raise TopologyError(f"{node.name} ({node.call_site}): a {type(node).__name__} cannot run on Spark.")


@_slot.register(Aggregation)
def _(node: Aggregation, group: list[Node], name: str, plan: "Plan") -> PlannedOperator:
    parents = [plan.topology[each.parents[0]] for each in group]
    initializer, functions, merger, counting = _fold_functions(node, group)
    inputs = tuple(parent.value for parent in parents)
    store = node.stores[0]
    if node.windows is None:
        if counting:
            return PlannedOperator(operators.CountOperator(name), node)
        return PlannedOperator(
            operators.AggregateOperator(name, parents[0].key, inputs, node.value, initializer, functions), node
        )
    shared: dict[str, Any] = {
        "name": name, "key": parents[0].key, "inputs": inputs, "result": node.value, "initializer": initializer,
        "aggregators": functions, "windows": node.windows, "retention": store.retention, "on_close": node.on_close,
        "counting": counting, "logged": store.queryable,
    }  # fmt: skip
    if isinstance(node.windows, SessionWindows):
        return PlannedOperator(operators.SessionAggregateOperator(merger=merger, **shared), node)
    return PlannedOperator(operators.WindowAggregateOperator(**shared), node)


def _fold_functions(node: Aggregation, group: list[Node]) -> tuple[Any, tuple[Any, ...], Any, bool]:
    """Return an aggregation's initializer, its aggregator for each side, its merger, and whether it only counts."""
    if isinstance(node, Count):
        return (lambda: 0), (lambda key, value, count: count + 1,), (lambda key, one, other: one + other), True
    if isinstance(node, Reduce):
        reducer = node.reducer
        fold = lambda key, value, aggregate: reducer(aggregate, value)  # noqa: E731
        return None, (fold,), (lambda key, one, other: reducer(one, other)), False
    if isinstance(node, CogroupAggregate):
        sides = sorted((each for each in group if isinstance(each, CogroupAggregate)), key=lambda each: each.side)
        return node.initializer, tuple(side.aggregator for side in sides), node.merger, False
    if isinstance(node, Aggregate):
        return node.initializer, (node.aggregator,), node.merger, False
    raise TopologyError(f"{node.name} ({node.call_site}): an aggregate of Columns cannot run here.")


@_slot.register(TableAggregate)
def _(node: TableAggregate, group: list[Node], name: str, plan: "Plan") -> PlannedOperator:
    parent = plan.topology[node.parents[0]]
    return PlannedOperator(
        operators.TableAggregateOperator(
            name, parent.key, parent.value, node.value, node.initializer, node.adder, node.subtractor
        ),
        node,
    )


@_slot.register(Process)
def _(node: Process, group: list[Node], name: str, plan: "Plan") -> PlannedOperator:
    processors = plan.groups[node.name]
    return PlannedOperator(processors.operator(plan), processors.members[0], members=processors.members)


@_slot.register(StreamJoinSide)
def _(node: StreamJoinSide, group: list[Node], name: str, plan: "Plan") -> PlannedOperator:
    if node.windows is None:
        raise TopologyError(f"{node.name} ({node.call_site}): a stream-stream join needs JoinWindows.")
    return PlannedOperator(operators.StreamJoinOperator(name, node.windows, node.outer), group[0])


@_slot.register(TableJoinSide)
def _(node: TableJoinSide, group: list[Node], name: str, plan: "Plan") -> PlannedOperator:
    return PlannedOperator(operators.TableJoinOperator(name, node.outer), group[0])


@_slot.register(StreamTableJoin)
def _(node: StreamTableJoin, group: list[Node], name: str, plan: "Plan") -> PlannedOperator:
    store = next((store for store in plan.topology[node.table].stores if store.kind == "versioned"), None)
    history = store.retention if store is not None else None
    by_extra = node.key_selector is not None
    return PlannedOperator(operators.StreamTableJoinOperator(name, node.left, history, node.grace, by_extra), node)


@_slot.register(Suppress)
def _(node: Suppress, group: list[Node], name: str, plan: "Plan") -> PlannedOperator:
    return PlannedOperator(
        operators.SuppressOperator(
            name, node.windows, node.time_limit, node.max_records, node.max_bytes, node.emit_early
        ),
        node,
    )


@_slot.register(ForeignKeyStep)
def _(node: ForeignKeyStep, group: list[Node], name: str, plan: "Plan") -> PlannedOperator:
    join = node.join
    if join is None:
        raise TopologyError(f"{node.name}: a foreign-key join without its join.")
    shares = f"{join.name}-rows"
    if node.role == "register":
        return PlannedOperator(operators.SubscriptionSendOperator(name, shares), node, shares=shares)
    if node.role == "resolve":
        return PlannedOperator(operators.ResponseJoinOperator(name, shares, join.left), node, shares=shares)
    return PlannedOperator(
        operators.SubscriptionJoinOperator(name, join.left),
        next(each for each in group if getattr(each, "role", "") == "notify"),
    )
