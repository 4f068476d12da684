"""`fold("title", thing)`: something long, or an answer, behind a line that opens when it is clicked.

It is plain HTML (`<details>`), so that it works in JupyterLab, in VS Code, on GitHub and on a static page alike.
"""

from base64 import b64encode
from dataclasses import dataclass
from html import escape
from io import BytesIO
from typing import Any

from streamskit.common.errors import StreamsKitError

FRAME = "border:1px solid #8b95a5;border-radius:6px;margin:4px 0;padding:6px 12px;overflow-x:auto"
"""A thin grey frame, which can be seen on a white page and on a black one; colours of text are those of the page."""

TEXT = "overflow-x:auto;white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere"
"""Text breaks between words; JupyterLab breaks a `pre` wherever the window ends, in the middle of a word, too."""


@dataclass(frozen=True)
class Folded:
    """A line to click, and what it opens.

    Args:
        title: the line.
        html: what it opens, as markup.
        text: the same where no markup can be shown.
        is_open: whether it is open at first.
    """

    title: str
    html: str
    text: str
    is_open: bool = False

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        opened = " open" if self.is_open else ""
        summary = f'<summary style="cursor:pointer"><b>{escape(self.title)}</b></summary>'
        html = f'<details{opened} style="{FRAME}">{summary}{self.html}</details>'
        return {"text/html": html, "text/plain": f"{self.title}\n{self.text}" if self.is_open else f"[{self.title}]"}


def fold(title: str, *things: Any, alt: str = "") -> Folded:
    """Fold away what is long or would reveal an answer.

    Args:
        title: the line that stays visible and opens the rest.
        things: what it opens, one below the other: text, a table, a drawing, a figure, or any value.
        alt: a figure in words, where it does not bring its own.

    Raises:
        StreamsKitError: there is a figure, and nothing says what it shows.

    >>> fold("What Spark runs", "Project [key, value]")._repr_mimebundle_()["text/plain"]
    '[What Spark runs]'
    """
    text = "\n".join(str(thing) for thing in things)
    return Folded(title, "".join(markup(thing, alt) for thing in things), text)


@dataclass(frozen=True)
class Described:
    """A figure as an image with its content in words, which a figure alone does not have in a notebook."""

    html: str
    alt: str

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": self.alt}


def described(figure: Any, alt: str = "") -> Described:
    """Show a figure with words for readers who cannot see it.

    Args:
        figure: of matplotlib; those of `windows_timeline` and its like bring their words along.
        alt: what it shows, with the values that matter.

    Raises:
        StreamsKitError: there are no words.

    >>> described(figure, "two tv orders in one window")  # doctest: +SKIP
    """
    return Described(_figure(figure, alt), alt or str(figure.get_label()))


def markup(thing: Any, alt: str = "") -> str:
    """Return a thing as HTML: its own where it has one, else its text as it is.

    Raises:
        StreamsKitError: it is a figure, and `alt` does not say what it shows.

    >>> markup([1, 2])
    '<pre style="overflow-x:auto;white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere">[1, 2]</pre>'
    """
    if hasattr(thing, "savefig"):
        return _figure(thing, alt)
    bundle = getattr(thing, "_repr_mimebundle_", None)
    if bundle is not None and "text/html" in (found := bundle() or {}):
        return str(found["text/html"])
    if hasattr(thing, "_repr_html_"):
        return str(thing._repr_html_())
    return f'<pre style="{TEXT}">{escape(thing if isinstance(thing, str) else repr(thing))}</pre>'


def _figure(figure: Any, alt: str) -> str:
    alt = alt or str(figure.get_label())
    if not alt:
        raise StreamsKitError("A figure needs its content in words, too: pass alt='...' for those who cannot see it.")
    file = BytesIO()
    # Without a date and a version the same picture is the same bytes.
    figure.savefig(file, format="png", dpi=80, metadata={"Software": None})
    data = b64encode(file.getvalue()).decode()
    return f'<img alt="{escape(alt)}" style="max-width:100%" src="data:image/png;base64,{data}">'
