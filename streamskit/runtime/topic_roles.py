"""What the topics of an application are for, beside carrying records: which fill stores, and which call functions."""

from streamskit.planning.plan import Plan, is_readable
from streamskit.queries import Catalogue, QueryableStore
from streamskit.topology import GlobalTableSource, Process, SideEffect, Source, Store, Topology


def changelogs(plans: list[Plan]) -> dict[str, Store]:
    """Return the changelogs that queries write, each with the store whose updates it holds."""
    return {plan.changelog(store): store for plan in plans for store in plan.stores}


def global_tables(topology: Topology) -> dict[str, list[GlobalTableSource]]:
    """Return the topics that are the changelogs of global tables, each with the nodes whose stores it fills."""
    found: dict[str, list[GlobalTableSource]] = {}
    for node in topology.nodes.values():
        if isinstance(node, GlobalTableSource) and node.store is not None and is_readable(node.store):
            source = topology[node.parents[0]]
            for topic in source.topics if isinstance(source, Source) else ():
                found.setdefault(topic, []).append(node)
    return found


def filled_stores(topology: Topology, plans: list[Plan]) -> dict[str, list[str]]:
    """Return all topics that fill stores, each with the stores' names."""
    found = {topic: [store.name] for topic, store in changelogs(plans).items()}
    for topic, nodes in global_tables(topology).items():
        found[topic] = found.get(topic, []) + [node.store.name for node in nodes if node.store is not None]
    return found


def side_effects(plans: list[Plan]) -> dict[str, SideEffect]:
    """Return the topics on which records travel to a user's functions, each with its step."""
    return {plan.calls_topic(node): node for plan in plans for node in plan.side_effects}


def catalogue(application_id: str, topology: Topology, plans: list[Plan]) -> Catalogue:
    """Return the stores that can be queried, each with its changelog and whether a key tells the partition."""
    entries = []
    for group, plan in enumerate(plans):
        by_task = {store.name for node in plan.nodes if isinstance(node, Process) for store in node.stores}
        beyond = plan.windowed_topics()
        for store in plan.stores:
            topic = plan.changelog(store)
            # A row of windows in a plain table lies where the key without its window does.
            routed = store.name not in by_task and (topic not in beyond or store.kind in ("window", "session"))
            entries.append(QueryableStore(store, topic, group, routed))
    for topic, nodes in global_tables(topology).items():
        entries += [QueryableStore(node.store, topic, -1, everywhere=True) for node in nodes if node.store is not None]
    return Catalogue(application_id, tuple(entries))
