"""SVG as text: elements with their numbers and escaping, for the picture of a topology and the charts of views."""

import re
from base64 import b64encode
from collections.abc import Iterable
from html import escape

_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""What XML has no place for: control characters, halves of surrogate pairs, and what is no character."""


def number(value: float) -> str:
    """Write a coordinate or a length with at most one decimal.

    >>> number(12.0), number(3.14159)
    ('12', '3.1')
    """
    return f"{round(value, 1):g}"


def element(tag: str, *content: str, **attributes: str | float) -> str:
    """Write an element.

    Args:
        tag: its name.
        content: its content as markup, already escaped.
        attributes: numbers, written by `number`, and text, escaped here; `_` in a name stands for `-`, and `class_`
            for `class`.

    >>> element("text", "a &lt; b", x=1.25, font_size=11)
    '<text x="1.2" font-size="11">a &lt; b</text>'
    >>> element("rect", class_="dark")
    '<rect class="dark"/>'
    """
    look = "".join(f' {name.rstrip("_").replace("_", "-")}="{_attribute(value)}"' for name, value in attributes.items())
    return f"<{tag}{look}>{''.join(content)}</{tag}>" if content else f"<{tag}{look}/>"


def text(x: float, y: float, words: str, anchor: str = "start", **look: str | float) -> str:
    """Write words whose start, middle or end (`anchor`) is at a point on their baseline."""
    return element("text", escape(words), x=x, y=y, text_anchor=anchor, **look)


def rect(x: float, y: float, width: float, height: float, **look: str | float) -> str:
    """Draw a rectangle, by its upper left corner."""
    return element("rect", x=x, y=y, width=width, height=height, **look)


def steps(*parts: str | float) -> str:
    """Write the steps of a path: letters, with numbers between them.

    >>> steps("M", 0, 1.25, "H", 10)
    'M0 1.2H10'
    """
    written = "".join(f"{part}" if isinstance(part, str) else f" {number(part)}" for part in parts)
    return re.sub(r"(?<=[A-Za-z]) ", "", written)


def path(*parts: str | float, **look: str | float) -> str:
    """Draw a path, given its steps."""
    return element("path", d=steps(*parts), **look)


def group(tooltip: str, *content: str, **look: str | float) -> str:
    """Put elements together; the tooltip can be read by pointing at them."""
    return element("g", element("title", escape(tooltip)), *content, **look)


def at(x: float, y: float) -> str:
    """Return the transformation that moves what is drawn around 0 to a point."""
    return f"translate({number(x)} {number(y)})"


def printable(markup: str) -> str:
    r"""Return HTML or SVG with a sign in place of each character that neither a browser nor XML takes.

    >>> printable("a\x1bb, \ud83d"), printable("Zürich")
    ('a␛b, �', 'Zürich')
    """
    return _UNPRINTABLE.sub(
        lambda found: chr(0x2400 + ord(found[0])) if found[0] < " " else "\N{REPLACEMENT CHARACTER}", markup
    )


def document(width: float, height: float, content: Iterable[str], **look: str | float) -> str:
    """Return a standalone picture of so many pixels; its content begins with a title."""
    box = f"0 0 {number(width)} {number(height)}"
    return element("svg", *content, xmlns="http://www.w3.org/2000/svg", role="img", width=width, height=height,
                   viewBox=box, **look)  # fmt: skip


def as_image(svg: str, words: str, kind: str = "") -> str:
    """Return a picture as an HTML image that fits its page, and the same in words for those who cannot see it.

    Pages that clean a stranger's HTML, such as GitHub's or an untrusted notebook, let images pass and take SVGs apart.

    Args:
        svg: the picture, which stands by itself.
        words: what it shows.
        kind: the class of the image, for a page's style.
    """
    data = b64encode(printable(svg).encode()).decode()
    named = f' class="{kind}"' if kind else ""
    return (
        f'<img alt="{escape(printable(words))}"{named} style="max-width:100%" src="data:image/svg+xml;base64,{data}">'
    )


def _attribute(value: str | float) -> str:
    return escape(value, quote=False).replace('"', "&quot;") if isinstance(value, str) else number(value)
