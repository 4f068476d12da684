"""Which steps of a table pass on a row's old value besides the new one; where it, and looked-up rows, come from.

Mirrors `KTableImpl#enableSendingOldValues`: a step that needs old values requests them from the one before it, which
requests them from the one before that, up to a step that keeps its rows. A user's function is called on an old value
only where one is needed.
"""

from collections.abc import Sequence

from streamskit.topology.nodes import Node
from streamskit.topology.topology import Topology


def needs_old_values(node: Node, topology: Topology) -> bool:
    """Return whether anything after a table's step asks for its rows' old values."""
    return any(takes_old_values(child, node, topology) for child in topology.children(node))


def sends_old_values(node: Node, topology: Topology) -> bool:
    """Return whether a table's step sends the old values of rows to the steps after it."""
    if node.sends_old_values or needs_old_values(node, topology):
        return True
    return node.heeds_requests and _is_asked(node, topology)


def takes_old_values(node: Node, parent: Node, topology: Topology) -> bool:
    """Return whether a step takes the old values of the table that `parent` makes."""
    if node.needs_old_values or (node.uses_old_values and parent.knows_old_values and _makes_rows(parent, topology)):
        return True
    if node.takes_changed_old_values and _changes_old_values(parent, topology):
        return True
    if not node.passes_old_values or (node.old_value_store is not None and not node.tells_given_old_values):
        return False
    if node.looks_up_rows:  # a join keeps the rows of both sides, and needs old values only where these may differ
        asks = node.asks_for_old_values or sends_old_values(node, topology)
        return asks and _changes_old_values(parent, topology)
    return sends_old_values(node, topology)


def stores_latest(node: Node, topology: Topology) -> bool:
    """Return whether a step has to remember its rows' latest values, to send the old ones.

    A versioned table always remembers them, as it has to distinguish late updates from new ones.
    """
    store = node.old_value_store
    if store is None or node.operator_input is not None:  # an operator manages its own rows
        return False
    return store.kind == "versioned" or sends_old_values(node, topology)


def keeps_latest(node: Node, topology: Topology, cache: bool) -> bool:
    """Return whether a step has to remember its rows' latest values: to send the old ones, or for its record cache.

    Args:
        node: the step.
        topology: the topology that it is part of.
        cache: whether the application has record caches.
    """
    return stores_latest(node, topology) or caches_rows(node, topology, cache)


def caches_rows(node: Node, topology: Topology, cache: bool) -> bool:
    """Return whether a step has to remember its rows for the sake of its store's record cache.

    The cache of a store passes on no deletion of a row that never existed, such as one that a filter does not let
    through. Mirrors `CachingKeyValueStore#putAndMaybeForward`.

    Args:
        node: the step.
        topology: the topology that it is part of.
        cache: whether the application has record caches.
    """
    store = node.row_store
    if not cache or store is None or not store.cached:
        return False
    if store.kind != "key-value" or node.operator_input is not None:
        return False
    return node.skips_absent_rows and bool(topology.children(node))


def rows_are_looked_up(node: Node, topology: Topology) -> bool:
    """Return whether a later join looks up rows that a step makes, of which no step before the join has a store."""
    return any(
        child.looks_up_rows
        or (child.passes_old_values and child.row_store is None and rows_are_looked_up(child, topology))
        for child in topology.children(node)
    )


def row_history(node: Node, topology: Topology) -> int | None:
    """Return how far back versions of a table's rows can be looked up, in milliseconds; None if there are none."""
    if (store := node.row_store) is not None:
        return store.retention if store.kind == "versioned" else None
    if not node.passes_old_values or node.buffers or len(node.parents) != 1:
        return None
    return row_history(topology[node.parents[0]], topology)


def row_retention(node: Node, topology: Topology) -> int | None:
    """Return for how long a row of a windowed table can be looked up, in milliseconds; None means forever."""
    if (store := node.row_store) is not None:
        return store.shown_for if store.kind in ("window", "session") else None
    known = [row_retention(topology[parent], topology) for parent in node.parents if node.is_table]
    return min((each for each in known if each is not None), default=None) if None not in known else None


def _is_asked(node: Node, topology: Topology) -> bool:
    """Return whether a step after a table's asks for old values in Kafka Streams."""
    return any(
        child.asks_for_old_values
        or child.needs_old_values
        or (child.passes_old_values and child.old_value_store is None and _is_asked(child, topology))
        for child in topology.children(node)
    )


def _makes_rows(node: Node, topology: Topology) -> bool:
    """Return whether a step makes rows from records, or merges those that the sides of a cogroup make."""
    return node.is_stateful or any(topology[parent].changes_old_values for parent in node.parents)


def _changes_old_values(node: Node, topology: Topology) -> bool:
    """Return whether what comes from a step as a row's old value may not be the value that came before."""
    if node.old_value_store is not None:
        return node.tells_given_old_values
    if node.changes_old_values or _joins_table_with_itself(node, topology):
        return True
    return node.passes_old_values and any(_changes_old_values(topology[each], topology) for each in node.parents)


def _joins_table_with_itself(node: Node, topology: Topology) -> bool:
    """Return whether a join's two sides come from one table.

    The first side then sends an old value that never existed: its own old row joined with the other side's new one.
    """
    return come_of_one_table([topology[each] for each in node.parents if topology[each].joins_tables], topology)


def come_of_one_table(sides: Sequence[Node], topology: Topology) -> bool:
    """Return whether the two sides of a join come from one table, so that one update of it changes a row of both."""
    tables = [_tables_before(side, topology) for side in sides]
    return len(tables) == 2 and not tables[0].isdisjoint(tables[1])


def _tables_before(node: Node, topology: Topology) -> set[str]:
    """Return the names of the tables that a step's rows come from."""
    tables = {parent for parent in node.parents if topology[parent].is_table}
    return tables.union(*(_tables_before(topology[table], topology) for table in tables))
