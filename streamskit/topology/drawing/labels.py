"""A topology in plain words: what a screen reader reads out for the picture."""

from collections.abc import Mapping, Sequence

from streamskit.state.stores import Store
from streamskit.topology.nodes import Node


def looked_up(node: Node, nodes: Mapping[str, Node]) -> list[str]:
    """Return the names of the stores that other nodes keep and this one looks into.

    Args:
        node: the node that looks.
        nodes: all nodes of the topology by name, where a global table may be found.
    """
    tables = [table for table in nodes.values() if table.is_global and node.looks_into(table)]
    of_tables = [store.name for table in tables for store in table.stores]
    own = {store.name for store in node.stores}
    return [name for name in dict.fromkeys([*node.reads, *of_tables]) if name not in own]


def store_kind(store: Store) -> str:
    """Return what a store is called: "window store", or "buffer"."""
    return store.kind if store.kind == "buffer" else f"{store.kind} store"


def tooltip(node: Node, nodes: Mapping[str, Node]) -> str:
    """Return a description of a node; `nodes` are all nodes of the topology by name."""
    # Not with its line in the program: the same program has to give the same picture.
    return f"{node.name}: {_in_words(node, nodes)}"


def in_words(sub_topologies: Sequence[Sequence[Node]]) -> str:
    """Return a topology as sentences: the chains of each sub-topology, cut where they branch or meet."""
    every = {node.name: node for nodes in sub_topologies for node in nodes}
    sentences = []
    for number, nodes in enumerate(sub_topologies):
        chains = (" → ".join(_in_words(node, every) for node in chain) + "." for chain in _chains(nodes))
        sentences.append(f"Sub-topology {number}: {' '.join(chains)}")
    return " ".join(sentences)


def _in_words(node: Node, nodes: Mapping[str, Node]) -> str:
    if names := node.topic_names:
        return ("topic " if len(names) == 1 else "topics ") + ", ".join(names)
    kept = "".join(f" with {store_kind(store)} {store.name}" for store in node.stores)
    read = ", ".join(looked_up(node, nodes))
    return node.label + kept + (f" looking into {read}" if read else "")


def _chains(nodes: Sequence[Node]) -> list[list[Node]]:
    children = {node.name: [child for child in nodes if node.name in child.parents] for node in nodes}

    def is_junction(node: Node) -> bool:
        return len(node.parents) != 1 or len(children[node.name]) != 1

    chains = []
    for node in filter(is_junction, nodes):
        if not node.parents and not children[node.name]:
            chains.append([node])
        for child in children[node.name]:
            chain = [node, child]
            while not is_junction(chain[-1]):
                chain += children[chain[-1].name]
            chains.append(chain)
    return chains
