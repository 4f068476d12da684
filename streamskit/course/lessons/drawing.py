"""`Drawing`: a picture of a mechanism, made by code from a lesson's own records, with a description in words.

A drawing has its own paper, light or dark as the page is that shows it (or as the reader's system is, where a page
doesn't say), so that it can be read anywhere. Colour never says anything alone: each thing is labelled.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple, Self

from streamskit.common import svg
from streamskit.common.errors import StreamsKitError
from streamskit.common.themes import follows_the_page
from streamskit.topology.drawing.shapes import MONO, SANS

Point = tuple[float, float]


class Look(NamedTuple):
    """A fill and an edge, on light paper and on dark."""

    fill: str
    edge: str
    dark_fill: str
    dark_edge: str


LOOKS = {
    "paper": Look("#ffffff", "#cbd5e1", "#0f172a", "#475569"),
    "plain": Look("#ffffff", "#64748b", "#1e293b", "#94a3b8"),
    "frame": Look("#f1f5f9", "#94a3b8", "#1e293b", "#64748b"),
    "blue": Look("#dbeafe", "#1d4ed8", "#1e3a8a", "#93c5fd"),
    "orange": Look("#ffedd5", "#c2410c", "#7c2d12", "#fdba74"),
    "green": Look("#dcfce7", "#15803d", "#14532d", "#86efac"),
    "violet": Look("#f3e8ff", "#7e22ce", "#581c87", "#d8b4fe"),
    "red": Look("#fee2e2", "#b91c1c", "#7f1d1d", "#fca5a5"),
    "grey": Look("#e2e8f0", "#64748b", "#334155", "#94a3b8"),
}
"""By name; "grey" is for what is gone, closed or idle, "red" for what is lost or wrong."""

KEY_LOOKS = ("blue", "orange", "green", "violet")

INKS = {"ink": ("#0f172a", "#f8fafc"), "quiet": ("#475569", "#cbd5e1"), "warn": ("#b91c1c", "#fca5a5")}

CELL_HEIGHT = 26

KIND = "streamskit-drawing"
"""The class of a drawing's image."""


def key_look(key: Any, keys: Iterable[Any]) -> str:
    """Return the look of a key: the same wherever the drawing shows it; a key that is a colour has this colour.

    >>> key_look("watch", ["tv", "watch"]), key_look("red", ["blue", "red"])
    ('orange', 'red')
    """
    if key in LOOKS:
        return str(key)
    known = list(dict.fromkeys(keys))
    return KEY_LOOKS[known.index(key) % len(KEY_LOOKS)] if key in known else "plain"


def refuse_beyond(least: int, most: int, **counts: int) -> None:
    """Refuse numbers of things that a drawing has no room for.

    Raises:
        ValueError: one is not a whole number in this range.

    >>> refuse_beyond(1, 5, brokers=6)
    Traceback (most recent call last):
    ValueError: brokers=6: this drawing has room for 1 to 5 of them.
    """
    for name, count in counts.items():
        if not isinstance(count, int) or not least <= count <= most:
            raise ValueError(f"{name}={count!r}: this drawing has room for {least} to {most} of them.")


class Drawing:
    """A picture to which boxes, logs, stores, arrows and words are added one after the other.

    Args:
        title: what it shows, over the picture.
        alt: the whole picture in words, for readers who cannot see it.
        width: in pixels; a notebook page has about 760.
        height: in pixels.

    Raises:
        StreamsKitError: there are no words.

    >>> drawing = Drawing("A topic", "Two records with the key tv.", width=300, height=120)
    >>> end = drawing.log(90, 50, "partition 0", [("tv", "tv 1"), ("tv", "tv 2")], keys=["tv"])
    >>> drawing.svg().startswith("<svg")
    True
    """

    def __init__(self, title: str, alt: str, width: float = 760, height: float = 240) -> None:
        if len(alt.split()) < 3:
            raise StreamsKitError(
                f"The drawing '{title}' needs words for those who cannot see it: say in alt= what it shows."
            )
        self.title, self.alt, self.width, self.height = title, " ".join(alt.split()), width, height
        self._parts: list[str] = []

    # ---- what there is to draw ---------------------------------------------------------------------------------------

    def box(
        self, x: float, y: float, width: float, height: float, *lines: str, look: str = "plain", dashed: bool = False
    ) -> Self:
        """Draw a box with lines of text in its middle, the first one bold."""
        dashes: dict[str, str | float] = {"stroke_dasharray": "5 3"} if dashed else {}
        self._parts.append(svg.rect(x, y, width, height, rx=6, **_paint(look), **dashes))
        return self._centred(x + width / 2, y + height / 2, lines)

    def frame(self, x: float, y: float, width: float, height: float, title: str, look: str = "frame") -> Self:
        """Draw a frame around what belongs together, such as an instance or a task, with its name at the top."""
        self._parts.append(svg.rect(x, y, width, height, rx=9, **_paint(look)))
        return self.write(x + 8, y + 15, title, size=11, bold=True)

    def drum(self, x: float, y: float, width: float, height: float, *lines: str, look: str = "orange") -> Self:
        """Draw a state store with lines of text in it, the first one bold."""
        rim = 5
        arc = ("a", width / 2, rim, 0, 0, 1)
        body = ("M", x, y + rim, *arc, width, 0, "v", height - 2 * rim, *arc, -width, 0, "z")
        self._parts.append(svg.path(*body, "M", x + width, y + rim, *arc, -width, 0, **_paint(look)))
        return self._centred(x + width / 2, y + height / 2 + rim / 2, lines)

    def log(
        self, x: float, y: float, name: str, records: Sequence[tuple[Any, str] | None], *, keys: Sequence[Any] = (),
        first: int = 0, cell: float = 62, faded: int = 0, offsets: bool = True,
    ) -> float:  # fmt: skip
        """Draw a partition: a row of records from left to right, their offsets above, and its name before them.

        Args:
            x: where the first record begins; the name is left of it.
            y: the upper edge of the records.
            name: of the partition or topic.
            records: key and text of each; None in place of a record is a gap, where a record was removed.
            keys: all keys of the drawing, so that a key looks the same everywhere.
            first: the first offset.
            cell: how wide a record is.
            faded: how many records at the beginning are grey, because they are deleted.
            offsets: whether to write the offsets.

        Returns:
            the x at which the next record would begin.
        """
        self.write(x - 8, y + 17, name, size=11, anchor="end", bold=True)
        for place, record in enumerate(records):
            left = x + place * cell
            if offsets:
                self.write(left + cell / 2, y - 4, f"{first + place}", size=9, anchor="middle", ink="quiet")
            if record is not None:
                look = "grey" if place < faded else key_look(record[0], keys or [each[0] for each in records if each])
                self._parts.append(svg.rect(left, y, cell, CELL_HEIGHT, **_paint(look)))
                self.write(left + cell / 2, y + 17, record[1], size=10.5, anchor="middle")
            else:
                self._parts.append(svg.rect(left, y, cell, CELL_HEIGHT, stroke_dasharray="3 3", **_paint("paper")))
        return x + len(records) * cell

    def rows(
        self,
        x: float,
        y: float,
        head: str,
        rows: Sequence[tuple[Any, str]],
        *,
        keys: Sequence[Any] = (),
        width: float = 120,
    ) -> float:
        """Draw a table: a head, and a row for each key; return the y beneath it."""
        self.write(x, y - 5, head, size=11, bold=True)
        for place, (key, words) in enumerate(rows):
            top = y + place * 22
            self._parts.append(svg.rect(x, top, width, 22, **_paint(key_look(key, keys or [each for each, _ in rows]))))
            self.write(x + width / 2, top + 15, words, size=10.5, anchor="middle")
        return y + 22 * len(rows)

    def arrow(
        self, start: Point, end: Point, words: str = "", *, dashed: bool = False, ink: str = "quiet", bend: float = 0
    ) -> Self:
        """Draw an arrow with words at its middle.

        Args:
            start: where it begins.
            end: where its tip is.
            words: the text above its middle.
            dashed: whether its line is dashed.
            ink: "ink", "quiet" or "warn".
            bend: how far its middle swings to the side, in pixels.
        """
        (x1, y1), (x2, y2) = start, end
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5 or 1
        across = (-(y2 - y1) / length, (x2 - x1) / length)
        control = ((x1 + x2) / 2 + 2 * bend * across[0], (y1 + y2) / 2 + 2 * bend * across[1])
        along = (x2 - control[0], y2 - control[1])
        size = (along[0] ** 2 + along[1] ** 2) ** 0.5 or 1
        ux, uy = along[0] / size, along[1] / size
        corners = [(x2, y2), (x2 - 8 * ux + 4 * uy, y2 - 8 * uy - 4 * ux), (x2 - 8 * ux - 4 * uy, y2 - 8 * uy + 4 * ux)]
        light, _ = INKS[ink]
        dashes: dict[str, str | float] = {"stroke_dasharray": "5 3"} if dashed else {}
        way = ("M", x1, y1, "Q", *control, x2 - 6 * ux, y2 - 6 * uy)
        self._parts.append(svg.path(*way, fill="none", stroke=light, stroke_width=1.5, class_=f"s-{ink}", **dashes))
        points = " ".join(f"{svg.number(x)},{svg.number(y)}" for x, y in corners)
        self._parts.append(svg.element("polygon", points=points, fill=light, class_=f"f-{ink}"))
        middle = ((x1 + x2) / 2 + bend * across[0], (y1 + y2) / 2 + bend * across[1])
        return self.write(middle[0], middle[1] - 5, words, size=10, anchor="middle", ink=ink) if words else self

    def line(self, start: Point, end: Point, *, dashed: bool = False, ink: str = "quiet", width: float = 1.2) -> Self:
        """Draw a straight line without a tip."""
        dashes: dict[str, str | float] = {"stroke_dasharray": "4 3"} if dashed else {}
        way = ("M", *start, "L", *end)
        look = svg.path(*way, fill="none", stroke=INKS[ink][0], stroke_width=width, class_=f"s-{ink}", **dashes)
        self._parts.append(look)
        return self

    def write(
        self, x: float, y: float, *lines: str, size: float = 11, anchor: str = "start", bold: bool = False,
        ink: str = "ink", mono: bool = False,
    ) -> Self:  # fmt: skip
        """Write lines of text, the first with its baseline at `y`."""
        look: dict[str, str | float] = {"font_size": size, "fill": INKS[ink][0], "class_": f"f-{ink}"}
        look |= {"font_weight": "600"} if bold else {}
        look |= {"font_family": MONO} if mono else {}
        for place, words in enumerate(lines):
            self._parts.append(svg.text(x, y + place * size * 1.3, words, anchor, **look))
        return self

    # ---- the result --------------------------------------------------------------------------------------------------

    def svg(self) -> str:
        """Return the picture as a self-contained SVG."""
        paper = svg.rect(0.5, 0.5, self.width - 1, self.height - 1, rx=8, **_paint("paper"))
        title = svg.text(14, 22, self.title, font_size=13, font_weight="600", fill=INKS["ink"][0], class_="f-ink")
        head = [svg.element("title", escape(self.title)), svg.element("desc", escape(self.alt)), _STYLE]
        look = {"style": "max-width:100%;height:auto", "font_family": SANS}
        drawn = "\n".join([*head, paper, title, *self._parts])
        return svg.document(self.width, self.height, [drawn], **look)

    def _repr_html_(self) -> str:
        return svg.as_image(self.svg(), self.alt, KIND) + f"<style>{follows_the_page('.' + KIND)}</style>"

    def __repr__(self) -> str:
        return f"<Drawing: {self.title}>"

    def _centred(self, x: float, y: float, lines: Sequence[str]) -> Self:
        top = y - (len(lines) - 1) * 7 + 4
        for place, words in enumerate(lines):
            self.write(x, top + place * 14, words, anchor="middle", bold=place == 0, size=11 if place == 0 else 10)
        return self


def _paint(look: str) -> dict[str, str | float]:
    fill, edge, *_ = LOOKS[look]
    return {"fill": fill, "stroke": edge, "stroke_width": 1.2, "class_": f"l-{look}"}


def _dark() -> str:
    looks = "".join(f".l-{name}{{fill:{look.dark_fill};stroke:{look.dark_edge}}}" for name, look in LOOKS.items())
    inks = "".join(f".f-{name}{{fill:{dark}}}.s-{name}{{stroke:{dark}}}" for name, (_, dark) in INKS.items())
    return f"<style>@media (prefers-color-scheme:dark){{{looks}{inks}}}</style>"


_STYLE = _dark()
"""What differs on dark paper; viewers that ignore it show the light paper."""
