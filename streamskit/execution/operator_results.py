"""What goes into a task operator beside a record, and the record that its result is."""

from dataclasses import replace
from typing import Any

from pyspark.sql import Column, DataFrame

from streamskit.columns import user_functions
from streamskit.execution.records import Datum, RecordColumns, sure
from streamskit.planning.plan import Plan
from streamskit.serdes import Serde
from streamskit.topology import ForeignKeyStep, Node, StreamJoinSide, StreamTableJoin, TableJoinSide


def other_input(node: Node, record: RecordColumns, parent: Node, plan: Plan) -> Column | None:
    """Return the bytes that travel beside a record's value into an operator: a lookup key or a foreign key."""
    if isinstance(node, StreamTableJoin) and node.key_selector is not None:
        selector, key = node.key_selector, plan.topology[node.table].key
        return key.to_bytes(record.call(node, selector, parent))
    if isinstance(node, ForeignKeyStep) and node.role == "register" and node.join is not None:
        chosen = record.call(node, node.join.foreign_key, parent, record.value.typed)
        return node.join.right_key.to_bytes(chosen)
    return None


def result(node: Node, plan: Plan, row: DataFrame) -> RecordColumns:
    """Return the record that an operator's result is: its bytes, and what the joiner makes of two values."""
    key = sure(row["key"], node.key)
    record = RecordColumns(key, sure(row["value"], node.value), row["timestamp"], row["headers"])
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
    record: RecordColumns,
    left: tuple[Serde, Column],
    right: tuple[Serde, Column],
    given: Column | None = None,
) -> Datum:
    """Return what a joiner makes of the bytes of two sides, each with its serde, where it is `given` any."""
    sides = [
        user_functions.typed_column(serde.from_bytes(data), serde.data_type, letter)
        for letter, (serde, data) in zip("lr", (left, right), strict=True)
    ]
    key = user_functions.typed_column(record.key.typed, node.key.data_type, "k")
    return Datum(user_functions.apply(joiner, [key, *sides], f"{node.name} at {node.call_site}", given))


def _sides(node: StreamJoinSide | TableJoinSide, plan: Plan) -> tuple[Serde, Serde]:
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
