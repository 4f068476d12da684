"""What a test reads off a picture of a topology: its shapes, its texts, and whether they are in each other's way."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any
from xml.etree import ElementTree

from matplotlib.font_manager import FontProperties, findfont
from matplotlib.ft2font import FT2Font

SVG = "{http://www.w3.org/2000/svg}"


@dataclass
class Shape:
    """Where a node, store or box is drawn."""

    name: str
    left: float
    top: float
    right: float
    bottom: float

    def touches(self, other: "Shape") -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def holds(self, other: "Shape") -> bool:
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.top <= other.top
            and other.bottom <= self.bottom
        )


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def shapes(svg: str) -> list[Shape]:
    """Return the outlines of all nodes and stores."""
    found = []
    for group in parsed(svg).iter(f"{SVG}g"):
        name = (group.findtext(f"{SVG}title") or "").split(":")[0]
        for rect in group.iter(f"{SVG}rect"):
            x, y, width, height = (float(rect.attrib[key]) for key in ("x", "y", "width", "height"))
            found.append(Shape(name, x, y, x + width, y + height))
        for path in group.iter(f"{SVG}path"):
            if path.get("fill") != "none":
                found.append(outline(name, path.attrib["d"]))
    return found


def outline(name: str, path: str) -> Shape:
    """Return the corners of a pipe or a drum, from how its path begins: M x y, then H and an arc, or an arc and v."""
    x, y = (float(number) for number in re.findall(r"-?[\d.]+", path)[:2])
    if pipe := re.match(r"M\S+ \S+?H(\S+?)a(\S+) (\S+) 0 0 1 0 (\S+?)H", path):
        return Shape(name, x - float(pipe[2]), y, float(pipe[1]) + float(pipe[2]), y + float(pipe[4]))
    drum = re.match(r"M\S+ \S+?a\S+ (\S+) 0 0 1 (\S+) 0v(\S+?)a", path)
    assert drum is not None, path
    rim = float(drum[1])
    return Shape(name, x, y - rim, x + float(drum[2]), y + float(drum[3]) + rim)


def centres(svg: str) -> dict[str, tuple[float, float]]:
    """Return the middle of each node (a store comes before its node)."""
    return {shape.name: ((shape.left + shape.right) / 2, (shape.top + shape.bottom) / 2) for shape in shapes(svg)}


def words_on(svg: str) -> str:
    return " ".join(text.text or "" for text in parsed(svg).iter(f"{SVG}text"))


def written(svg: str) -> Iterator[tuple[str, Shape]]:
    """Return each text of the nodes and stores as (node, where it is), measured in DejaVu, wider than most fonts."""
    for group in parsed(svg).iter(f"{SVG}g"):
        node = (group.findtext(f"{SVG}title") or "").split(":")[0]
        for text in group.iter(f"{SVG}text"):
            yield node, measured(text)


def measured(text: ElementTree.Element) -> Shape:
    """Return the room of a text that is centred, or begins at its x."""
    words, size = text.text or "", float(text.attrib["font-size"])
    mono = "monospace" in text.get("font-family", "")
    width = size * em(words, "DejaVu Sans Mono" if mono else "DejaVu Sans", text.get("font-weight") == "600")
    x, y = float(text.attrib["x"]), float(text.attrib["y"])
    left = x if text.get("text-anchor") == "start" else x - width / 2
    return Shape(words, left, y - 0.75 * size, left + width, y + 0.2 * size)


def em(words: str, family: str, bold: bool) -> float:
    """Return how wide a text is, in ems."""
    font = _font(family, bold)
    font.set_size(100, 72)
    font.set_text(words)
    return font.get_width_height()[0] / 64 / 100


@cache
def _font(family: str, bold: bool) -> Any:
    return FT2Font(findfont(FontProperties(family=family, weight="bold" if bold else "normal")))


def collisions(svg: str) -> list[tuple[Shape, Shape]]:
    """Return the pairs of shapes that touch, and the shapes that leave the picture."""
    drawn = shapes(svg)
    picture = Shape("the picture", 0, 0, float(parsed(svg).attrib["width"]), float(parsed(svg).attrib["height"]))
    outside = [(shape, picture) for shape in drawn if not picture.holds(shape)]
    return outside + [(one, two) for one, two in combinations(drawn, 2) if one.touches(two)]


def overflows(svg: str) -> list[tuple[str, Shape]]:
    """Return the texts that are in no shape of their node."""
    drawn = shapes(svg)
    found = [(node, text) for node, text in written(svg)
             if not any(shape.holds(text) for shape in drawn if shape.name == node)]  # fmt: skip
    titles = [measured(text) for text in parsed(svg).findall(f"{SVG}text")]
    frames = [
        Shape("frame", x, y, x + width, y + height)
        for rect in parsed(svg).findall(f"{SVG}rect")
        for x, y, width, height in [[float(rect.attrib[key]) for key in ("x", "y", "width", "height")]]
    ]
    return found + [("frame", title) for title in titles if not any(frame.holds(title) for frame in frames)]
