"""Which tables are looked into at any time: their updates have to be visible at once, even while the cache holds them.

In Kafka Streams a step that looks a row up reads through the record cache of the store, and through steps before it
that keep no store. Here it has its own rows. So it is sent each update at once, and nothing when the cache has merged
them for all others.
"""

from streamskit.planning.plan import Plan
from streamskit.topology.nodes import Node, TableJoinSide


def looked_into(plan: Plan) -> frozenset[int]:
    """Return the numbers of the operators whose updates the record cache merges for some and not for others."""
    if not plan.options.cache:
        return frozenset()
    cacheable = {number: slot.node for number, slot in enumerate(plan.operators) if slot.operator.is_cacheable}
    return frozenset(number for number, node in cacheable.items() if is_looked_into(node, plan))


def is_looked_into(table: Node, plan: Plan) -> bool:
    """Return whether rows of a table are looked up, as it makes them or as steps without a store change them."""
    return any(leads_to_lookup(step, table, plan) for step in plan.following(table))


def leads_to_lookup(step: Node, table: Node, plan: Plan) -> bool:
    """Return whether a step looks into the table before it, or another step looks through it into that table."""
    return looks_into(step, table, plan) or is_read_through(step, plan)


def looks_into(step: Node, table: Node, plan: Plan) -> bool:
    """Return whether a step looks up rows of a table that have to be sent to it."""
    return step.looks_into(table) and not plan.uses(step, table)


def is_read_through(step: Node, plan: Plan) -> bool:
    """Return whether rows of a table that a step makes, and keeps nowhere, are looked up."""
    if not step.is_table or step.row_store is not None or step.buffers:
        return False
    return is_looked_into(step, plan)


def has_open_windows(table: Node, plan: Plan) -> bool:
    """Return whether rows of a table come from windows that are emitted on close, and can be looked up before."""
    if table.on_close:
        return True
    if table.row_store is not None or table.buffers or table.joins_tables or not table.is_table:
        return False
    return any(has_open_windows(plan.topology[parent], plan) for parent in table.parents)


def stay_in_cache(table: Node, plan: Plan) -> bool:
    """Return whether rows of windows that are emitted on close are in a record cache, where they are found for longer.

    This does not hold for the cache of sessions.
    """
    if table.on_close:
        return plan.options.cache and all(store.cached and store.kind == "window" for store in table.stores)
    return has_open_windows(table, plan) and any(stay_in_cache(plan.topology[each], plan) for each in table.parents)


def are_open_windows_looked_up(table: Node, plan: Plan) -> bool:
    """Return whether a join looks up rows of windows before they are emitted on close."""
    return any(is_open_window_taken(step, table, plan) for step in plan.following(table))


def is_open_window_taken(step: Node, table: Node, plan: Plan) -> bool:
    """Return whether a step keeps rows of windows that are not emitted yet, or passes them on to one that does."""
    if looks_into(step, table, plan) or isinstance(step, TableJoinSide):
        return True
    is_plain = step.is_table and not step.is_stateful and step.row_store is None and not step.needs_old_values
    return is_plain and are_open_windows_looked_up(step, plan)
