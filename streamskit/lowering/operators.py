"""Which steps run as task operators, in Python, one record after the other; and what becomes of their results."""

from dataclasses import dataclass, replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import Column, DataFrame

from streamskit import columns, tasks
from streamskit.errors import TopologyError
from streamskit.lowering.changes import asks_for_old, keeps_latest
from streamskit.lowering.records import Datum, Record, sure
from streamskit.serdes import Serde
from streamskit.topology import (
    Aggregation,
    CogroupFold,
    Count,
    Fold,
    ForeignKeyStep,
    Node,
    Process,
    Reduce,
    Source,
    StreamJoinSide,
    StreamTableJoin,
    Suppress,
    TableFold,
    TableJoinSide,
)
from streamskit.windows import SessionWindows

if TYPE_CHECKING:
    from streamskit.lowering.plan import Plan


PARTITION_TIME = "partition time"


class Place(NamedTuple):
    """Where a record goes: to which task operator, and to which of its sides."""

    operator: str
    side: int


@dataclass(frozen=True)
class Slot:
    """A task operator in a query. Its results go on from `node`; those with the same `shares` share a table."""

    operator: tasks.Operator
    node: Node
    level: int = 1
    shares: str = ""
    members: tuple[Node, ...] = ()
    """The nodes that the operator runs, where it runs several whose results differ."""

    @property
    def exits(self) -> tuple[Node, ...]:
        """The nodes from which results go on."""
        return self.members or (self.node,)

    def at(self, level: int) -> "Slot":
        """Return the same at another level."""
        return replace(self, level=level)


def place(node: Node, plan: "Plan") -> Place | None:
    """Return where a node's records go if it runs as a task operator, or None if it runs as Columns."""
    if isinstance(node, Source):
        return Place(node.name, 0) if needs_partition_time(node) else None
    if isinstance(node, StreamJoinSide | TableJoinSide | CogroupFold):
        return Place(node.group, node.side)
    if isinstance(node, ForeignKeyStep):
        return _foreign_key_place(node)
    if node is plan.native:
        return None
    if node.name in plan.taken_up:  # by Spark's own operators, which do not tell the old value
        return Place(node.name, 0) if asks_for_old(node, plan.topology) else None
    if isinstance(node, Process):
        return Place(plan.groups[node.name].name, 0)
    if isinstance(node, Aggregation | TableFold | StreamTableJoin | Suppress) or keeps_latest(node, plan.topology):
        return Place(node.name, 0)
    return None


def needs_partition_time(node: Source) -> bool:
    """Return whether a source puts the latest time of its partition where a record has none."""
    return node.timestamps is not None and PARTITION_TIME in (node.timestamps.invalid, node.timestamps.missing)


def _foreign_key_place(node: ForeignKeyStep) -> Place | None:
    join = node.join
    if join is None or node.role in ("answer", "output"):
        return None
    if node.role in ("subscribe", "notify"):
        return Place(f"{join.name}-answer", 0 if node.role == "subscribe" else 1)
    return Place(f"{join.name}-{node.role}", 0)


def slot_for(node: Node, plan: "Plan") -> Slot:
    """Return the task operator that runs a node.

    Raises:
        TopologyError: there is none for it.
    """
    found = place(node, plan)
    if found is None:
        raise TopologyError(f"{node.name} ({node.written_at}): a {type(node).__name__} cannot run on Spark.")
    if isinstance(node, Source):
        skips = node.timestamps is not None and node.timestamps.invalid == "skip"
        return Slot(tasks.PartitionTime(found.operator, PARTITION_TIME, "skip" if skips else "fail"), node)
    if keeps_latest(node, plan.topology) or node.name in plan.taken_up:
        store = node.stores[0] if node.stores else None
        history = store.retention if store is not None and store.kind == "versioned" else None
        return Slot(tasks.LatestValue(found.operator, history), node)
    group = [each for each in plan.nodes if (where := place(each, plan)) and where.operator == found.operator]
    return _slot(group[0], group, found.operator, plan)


@singledispatch
def _slot(node: Node, group: list[Node], name: str, plan: "Plan") -> Slot:
    raise TopologyError(f"{node.name} ({node.written_at}): a {type(node).__name__} cannot run on Spark.")


@_slot.register(Aggregation)
def _(node: Aggregation, group: list[Node], name: str, plan: "Plan") -> Slot:
    parents = [plan.topology[each.parents[0]] for each in group]
    initializer, functions, merger, counting = _fold_functions(node, group)
    inputs = tuple(parent.value for parent in parents)
    store = node.stores[0]
    if node.windows is None:
        if counting:
            return Slot(tasks.CountFold(name), node)
        return Slot(tasks.Fold(name, parents[0].key, inputs, node.value, initializer, functions), node)
    shared: dict[str, Any] = {
        "name": name, "key": parents[0].key, "inputs": inputs, "result": node.value, "initializer": initializer,
        "aggregators": functions, "windows": node.windows, "retention": store.retention, "on_close": node.on_close,
        "counting": counting, "logged": store.queryable,
    }  # fmt: skip
    if isinstance(node.windows, SessionWindows):
        return Slot(tasks.SessionFold(merger=merger, **shared), node)
    return Slot(tasks.WindowFold(**shared), node)


def _fold_functions(node: Aggregation, group: list[Node]) -> tuple[Any, tuple[Any, ...], Any, bool]:
    """Return an aggregation's initializer, its aggregator for each side, its merger, and whether it only counts."""
    if isinstance(node, Count):
        return (lambda: 0), (lambda key, value, count: count + 1,), (lambda key, one, other: one + other), True
    if isinstance(node, Reduce):
        reducer = node.reducer
        fold = lambda key, value, aggregate: reducer(aggregate, value)  # noqa: E731
        return None, (fold,), (lambda key, one, other: reducer(one, other)), False
    if isinstance(node, CogroupFold):
        sides = sorted((each for each in group if isinstance(each, CogroupFold)), key=lambda each: each.side)
        return node.initializer, tuple(side.aggregator for side in sides), node.merger, False
    if isinstance(node, Fold):
        return node.initializer, (node.aggregator,), node.merger, False
    raise TopologyError(f"{node.name} ({node.written_at}): an aggregate of Columns cannot run here.")


@_slot.register(TableFold)
def _(node: TableFold, group: list[Node], name: str, plan: "Plan") -> Slot:
    parent = plan.topology[node.parents[0]]
    return Slot(
        tasks.TableFold(name, parent.key, parent.value, node.value, node.initializer, node.adder, node.subtractor), node
    )


@_slot.register(Process)
def _(node: Process, group: list[Node], name: str, plan: "Plan") -> Slot:
    processors = plan.groups[node.name]
    return Slot(processors.operator(plan), processors.members[0], members=processors.members)


@_slot.register(StreamJoinSide)
def _(node: StreamJoinSide, group: list[Node], name: str, plan: "Plan") -> Slot:
    if node.windows is None:
        raise TopologyError(f"{node.name} ({node.written_at}): a stream-stream join needs JoinWindows.")
    return Slot(tasks.StreamJoin(name, node.windows, node.outer), group[0])


@_slot.register(TableJoinSide)
def _(node: TableJoinSide, group: list[Node], name: str, plan: "Plan") -> Slot:
    return Slot(tasks.TableJoin(name, node.outer), group[0])


@_slot.register(StreamTableJoin)
def _(node: StreamTableJoin, group: list[Node], name: str, plan: "Plan") -> Slot:
    store = next((store for store in plan.topology[node.table].stores if store.kind == "versioned"), None)
    history = store.retention if store is not None else None
    by_extra = node.key_selector is not None
    return Slot(tasks.TableLookup(name, node.left, history, node.grace, by_extra), node)


@_slot.register(Suppress)
def _(node: Suppress, group: list[Node], name: str, plan: "Plan") -> Slot:
    return Slot(
        tasks.Suppress(name, node.windows, node.time_limit, node.max_records, node.max_bytes, node.emit_early), node
    )


@_slot.register(ForeignKeyStep)
def _(node: ForeignKeyStep, group: list[Node], name: str, plan: "Plan") -> Slot:
    join = node.join
    if join is None:
        raise TopologyError(f"{node.name}: a foreign-key join without its join.")
    shares = f"{join.name}-rows"
    if node.role == "register":
        return Slot(tasks.ForeignKeyRegister(name, shares), node, shares=shares)
    if node.role == "resolve":
        return Slot(tasks.ForeignKeyResolve(name, shares, join.left), node, shares=shares)
    return Slot(tasks.ForeignKeyAnswer(name, join.left), next(each for each in group if each.role == "notify"))  # type: ignore[attr-defined]


# ---- what goes in, and what comes out ------------------------------------------------------------------------------


def other_input(node: Node, record: Record, parent: Node, plan: "Plan") -> Column | None:
    """Return the bytes that travel beside a record's value into an operator: a lookup key or a foreign key."""
    if isinstance(node, StreamTableJoin) and node.key_selector is not None:
        selector, key = node.key_selector, plan.topology[node.table].key
        return key.to_bytes(record.call(node, selector, parent))
    if isinstance(node, ForeignKeyStep) and node.role == "register" and node.join is not None:
        chosen = record.call(node, node.join.foreign_key, parent, record.value.typed)
        return node.join.right_key.to_bytes(chosen)
    return None


def result(node: Node, plan: "Plan", row: DataFrame) -> Record:
    """Return the record that an operator's result is: its bytes, and what the joiner makes of two values."""
    key = sure(row["key"], node.key)
    record = Record(key, sure(row["value"], node.value), row["timestamp"], row["headers"])
    if isinstance(node, StreamJoinSide):
        left, right = _sides(node, plan)
        return replace(record, value=_joined(node, node.joiner, record, (left, row["value"]), (right, row["other"])))
    if isinstance(node, StreamTableJoin):
        left, right = plan.topology[node.parents[0]].value, plan.topology[node.table].value
        return replace(record, value=_joined(node, node.joiner, record, (left, row["value"]), (right, row["other"])))
    if isinstance(node, TableJoinSide):
        left, right = _sides(node, plan)

        def made(one: Column, other: Column) -> Datum:
            given = _has_result(node.outer, one, other)
            return _joined(node, node.joiner, record, (left, one), (right, other), given)

        return replace(record, value=made(row["value"], row["other"]), old=made(row["old"], row["other_old"]))
    if isinstance(node, ForeignKeyStep) and node.role == "resolve" and node.join is not None:
        join = node.join
        sides = (join.left_value, row["value"]), (join.right_value, row["other"])
        return replace(record, value=_joined(node, join.joiner, record, *sides, row["value"].isNotNull()))
    return replace(record, old=sure(row["old"], node.value), note=row["other"]) if node.is_table else record


def _joined(
    node: Node,
    joiner: Any,
    record: Record,
    left: tuple[Serde, Column],
    right: tuple[Serde, Column],
    given: Column | None = None,
) -> Datum:
    """Return what a joiner makes of the bytes of two sides, each with its serde, where it is `given` any."""
    sides = [
        columns.typed(serde.from_bytes(data), serde.data_type, letter)
        for letter, (serde, data) in zip("lr", (left, right), strict=True)
    ]
    key = columns.typed(record.key.typed, node.key.data_type, "k")
    return Datum(columns.call(joiner, [key, *sides], f"{node.name} at {node.written_at}", given))


def _sides(node: StreamJoinSide | TableJoinSide, plan: "Plan") -> tuple[Serde, Serde]:
    """Return the serdes of the values of the two sides of a join."""
    sides = {each.side: plan.topology[each.parents[0]].value for each in plan.nodes
             if isinstance(each, StreamJoinSide | TableJoinSide) and each.group == node.group}  # fmt: skip
    return sides[0], sides[1]


def _has_result(outer: tuple[bool, bool], left: Column, right: Column) -> Column:
    """Return whether a table join has a row for two sides: `outer` says which of them may stand alone."""
    keeps_left, keeps_right = outer
    if keeps_left and keeps_right:
        return left.isNotNull() | right.isNotNull()
    return left.isNotNull() if keeps_left else left.isNotNull() & right.isNotNull()
