"""`KeptPage`: the plain page that a saved notebook shows where nobody can see the live widget."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from IPython.display import DisplayHandle, display

KEEP_EVERY = 10.0
"""How often the page that a saved notebook shows is brought up to date, in seconds."""


class KeptPage:
    """A separate output after that of a live widget, updated now and then.

    JupyterLab shows "model not found" for a widget whose kernel is gone, whatever else its output has, and VS Code
    also shows an error. So the page is a separate output, and its style hides whichever of the two is not wanted.

    Args:
        write: returns the page as it is now, by type: text and HTML.
    """

    def __init__(self, write: Callable[[], dict[str, str]]) -> None:
        self._write = write
        self._handle: DisplayHandle | None = None
        self._written_at = 0.0

    def display(self, live: Mapping[str, Any]) -> None:
        """Display a live widget, as its bundle says, and the page after it."""
        display({kind: data for kind, data in live.items() if kind != "text/plain"}, raw=True)
        shown = self._handle.display_id if self._handle else True  # the same in each cell: all are kept up to date
        self._handle = display(self._write(), raw=True, display_id=shown)
        self._written_at = time.monotonic()

    def keep(self, at_once: bool) -> None:
        """Bring the page up to date: at once, or if it is some seconds old."""
        if self._handle and (at_once or time.monotonic() - self._written_at > KEEP_EVERY):
            self._written_at = time.monotonic()
            self._handle.update(self._write(), raw=True)
