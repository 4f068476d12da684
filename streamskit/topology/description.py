"""A topology in the words of Kafka's `TopologyDescription`, to the letter."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from streamskit.topology.java_order import TreeSet, hash_order
from streamskit.topology.nodes import Node, Sink


def describe(sub_topologies: Iterable[Sequence[Node]]) -> str:
    """Return the text that `TopologyDescription.toString()` prints for the same program."""
    parts = []
    for number, nodes in enumerate(sub_topologies):
        kind, end = ("", "\n") if not is_global(nodes) else (" for global store (will not generate tasks)", "")
        parts.append(f"  Sub-topology: {number}{kind}\n{_described(nodes)}{end}")
    return "Topologies:\n " + "".join(parts)


def is_global(nodes: Iterable[Node]) -> bool:
    """Return whether a sub-topology only keeps a global table, which each instance does outside of tasks."""
    return any(node.is_global for node in nodes)


@dataclass(eq=False)
class _Described:
    """A node as Kafka describes it. `size` counts the nodes that follow, along every path known so far."""

    node: Node
    size: int = 1
    parents: TreeSet["_Described"] = field(default_factory=lambda: TreeSet(_largest_first))
    children: TreeSet["_Described"] = field(default_factory=lambda: TreeSet(_largest_first))

    def grow(self, by: int) -> None:
        """Count more nodes after this one, and so after its parents."""
        self.size += by
        for parent in self.parents:
            parent.grow(by)


def _largest_first(described: _Described) -> tuple[int, str]:
    return -described.size, described.node.name


def _described(nodes: Sequence[Node]) -> str:
    by_name = {node.name: _Described(node) for node in nodes}
    _connect(by_name)
    return "".join(map(_lines, sorted(by_name.values(), key=_largest_first)))


def _connect(by_name: Mapping[str, _Described]) -> None:
    """Link parents and children in the order in which Kafka goes through its map of nodes.

    Sizes change along the way, and the sets are not sorted again, so `--> b, a` is possible although b is smaller.
    """
    for name in hash_order(by_name):
        child = by_name[name]
        for parent in (by_name[parent] for parent in dict.fromkeys(child.node.parents)):
            child.parents.add(parent)
            parent.children.add(child)
            parent.grow(child.size)


def _lines(described: _Described) -> str:
    node = described.node
    lines = [f"    {node.kind}: {node.name} {_details(node)}"]
    if node.kind != "Sink":
        lines.append(f"      --> {_names(described.children)}")
    if node.kind != "Source":
        lines.append(f"      <-- {_names(described.parents)}")
    return "\n".join(lines) + "\n"


def _names(others: Iterable[_Described]) -> str:
    return ", ".join(other.node.name for other in others) or "none"


def _details(node: Node) -> str:
    if node.pattern:
        return f"(topics: {node.topic_names[0]})"
    if node.kind == "Source":
        return f"(topics: [{', '.join(hash_order(node.topic_names))}])"
    if isinstance(node, Sink):
        if isinstance(node.topic, str):
            return f"(topic: {node.topic})"
        return f"(extractor class: {getattr(node.topic, '__name__', type(node.topic).__name__)})"
    return f"(stores: [{', '.join(hash_order(node.store_names))}])"
