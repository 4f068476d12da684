"""Which tables' stores processors use directly, and of which they get a copy.

In Kafka Streams a processor and a table's own step find the same store in their task. Here they do so as long as both
run on one level, where neither gets records that the other has passed on.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from streamskit.planning.plan import Plan, ProcessorGroup
from streamskit.topology.nodes import Node

Pair = tuple[str, str]
"""The name of a group of processors, and that of a store."""


def shared_stores(plan: Plan) -> dict[Pair, str]:
    """Return the tables' stores that processors use themselves, by group and store, each with the level they share."""
    pairs = dict(_candidates(plan))
    while True:
        levels = _levels(pairs)
        apart = [pair for pair in pairs if not _stand_together(replace(plan, shared=levels), pairs, levels, pair)]
        if not apart:
            return levels
        # Once one store is used through a copy, others may become shareable.
        del pairs[apart[-1]]


def table_of(store: str, nodes: Iterable[Node]) -> Node:
    """Return the node that keeps the store of a table, or a global store."""
    return next(
        node for node in nodes
        if (node.is_table or node.is_global) and any(kept.name == store for kept in node.stores)
    )  # fmt: skip


def why_read_only(plan: Plan, group: ProcessorGroup, store: str) -> str:
    """Return why processors cannot change the store of a table; empty if they can."""
    table = table_of(store, plan.topology.nodes.values())
    if table.is_global:
        return "it is that of a global table, which no processor can change. Write to the table's topic."
    if (group.name, store) not in plan.shared:
        return (
            "the processor has a copy of this table's rows, as it gets records that come from the table, or because "
            "Spark's own operators make it; it can read them but not change them. Write to the table's topic, or keep "
            "a store of your own."
        )
    if table.on_close:
        return "its windows go out when they close, and a processor cannot change them. Keep a store of your own."
    if joined := _looked_into_by_tables(plan, table):
        return (
            f"{joined.name} ({joined.call_site}) joins this table with another one and would not see what a processor "
            "puts there. Write to the table's topic, or keep a store of your own."
        )
    return ""


def _candidates(plan: Plan) -> Iterator[tuple[Pair, Node]]:
    """Yield the groups and the stores of tables that they use, each with the table, where the table runs in Python."""
    for group in dict.fromkeys(plan.groups.values()):
        for store in dict.fromkeys(name for member in group.members for name in member.reads):
            table = table_of(store, plan.topology.nodes.values())
            runs = table.keeps_rows or (table.old_value_store is not None and table.operator_input is None)
            if runs and table in plan.nodes and table is not plan.native and table.name not in plan.handed_over:
                yield (group.name, store), table


def _levels(pairs: dict[Pair, Node]) -> dict[Pair, str]:
    """Return a name for the level of each pair: all that share a store, directly or through others, share a level."""
    level = {pair: pair for pair in pairs}
    for _ in pairs:
        for one in pairs:
            for other in pairs:
                if one[0] == other[0] or pairs[one] is pairs[other]:
                    level[one] = level[other] = min(level[one], level[other])
    return {pair: f"{first[0]} with {first[1]}" for pair, first in level.items()}


def _stand_together(plan: Plan, pairs: dict[Pair, Node], levels: dict[Pair, str], pair: Pair) -> bool:
    """Return whether nothing that a table or its processors pass on reaches any of those on the same level."""
    together = [other for other in pairs if levels[other] == levels[pair]]
    names = {pairs[other].name for other in together}
    names |= {name for group, _ in together for name in own_group(plan, group)}
    own = {pairs[pair].name, *(member.name for member in plan.groups[pair[0]].members)}
    return all(not (_after(plan, plan.topology[name]) & (names - own_group(plan, name))) for name in own)


def own_group(plan: Plan, name: str) -> set[str]:
    """Return the names of the processors that run together with one, itself among them."""
    return {member.name for member in plan.groups[name].members} if name in plan.groups else set()


def _after(plan: Plan, node: Node) -> set[str]:
    """Return the names of all nodes that a node's records lead to in a query."""
    found: set[str] = set()
    to_visit = plan.following(node)
    while to_visit:
        child = to_visit.pop()
        if child.name not in found:
            found.add(child.name)
            # Any processor of a group may pass on what results from a record of one of them.
            together = plan.groups[child.name].members if child.name in plan.groups else (child,)
            to_visit += [each for member in together for each in plan.following(member)]
    return found


def _looked_into_by_tables(plan: Plan, table: Node) -> Node | None:
    """Return a join with another table that looks into this one, or into what follows from it without a store."""
    for child in plan.topology.children(table):
        if child.joins_tables:
            return child
        if child.is_table and not child.is_stateful and not child.stores:
            found = _looked_into_by_tables(plan, child)
            if found is not None:
                return found
    return None
