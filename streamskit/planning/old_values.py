"""Which steps of a table pass on a row's old value beside the new one, and where it is remembered.

Mirrors `KTableImpl#enableSendingOldValues`: a step that needs old values makes a table before it remember them.
"""

from streamskit.topology.nodes import Node
from streamskit.topology.topology import Topology


def needs_old_values(node: Node, topology: Topology) -> bool:
    """Return whether anything after a table's step needs its rows' old values.

    A group_by takes the old value out of its group. A filter is spared needless deletions, but only where the table
    before it is kept in a store anyhow.
    """
    return any(
        child.needs_old_values
        or (child.uses_old_values and provides_old_values(node, topology))
        or (child.passes_old_values and needs_old_values(child, topology))
        for child in topology.children(node)
    )


def provides_old_values(node: Node, topology: Topology) -> bool:
    """Return whether a table's step, or one before it, keeps the rows in a store."""
    if node.knows_old_values or any(store.kind != "buffer" for store in node.stores if node.is_table):
        return True
    return node.passes_old_values and all(provides_old_values(topology[parent], topology) for parent in node.parents)


def stores_latest(node: Node, topology: Topology) -> bool:
    """Return whether a step has to remember its rows' latest values, because those after it ask and none before it can.

    A versioned table always remembers, as it has to tell late updates from new ones.
    """
    if not node.can_store_latest or not node.stores:
        return False
    if node.stores[0].kind == "versioned":
        return True
    known = node.passes_old_values and all(provides_old_values(topology[parent], topology) for parent in node.parents)
    return not known and needs_old_values(node, topology)
