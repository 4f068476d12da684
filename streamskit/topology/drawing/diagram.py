"""A topology as a picture: a self-contained SVG, for notebooks and static pages."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise

from streamskit.common.svg import as_image, document, element, group, number, rect
from streamskit.topology.description import is_global
from streamskit.topology.drawing import shapes
from streamskit.topology.drawing.labels import in_words, tooltip
from streamskit.topology.drawing.layout import Point
from streamskit.topology.drawing.placing import ACROSS, ALONG, HEADER, MARGIN, PAD, Box, Link, Places
from streamskit.topology.drawing.shapes import Card, Engine
from streamskit.topology.nodes import Node

WIDEST = 1040
"""The width of a notebook page in pixels; a picture that would be wider flows downwards instead."""

LINK = "#3b82f6"
"""Visible on both a white and a black page, because links run outside the boxes."""

Steps = list[str | float]


def draw(
    sub_topologies: Iterable[Sequence[Node]],
    notes: Mapping[str, str] | None = None,
    failed: Collection[str] = (),
    engines: Mapping[str, Engine] | None = None,
) -> str:
    """Return a topology as an SVG picture.

    Args:
        sub_topologies: the nodes of each, as `Topology.sub_topologies()` returns them.
        notes: a few words to write at nodes, by the nodes' names, such as "900 records/s".
        failed: the names of nodes to mark as failed.
        engines: what runs each node, by the node's name; the picture then has a legend.

    >>> draw(topology.sub_topologies(), notes={"KSTREAM-FILTER-0000000001": "900 records/s"})
    '<svg ...'
    """
    groups = list(sub_topologies)
    across, down = Places(groups, down=False), Places(groups, down=True)
    places = across if across.width <= max(WIDEST, down.width) else down
    count = "1 sub-topology" if len(groups) == 1 else f"{len(groups)} sub-topologies"
    head = [element("title", f"Topology of {count}"), element("desc", escape(in_words(groups)))]
    drawing = [*head, *_Pen(places, notes or {}, failed, engines or {}).drawing()]
    width, height = places.width, places.height
    if engines:
        drawing.append(shapes.legend(MARGIN, height, engines.values()))
        width, height = max(width, 2 * MARGIN + shapes.LEGEND_WIDTH), height + shapes.LEGEND_HEIGHT + MARGIN
    look = {"style": "max-width:100%;height:auto", "font_family": shapes.SANS}
    return document(width, height, ["\n".join(["", *drawing, ""])], **look)


def as_html(
    sub_topologies: Iterable[Sequence[Node]],
    notes: Mapping[str, str] | None = None,
    failed: Collection[str] = (),
    engines: Mapping[str, Engine] | None = None,
    words: str = "",
) -> str:
    """Return the picture as an HTML image, with the topology and more `words` for those who cannot see it."""
    groups = list(sub_topologies)
    return as_image(draw(groups, notes, failed, engines), " ".join(filter(None, (in_words(groups), words))))


class _Pen:
    """Draws what has been placed."""

    def __init__(
        self, places: Places, notes: Mapping[str, str], failed: Collection[str], engines: Mapping[str, Engine]
    ) -> None:
        self._places, self._notes, self._failed, self._engines = places, notes, failed, engines

    def drawing(self) -> Iterator[str]:
        """Draw boxes first, then links and arrows, then nodes, so that each covers what is behind it."""
        places = self._places
        yield from map(self._frame, places.boxes)
        yield from (self._link(link) for links in places.lanes.values() for link in links)
        for box in places.boxes:
            for name, card in box.cards.items():
                yield from (self._arrow(box, parent, name) for parent in dict.fromkeys(card.node.parents))
            yield from (self._node(card, box.centre(name)) for name, card in box.cards.items())

    def _frame(self, box: Box) -> str:
        x, y = self._places.at((box.along, box.across))
        width, height = self._places.at((box.layout.along, box.layout.across))
        title = f"Sub-topology {box.number}"
        if is_global(card.node for card in box.cards.values()):
            title += ", whole in every instance"
        written = shapes.text([title], x - 2, y - HEADER + (12 if self._notes else 16), 10.5, bold=True, anchor="start")
        size = (width + 2 * PAD, height + HEADER + PAD)
        return rect(x - PAD, y - HEADER, *size, rx=9, fill="#f1f5f9", stroke="#cbd5e1") + written

    def _arrow(self, box: Box, parent: str, child: str) -> str:
        points = self._places.arrow(box, parent, child)
        way: Steps = ["M", *self._flat(points[0])]
        for piece, ((start, row), (end, next_row)) in enumerate(pairwise(points)):
            # Every other piece is the way through a layer, straight; those between swing to the next row.
            if piece % 2 or row == next_row:
                way += ["L", *self._flat((end, next_row))]
            else:
                middle = (start + end) / 2
                way += ["C", *self._flat((middle, row), (middle, next_row), (end, next_row))]
        return shapes.line(way, shapes.QUIET) + self._head(points[-1], shapes.QUIET)

    def _link(self, link: Link) -> str:
        first, *others = self._places.way(link)
        way: Steps = ["M", *self._flat(first)]
        for corner in others:
            way += ["L", *self._flat(corner)]
        return shapes.line(way, LINK, dashed=True) + self._head(others[-1], LINK)

    def _head(self, tip: Point, colour: str) -> str:
        along, across = tip
        corners = self._flat(tip, (along - 7, across - 3.5), (along - 7, across + 3.5))
        return element("polygon", points=" ".join(map(number, corners)), fill=colour)

    def _flat(self, *points: Point) -> list[float]:
        """Return the coordinates of points of the flow, one after the other."""
        return [each for point in points for each in self._places.at(point)]

    def _node(self, card: Card, centre: Point) -> str:
        x, y = self._places.at(centre)
        width, height = self._places.card_width, self._places.card_height
        failed, engine = card.node.name in self._failed, self._engines.get(card.node.name)
        draw_body = shapes.pipe if card.node.topic_names else shapes.operator
        return group(
            tooltip(card.node, self._places.nodes),
            *self._stores(card, x, y),
            draw_body(x - width / 2, y - height / 2, width, height, bool(card.stores), failed, engine),
            shapes.label(card, x, y),
            *self._said(card.node.name, x, y - height / 2 - 5),
        )

    def _stores(self, card: Card, x: float, y: float) -> Iterator[str]:
        """Draw the stores of a node: beneath it, or beside it where the flow goes down."""
        half, gap = self._places.card_width / 2, shapes.DRUM_GAP
        top = y + self._places.card_height / 2 + gap
        if self._places.down:
            x, top = x + 2 * half + gap, y - card.stores_height / 2 + gap / 2
        for store in card.stores:
            height = shapes.drum_height(store)
            beside: Steps = ["M", x - half - gap, y, "h", gap / 2, "V", top + height / 2, "H", x - half + 4]
            stub: Steps = beside if self._places.down else ["M", x, top - gap, "v", gap]
            yield shapes.line(stub, shapes.STORE[1])
            yield shapes.drum(x - half + 4, top, 2 * half - 8, store)
            top += height + gap

    def _said(self, name: str, x: float, y: float) -> Iterator[str]:
        """Write a node's failure and note above it, or beside the arrow where the flow goes down.

        They stay clear of those of the next node, however long they become: nothing moves when a note comes.
        """
        failed, note = "✕ failed" if name in self._failed else "", self._notes.get(name, "")
        colour = shapes.RED if failed else shapes.QUIET
        if not self._places.down:
            whole = " · ".join(filter(None, (failed, note)))
            room = self._places.card_width + ALONG - 4
            yield shapes.text([whole], x, y, 10, colour, bold=bool(failed), room=room) if whole else ""
            return
        yield shapes.text([failed], x - 7, y, 10, colour, bold=True, anchor="end") if failed else ""
        room = self._places.card_width / 2 + ACROSS / 2 - 9
        yield shapes.text([note], x + 7, y, 10, shapes.QUIET, anchor="start", room=room) if note else ""
