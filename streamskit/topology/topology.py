"""`Topology`: the finished graph of a program, cut into sub-topologies, described and drawn."""

from collections.abc import Callable

from streamskit.common.errors import TopologyError
from streamskit.state.stores import Store
from streamskit.topology.description import describe
from streamskit.topology.drawing.diagram import as_html, draw
from streamskit.topology.nodes import Node, Sink, Source, of_kind
from streamskit.topology.wiring import Wiring


class Topology(Wiring):
    """A graph of nodes, made by `StreamsBuilder.build()`, wired by hand, or built first and then extended by hand.

    Mirrors `org.apache.kafka.streams.Topology`.

    >>> print(builder.build().describe())
    Topologies: ...
    """

    def __repr__(self) -> str:
        parts = len(self.sub_topologies())
        return f"<Topology of {len(self.nodes)} nodes in {parts} sub-topolog{'y' if parts == 1 else 'ies'}>"

    def __getitem__(self, name: str) -> Node:
        return self.nodes[name]

    @property
    def sources(self) -> list[Source]:
        """The nodes that read topics, in the order they were written."""
        return of_kind(Source, self.nodes.values())

    @property
    def sinks(self) -> list[Sink]:
        """The nodes that write topics, in the order they were written."""
        return of_kind(Sink, self.nodes.values())

    @property
    def stores(self) -> dict[str, Store]:
        """The state stores by name."""
        return {store.name: store for node in self.nodes.values() for store in node.stores}

    def store(self, name: str) -> Store:
        """Return the store of that name.

        Raises:
            TopologyError: there is none.
        """
        if name not in self.stores:
            known = ", ".join(sorted(self.stores)) or "none"
            raise TopologyError(f"There is no store '{name}' in this topology; its stores are: {known}.")
        return self.stores[name]

    def with_each_node(self, change: Callable[[Node], Node]) -> "Topology":
        """Return this topology with each of its nodes changed; their names stay."""
        return Topology(map(change, self.nodes.values()), self._loose_stores.values())

    def children(self, node: Node) -> list[Node]:
        """Return the nodes that `node` feeds."""
        return [other for other in self.nodes.values() if node.name in other.parents]

    def sub_topologies(self) -> list[list[Node]]:
        """Return the groups of nodes that are connected by arrows or share a store; only topics link the groups.

        They are numbered as Kafka Streams numbers them, and include those of global tables.
        """
        group = {name: name for name in self.nodes}

        def root(name: str) -> str:
            while group[name] != name:
                name = group[name]
            return name

        keepers: dict[str, str] = {}
        for node in self.nodes.values():
            for parent in node.parents:
                group[root(node.name)] = root(parent)
            for store in [*(store.name for store in node.stores), *node.reads]:
                group[root(node.name)] = root(keepers.setdefault(store, node.name))
        members: dict[str, list[Node]] = {}
        for node in self.nodes.values():
            members.setdefault(root(node.name), []).append(node)
        return list(members.values())

    def describe(self) -> str:
        """Return the topology as text, exactly as Kafka Streams' `TopologyDescription` prints it."""
        return describe(self.sub_topologies())

    def diagram(self) -> str:
        """Return the topology as an SVG picture."""
        return draw(self.sub_topologies())

    def _repr_html_(self) -> str:
        return as_html(self.sub_topologies())


def check_topology(given: object) -> Topology:
    """Return what was given as a topology to run.

    Raises:
        TopologyError: it is none, such as a builder whose `build()` was forgotten.
    """
    if isinstance(given, Topology):
        return given
    kind = type(given).__name__
    if hasattr(given, "build"):
        raise TopologyError(f"The topology given is a {kind}: give builder.build(), which makes a Topology of it.")
    if callable(given):
        raise TopologyError(f"The topology given is a {kind}: call it, and give the Topology that it returns.")
    raise TopologyError(f"The topology given is {given!r}: give a Topology, such as builder.build() returns.")
