"""Where everything in a topology's picture goes: sub-topologies in boxes, and the links between them."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from streamskit.topology.drawing.layout import Extent, Layout, Point, arrange
from streamskit.topology.drawing.shapes import DRUM_GAP, Card, card
from streamskit.topology.nodes import Node, Sink, Source

PAD, HEADER, MARGIN, LANE = 14, 28, 10, 9
ALONG, ACROSS = 30, 20
"""The gaps between nodes along the flow, where arrows are, and across it."""


@dataclass(frozen=True)
class Link:
    """A topic that a sink in one sub-topology writes and a source in another reads."""

    written_in: int
    sink: str
    read_in: int
    source: str


@dataclass
class Box:
    """A sub-topology, laid out; its nodes begin at (`along`, `across`)."""

    number: int
    cards: Mapping[str, Card]
    layout: Layout
    along: float = 0
    across: float = 0

    def place(self, point: Point) -> Point:
        """Turn a point of the box into a point of the picture."""
        return self.along + point[0], self.across + point[1]

    def centre(self, name: str) -> Point:
        """Return the middle of a node."""
        return self.place(self.layout.centres[name])


class Places:
    """The places of all boxes, nodes, arrows and links.

    They are (along, across) the flow, which goes to the right, or `down` where that would be too wide.
    """

    def __init__(self, sub_topologies: Sequence[Sequence[Node]], down: bool) -> None:
        self.down = down
        self.nodes = {node.name: node for nodes in sub_topologies for node in nodes}
        cards = [self._cards(nodes, longest_name=36 if down else 22) for nodes in sub_topologies]
        every = [each for group in cards for each in group.values()]
        self.card_width = max([190.0 if down else 90.0, *(each.width for each in every)])
        self.card_height = max((each.height for each in every), default=0)
        links = _links(sub_topologies)
        self._by_number = [Box(number, group, self._layout(group)) for number, group in enumerate(cards)]
        self.boxes = [self._by_number[number] for number in _in_flow_order(len(cards), links)]
        self.lanes = self._lanes(links)
        self._stack()

    def at(self, point: Point) -> Point:
        """Turn a point of the flow into x and y."""
        return point[::-1] if self.down else point

    def arrow(self, box: Box, parent: str, child: str) -> list[Point]:
        """Return the points an arrow goes through: in each gap to another row, straight through layers."""
        (start, first), (end, last) = box.centre(parent), box.centre(child)
        bends = map(box.place, box.layout.bends.get((parent, child), ()))
        return [(start + self._half, first), *bends, (end - self._half, last)]

    def way(self, link: Link) -> list[Point]:
        """Return the corners of the way from a sink, round the boxes, to the source of the same topic."""
        written, read = self._by_number[link.written_in], self._by_number[link.read_in]
        (start, first), (end, last) = written.centre(link.sink), read.centre(link.source)
        gap = next(gap for gap, links in self.lanes.items() if link in links)
        lane = LANE * (1 + self.lanes[gap].index(link))
        beyond = written.along + written.layout.along + PAD + lane
        side = MARGIN + LANE * [each for links in self.lanes.values() for each in links].index(link)
        between = self._gaps[gap] + lane
        corners = [(beyond, first), (beyond, between), (side, between), (side, last)]
        return [(start + self._half, first), *corners, (end - self._half, last)]

    @property
    def _half(self) -> float:
        return (self.card_height if self.down else self.card_width) / 2

    def _cards(self, nodes: Sequence[Node], longest_name: int) -> dict[str, Card]:
        kept = Counter(store.name for node in nodes for store in node.stores)
        shared: Collection[str] = [name for name, times in kept.items() if times > 1]
        return {node.name: card(node, self.nodes, shared, longest_name) for node in nodes}

    def _layout(self, cards: Mapping[str, Card]) -> Layout:
        sinks = [name for name, its_card in cards.items() if isinstance(its_card.node, Sink)]
        parents = {name: list(dict.fromkeys(its_card.node.parents)) for name, its_card in cards.items()}
        extents = {name: self._extent(its_card.stores_height) for name, its_card in cards.items()}
        return arrange(parents, extents, sinks, ALONG - 6 if self.down else ALONG, ACROSS)

    def _extent(self, stores_height: float) -> Extent:
        """Return the room of a node, its stores beneath it, or beside it where the flow goes down."""
        width, height = self.card_width, self.card_height
        if not self.down:
            return Extent(width, height / 2, height / 2 + stores_height)
        return Extent(max(height, stores_height), width / 2, width / 2 + (width + DRUM_GAP if stores_height else 0))

    def _lanes(self, links: Sequence[Link]) -> dict[int, list[Link]]:
        """Sort the links by the gap they run in: 0 is before the first box, 1 after it, and so on."""
        index = {box.number: number for number, box in enumerate(self.boxes)}
        lanes: dict[int, list[Link]] = {}
        for link in sorted(links, key=lambda link: -self._by_number[link.written_in].centre(link.sink)[1]):
            onward = index[link.read_in] >= index[link.written_in]
            lanes.setdefault(index[link.written_in] + onward, []).append(link)
        return lanes

    def _stack(self) -> None:
        """Put one box after the other across the flow, with room for the links between and before them."""
        first, header = (HEADER, PAD) if self.down else (PAD, HEADER)
        before = MARGIN + LANE * sum(map(len, self.lanes.values())) + first
        position, self._gaps = 0.0, [0.0]
        for index, box in enumerate(self.boxes):
            box.along, box.across = before, position + MARGIN + LANE * len(self.lanes.get(index, ())) + header
            position = box.across + box.layout.across + PAD
            self._gaps.append(position)
        position += MARGIN + LANE * len(self.lanes.get(len(self.boxes), ()))
        longest = max((box.along + box.layout.along for box in self.boxes), default=0)
        beyond = PAD + MARGIN + LANE * max(map(len, self.lanes.values()), default=0)
        self.width, self.height = self.at((longest + beyond, position))


def _links(sub_topologies: Sequence[Sequence[Node]]) -> list[Link]:
    numbered = [(number, node) for number, nodes in enumerate(sub_topologies) for node in nodes]
    return [
        Link(written_in, sink.name, read_in, source.name)
        for read_in, source in numbered
        for written_in, sink in numbered
        if isinstance(source, Source) and isinstance(sink, Sink)
        if sink.topic in source.topics and sink.internal == source.internal
    ]


def _in_flow_order(count: int, links: Sequence[Link]) -> list[int]:
    """Put each sub-topology after those whose topics it reads, as far as there is no cycle."""
    order: list[int] = []
    while left := [number for number in range(count) if number not in order]:
        waiting = {link.read_in for link in links if link.written_in in left and link.read_in != link.written_in}
        order.append(next((number for number in left if number not in waiting), left[0]))
    return order
