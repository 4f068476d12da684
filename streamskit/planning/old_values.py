"""Which steps of a table pass on a row's old value beside the new one, and where it is remembered."""

from streamskit.topology import (
    Aggregation,
    Node,
    Suppress,
    TableAggregate,
    TableFilter,
    TableGroupBy,
    TableJoinSide,
    TableMapValues,
    TableMerge,
    TableSource,
    Topology,
)
from streamskit.topology.nodes import ForeignKeyStep

Remembering = (Aggregation, TableAggregate, TableJoinSide, ForeignKeyStep)
"""Steps that know the old value of a row from their own state."""


def needs_old_values(node: Node, topology: Topology) -> bool:
    """Return whether anything after a table's step needs its rows' old values.

    A group_by takes the old value out of its group. A filter is spared needless deletions, but only where the table
    before it is kept in a store anyhow.
    """
    for child in topology.children(node):
        if isinstance(child, TableGroupBy):
            return True
        if isinstance(child, TableFilter) and provides_old_values(node, topology):
            return True
        if isinstance(child, TableFilter | TableMapValues | TableMerge | Suppress) and needs_old_values(
            child, topology
        ):
            return True
    return False


def provides_old_values(node: Node, topology: Topology) -> bool:
    """Return whether a table's step, or one before it, keeps the rows in a store."""
    if isinstance(node, Remembering):
        return True
    if getattr(node, "store", None) is not None and not isinstance(node, Suppress):
        return True
    if isinstance(node, TableFilter | TableMapValues | TableMerge | Suppress):
        return all(provides_old_values(topology[parent], topology) for parent in node.parents)
    return False


def stores_latest(node: Node, topology: Topology) -> bool:
    """Return whether a step has to remember its rows' latest values, because those after it ask and none before it can.

    A versioned table always remembers, as it has to tell late updates from new ones.
    """
    if not isinstance(node, TableSource | TableFilter | TableMapValues) or node.store is None:
        return False
    if node.store.kind == "versioned":
        return True
    upstream = [topology[parent] for parent in node.parents]
    known = not isinstance(node, TableSource) and all(provides_old_values(parent, topology) for parent in upstream)
    return not known and needs_old_values(node, topology)
