"""A topology in plain words: what a learner calls a node, and what a screen reader says for the picture."""

import re
from collections.abc import Sequence

from streamskit.topology.nodes import Node, Sink, Source


def word(node: Node) -> str:
    """Return the operator as a learner writes it: "map values" for MapValues."""
    kind = type(node).__name__ if type(node) is not Node else node.kind
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).lower()


def topics(node: Node) -> tuple[str, ...]:
    """Return the topics that a node reads or writes."""
    if isinstance(node, Source):
        return node.topics
    return (node.topic,) if isinstance(node, Sink) else ()


def tooltip(node: Node) -> str:
    """Return all there is to say about a node."""
    # Without the line it was written at: the same program has to give the same picture.
    return f"{node.name}: {_in_words(node)}"


def in_words(sub_topologies: Sequence[Sequence[Node]]) -> str:
    """Return a topology as sentences: the chains of each sub-topology, cut where they branch or meet."""
    sentences = []
    for number, nodes in enumerate(sub_topologies):
        chains = " ".join(" → ".join(map(_in_words, chain)) + "." for chain in _chains(nodes))
        sentences.append(f"Sub-topology {number}: {chains}")
    return " ".join(sentences)


def _in_words(node: Node) -> str:
    if names := topics(node):
        return ("topic " if len(names) == 1 else "topics ") + ", ".join(names)
    return word(node) + "".join(f" with {store.kind} store {store.name}" for store in node.stores)


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
