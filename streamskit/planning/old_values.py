"""Which steps of a table pass on a row's old value beside the new one, and where it is remembered."""

from streamskit.topology import (
    Aggregation,
    Node,
    Suppress,
    TableFilter,
    TableFold,
    TableJoinSide,
    TableMapValues,
    TableMerge,
    TableSelect,
    TableSource,
    Topology,
)
from streamskit.topology.nodes import ForeignKeyStep

Remembering = (Aggregation, TableFold, TableJoinSide, ForeignKeyStep)
"""Steps that know the old value of a row from their own state."""


def asks_for_old(node: Node, topology: Topology) -> bool:
    """Return whether anything after a table's step needs its rows' old values.

    A group_by takes the old value out of its group. A filter is spared needless deletions, but only where the table
    before it is kept in a store anyhow.
    """
    for child in topology.children(node):
        if isinstance(child, TableSelect):
            return True
        if isinstance(child, TableFilter) and can_give_old(node, topology):
            return True
        if isinstance(child, TableFilter | TableMapValues | TableMerge | Suppress) and asks_for_old(child, topology):
            return True
    return False


def can_give_old(node: Node, topology: Topology) -> bool:
    """Return whether a table's step, or one before it, keeps the rows in a store."""
    if isinstance(node, Remembering):
        return True
    if getattr(node, "store", None) is not None and not isinstance(node, Suppress):
        return True
    if isinstance(node, TableFilter | TableMapValues | TableMerge | Suppress):
        return all(can_give_old(topology[parent], topology) for parent in node.parents)
    return False


def keeps_latest(node: Node, topology: Topology) -> bool:
    """Return whether a step has to remember its rows' latest values, because those after it ask and none before it can.

    A versioned table always remembers, as it has to tell late updates from new ones.
    """
    if not isinstance(node, TableSource | TableFilter | TableMapValues) or node.store is None:
        return False
    if node.store.kind == "versioned":
        return True
    upstream = [topology[parent] for parent in node.parents]
    known = not isinstance(node, TableSource) and all(can_give_old(parent, topology) for parent in upstream)
    return not known and asks_for_old(node, topology)
