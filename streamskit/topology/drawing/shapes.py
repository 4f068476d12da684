"""What a topology's picture is made of: pipes for topics, boxes for operators, drums for stores, and text."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from html import escape
from typing import NamedTuple

from streamskit.api.windows import AnyWindows, JoinWindows, SessionWindows, SlidingWindows, UnlimitedWindows
from streamskit.common.durations import spell
from streamskit.common.svg import element, path, rect
from streamskit.state.stores import Store
from streamskit.topology.drawing.labels import looked_up, store_kind
from streamskit.topology.nodes import Node

Lines = Sequence[str]
Look = dict[str, str | float]

TITLE, SMALL, MONO_WIDTH = 12.0, 9.0, 0.605
LONGEST_TOPIC = 18
RIM, DRUM_GAP = 6, 6

INK, QUIET, RED = "#0f172a", "#475569", "#b91c1c"
OPERATOR, TOPIC, STORE = ("#ffffff", "#64748b"), ("#dbeafe", "#1d4ed8"), ("#ffedd5", "#c2410c")
FAILED = ("#fee2e2", RED)
ELSEWHERE: Look = {"fill": "#ffffff", "stroke": STORE[1], "stroke_width": 1, "stroke_dasharray": "3 2"}
"""The look of a store that another node keeps."""


class Engine(Enum):
    """What runs a node, with the words of the legend."""

    SPARK = "Spark: compiled, many records at once"
    PYTHON = "Python: record by record"


ENGINES = {Engine.SPARK: ("#dcfce7", "#15803d"), Engine.PYTHON: ("#f3e8ff", "#7e22ce")}
"""Fill and edge. What Python runs also has a second edge, and each node's note names its engine."""

LEGEND_WIDTH, LEGEND_HEIGHT = 470, 30

SANS = "system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif"
MONO = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"


class Drum(NamedTuple):
    """What is written on a store: its name and its kind; one that other nodes keep is only outlined."""

    name: Lines
    kind: Lines
    is_kept: bool = True


@dataclass(frozen=True)
class Card:
    """What is written on a node: the word a user knows it by, Kafka's name for it, and its stores."""

    node: Node
    words: Lines
    name: Lines
    stores: Sequence[Drum]

    @property
    def width(self) -> float:
        widths = [TITLE * width_of(line) for line in self.words]
        widths += [SMALL * MONO_WIDTH * len(line) for line in self.name]
        widths += [SMALL * width_of(line) for store in self.stores for line in (*store.name, *store.kind)]
        return max(widths) + (28 if self.node.topic_names else 16)

    @property
    def height(self) -> float:
        return 14 + 14 * len(self.words) + 11 * len(self.name)

    @property
    def stores_height(self) -> float:
        return sum(DRUM_GAP + drum_height(store) for store in self.stores)


def card(node: Node, nodes: Mapping[str, Node], shared: Collection[str], longest_name: int) -> Card:
    """Return what to write on a node.

    Args:
        node: the node.
        nodes: all nodes of the topology by name, where it may look into stores.
        shared: the names of the stores that several nodes keep.
        longest_name: how many letters of a name fit on a line.
    """
    kept = [Drum(wrapped(store.name, longest_name), _kind(node, store, store.name in shared)) for store in node.stores]
    read = [Drum(wrapped(name, longest_name), ["looked into"], is_kept=False) for name in looked_up(node, nodes)]
    return Card(node, _words(node), wrapped(node.name, longest_name), [*kept, *read])


def wrapped(name: str, longest: int, lines: int = 2) -> list[str]:
    """Break a name into lines, after hyphens or dots where there are; what is too long loses its middle."""
    if len(name) <= longest:
        return [name]
    if lines == 1:
        return ["…" + name[1 - longest :]]
    cut = 1 + max(name.rfind(mark, 0, longest) for mark in "-._ ")
    rest_fits = cut > 0 and len(name) - cut <= longest * (lines - 1)
    if cut < longest / 2 and not rest_fits:
        cut = longest
    return [name[:cut], *wrapped(name[cut:], longest, lines - 1)]


def width_of(words: str) -> float:
    """Return how wide a text may get, in ems, in the widest font that a browser may choose."""
    return sum(0.78 if letter.isupper() else 0.62 for letter in words)


def operator(
    x: float, y: float, width: float, height: float, stateful: bool, failed: bool, engine: Engine | None = None
) -> str:
    """Draw the box of an operator, in the colours of what runs it; else a stateful one has the edge of its stores."""
    fill, edge = (OPERATOR[0], STORE[1]) if stateful else OPERATOR
    if engine is not None:
        fill, edge = ENGINES[engine]
    box = rect(x, y, width, height, rx=7, **_paint(*(FAILED if failed else (fill, edge)), failed))
    if engine is not Engine.PYTHON or failed:
        return box
    across, down = width - 6, height - 6
    second = path("M", x + 3, y + 3, "h", across, "v", down, "h", -across, "z", fill="none", stroke=edge)
    return box + second


def legend(x: float, y: float, engines: Iterable[Engine]) -> str:
    """Explain the colours of the engines in use, in a strip that is also readable on a dark page."""
    used = set(engines)
    drawn = rect(x, y, LEGEND_WIDTH, LEGEND_HEIGHT, rx=6, fill="#f1f5f9", stroke="#cbd5e1")
    for row, engine in enumerate(each for each in Engine if each in used):
        left = x + 8 + 250 * row
        drawn += operator(left, y + 8, 24, 15, False, False, engine)
        drawn += text([engine.value], left + 31, y + 19, 10.5, INK, anchor="start")
    return drawn


def pipe(
    x: float, y: float, width: float, height: float, stateful: bool, failed: bool, engine: Engine | None = None
) -> str:
    """Draw a topic: a cylinder that lies on its side. It looks the same whatever reads or writes it."""
    left, right = x + RIM, x + width - RIM
    bulge, hollow = ("a", RIM, height / 2, 0, 0, 1, 0), ("a", RIM, height / 2, 0, 0, 0, 0)
    body = ("M", left, y, "H", right, *bulge, height, "H", left, *bulge, -height, "z")
    return path(*body, "M", right, y, *hollow, height, **_paint(*(FAILED if failed else TOPIC), failed))


def drum(x: float, y: float, width: float, store: Drum) -> str:
    """Draw a store: a standing cylinder with its name and kind."""
    top, side, arc = y + RIM - 1, drum_height(store) - 2 * (RIM - 1), ("a", width / 2, RIM - 1, 0, 0, 1)
    body = ("M", x, top, *arc, width, 0, "v", side, *arc, -width, 0, "z")
    look = _paint(*STORE, False) if store.is_kept else ELSEWHERE
    centre, first = x + width / 2, y + 21
    drawn = path(*body, "M", x + width, top, *arc, -width, 0, **look)
    name = text(store.name, centre, first, SMALL, INK, bold=True)
    return drawn + name + text(store.kind, centre, first + 11 * len(store.name), SMALL)


def drum_height(store: Drum) -> float:
    """Return how high a store is drawn."""
    return 18 + 11 * (len(store.name) + len(store.kind))


def label(card: Card, x: float, y: float) -> str:
    """Write a node's word and its name, centred on a point; on a pipe, left of its rim."""
    x -= RIM if card.node.topic_names else 0
    top = y - (14 * len(card.words) + 11 * len(card.name)) / 2
    words = text(card.words, x, top + 11, TITLE, INK, bold=True, step=14)
    return words + text(card.name, x, top + 14 * len(card.words) + 9, SMALL, mono=True)


def text(
    lines: Lines,
    x: float,
    y: float,
    size: float,
    fill: str = QUIET,
    *,
    bold: bool = False,
    mono: bool = False,
    step: float = 11,
    anchor: str = "middle",
    room: float = math.inf,
) -> str:
    """Write lines of text, the first with its baseline at `y`; what may be wider than the room is fitted into it."""
    look: Look = {"font_size": size, "fill": fill, "text_anchor": anchor}
    look |= {"font_weight": "600"} if bold else {}
    look |= {"font_family": MONO} if mono else {}
    fitted: Look = {"textLength": room, "lengthAdjust": "spacingAndGlyphs"}
    looks = [look | fitted if size * width_of(each) > room else look for each in lines]
    return "".join(element("text", escape(each), x=x, y=y + step * row, **looks[row]) for row, each in enumerate(lines))


def line(steps: Sequence[str | float], colour: str, dashed: bool = False) -> str:
    """Draw an open line."""
    dashes: Look = {"stroke_dasharray": "5 3"} if dashed else {}
    return path(*steps, fill="none", stroke=colour, stroke_width=1.3, **dashes)


def _paint(fill: str, edge: str, strong: bool) -> Look:
    return {"fill": fill, "stroke": edge, "stroke_width": 2.5 if strong else 1.2}


def _words(node: Node) -> Lines:
    names = node.topic_names
    if not names:
        return [node.label]
    lines = [line for name in names[:3] for line in wrapped(name, LONGEST_TOPIC, 3)]
    return [*lines, f"and {len(names) - 3} more"] if len(names) > 3 else lines


def _kind(node: Node, store: Store, shared: bool) -> Lines:
    lines = [store_kind(store) + (", shared" if shared else "")]
    if store.windows is not None:
        lines.append(_window_words(store.windows))
    if store.kind == "versioned" and store.retention is not None:
        lines.append(f"history of {spell(store.retention)}")
    if store.kind == "buffer":
        lines.append(node.buffered_until)
    if node.on_close:
        lines.append("results on close")
    return lines


def _window_words(windows: AnyWindows | JoinWindows) -> str:
    if isinstance(windows, SessionWindows):
        return f"sessions, gap {spell(windows.gap)}"
    if isinstance(windows, SlidingWindows):
        return f"sliding, {spell(windows.time_difference)}"
    if isinstance(windows, UnlimitedWindows):
        return "one window without an end"
    if isinstance(windows, JoinWindows):
        before, after = spell(windows.before_ms), spell(windows.after_ms)
        return f"{before} to both sides" if before == after else f"{before} back, {after} on"
    size, advance = spell(windows.size), spell(windows.advance)
    return f"{size} every {advance}" if advance != size else f"{size} windows"
