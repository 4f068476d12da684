"""Where an operator's records come from: which topics, and which steps lie between those and the operator."""

from dataclasses import dataclass

from streamskit.api.windows import AnyWindows, UnlimitedWindows
from streamskit.topology import Topology
from streamskit.topology.nodes import Aggregation, Node, Source, StreamJoinSide, of_kind
from streamskit.views.streams_source import topics_of


@dataclass(frozen=True)
class UpstreamSource:
    """A source that feeds an operator: its topics by their real names, and the steps between that change records.

    `side` is that of the operator: 0 for the left stream of a join, 1 for the right.
    """

    source: Source
    topics: tuple[str, ...]
    between: tuple[Node, ...]
    side: int = 0

    @property
    def caveat(self) -> str:
        """A sentence on what a view of the topics cannot know about the operator, or nothing."""
        if not self.between:
            return ""
        names = ", ".join(node.name for node in self.between)
        return (
            f"Between {' and '.join(self.topics)} and here lies {names}: records are shown as they are in the topic, "
            "also those that such a step holds back or changes."
        )


def windowed_nodes(topology: Topology, store: str) -> tuple[list[Aggregation], AnyWindows]:
    """Return the nodes that aggregate into a store by window, and the windows.

    Raises:
        ValueError: the store has no windows, none that end, or is not there.
    """
    windowed = [node for node in of_kind(Aggregation, topology.nodes.values()) if node.windows]
    nodes = [node for node in windowed if node.store and node.store.name == store]
    if nodes and isinstance(nodes[0].windows, UnlimitedWindows):
        raise ValueError(
            f"The window of store '{store}' has no end, so there is nothing to draw: StoreView(streams, '{store}') "
            "shows its rows."
        )
    if nodes and nodes[0].windows:
        return nodes, nodes[0].windows
    known = ", ".join(dict.fromkeys(repr(node.store.name) for node in windowed if node.store)) or "none"
    raise ValueError(
        f"There is no store '{store}' with windows in this topology: those with windows are {known}. "
        "WindowView(streams, 'a-store') shows one of them."
    )


def join_sides(topology: Topology, name: str | None) -> list[StreamJoinSide]:
    """Return the two sides of a join of streams, left first.

    Args:
        topology: where to look.
        name: the name of one of its nodes, or of the join; not needed where there is only one.

    Raises:
        ValueError: there is no such join, or there are several to choose from.
    """
    sides = of_kind(StreamJoinSide, topology.nodes.values())
    groups = list(dict.fromkeys(node.group for node in sides if name in (None, node.name, node.group)))
    if len(groups) == 1:
        return sorted((node for node in sides if node.group == groups[0]), key=lambda node: node.side)
    known = ", ".join(node.name for node in sides if node.side == 0)
    if not known:
        raise ValueError("There is no join of two streams in this topology: JoinView shows one of those.")
    wrong = f"'{name}' is no join of two streams" if name else "There are several joins of two streams"
    raise ValueError(f"{wrong}: choose by name, JoinView(streams, 'a-name'), one of {known}.")


def origins(topology: Topology, node: Node, application_id: str, side: int = 0) -> list[UpstreamSource]:
    """Return the sources whose records reach a node without passing another topic."""
    sources: list[UpstreamSource] = []

    def climb(name: str, passed: tuple[Node, ...]) -> None:
        above = topology.nodes[name]
        if isinstance(above, Source):
            sources.append(UpstreamSource(above, tuple(topics_of(above, application_id)), passed, side))
        changes = above.changes_records
        for parent in above.parents:
            climb(parent, (above, *passed) if changes else passed)

    for parent in node.parents:
        climb(parent, ())
    return sources
