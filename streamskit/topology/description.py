"""A topology in the words of Kafka's `TopologyDescription`, to the letter."""

from collections.abc import Iterable, Sequence
from functools import cache

from streamskit.topology.nodes import Node, Sink, Source


def describe(sub_topologies: Iterable[Sequence[Node]]) -> str:
    """Return the text that `TopologyDescription.toString()` prints for the same program."""
    parts = [f"   Sub-topology: {number}\n" + _describe(nodes) for number, nodes in enumerate(sub_topologies)]
    return "Topologies:\n" + "\n".join(parts) + "\n"


def _describe(nodes: Sequence[Node]) -> str:
    children = {node.name: [child for child in nodes if node.name in child.parents] for node in nodes}

    @cache
    def size(name: str) -> int:
        """How many nodes follow, counted along every path: Kafka prints the largest first."""
        return 1 + sum(size(child.name) for child in children[name])

    def order(node: Node) -> tuple[int, str]:
        return -size(node.name), node.name

    by_name = {node.name: node for node in nodes}
    lines = []
    for node in sorted(nodes, key=order):
        lines.append(f"    {node.kind}: {node.name} {_details(node)}")
        if not isinstance(node, Sink):
            following = [child.name for child in sorted(children[node.name], key=order)]
            lines.append(f"      --> {', '.join(following) or 'none'}")
        if not isinstance(node, Source):
            preceding = [parent.name for parent in sorted((by_name[name] for name in node.parents), key=order)]
            lines.append(f"      <-- {', '.join(preceding) or 'none'}")
    return "\n".join(lines) + "\n"


def _details(node: Node) -> str:
    if isinstance(node, Source):
        return f"(topics: [{', '.join(node.topics)}])"
    if isinstance(node, Sink):
        return f"(topic: {node.topic})"
    return f"(stores: [{', '.join(sorted(store.name for store in node.stores))}])"
