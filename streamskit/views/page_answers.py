"""`PageAnswers`: whether a page still answers. A closed one tells nobody, and the server keeps messages for it.

`UnsentHTML` is what is not sent meanwhile.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from streamskit.views.controls import close_whole

ASK_EVERY = 5.0
"""How often a page is asked, in seconds."""

SOON, WHEN_IDLE = 30.0, 600.0
"""How long a page may be silent, in seconds: if it is heard beside the cells, and if answers wait for cells to end."""


class PageAnswers(widgets.HBox):
    """A box that nobody sees. What asks is a mark in it that comes and goes: a page reports how often it shows one.

    A page that has never answered is not called silent: it may be of a kind that does not report this.

    Args:
        heard: called when a page has answered, with whether it shows the mark.
    """

    def __init__(self, heard: Callable[[bool], None]) -> None:
        self._heard = heard
        self._asked_at, self._is_marked = 0.0, False
        self._unanswered_since: float | None = None
        self._patience: float | None = None
        self._mark = _Mark(self._on_answer)
        super().__init__([], layout={"display": "none"})

    def ask(self) -> None:
        """Ask for an answer, unless the last question is only seconds old."""
        now = time.monotonic()
        if now - self._asked_at < ASK_EVERY:
            return
        self._asked_at = now
        if self._unanswered_since is None:
            self._unanswered_since = now
        self._is_marked = not self._is_marked
        self.children = (self._mark,) if self._is_marked else ()

    def ask_anew(self) -> None:
        """Ask at once, by another mark, whose count no page has brought out of step: a page speaks only for itself."""
        self.children = ()
        close_whole(self._mark)
        self._mark = _Mark(self._on_answer)
        self._asked_at, self._is_marked = 0.0, False
        self.ask()

    def wait_again(self) -> None:
        """Give the page time to answer, as if it had not been asked."""
        self._asked_at, self._unanswered_since = 0.0, None

    @property
    def all(self) -> tuple[widgets.Widget, ...]:
        """The box and the mark, whether it is in the box or not."""
        return self, self._mark

    @property
    def is_silent(self) -> bool:
        """Whether a page that answered before has not done so for long."""
        since, patience = self._unanswered_since, self._patience
        return since is not None and patience is not None and time.monotonic() - since > patience

    def close(self) -> None:
        """Close the mark, too, which is not always in the box."""
        close_whole(self._mark)
        super().close()

    def _on_answer(self) -> None:
        is_beside_the_cells = threading.current_thread() is not threading.main_thread()
        self._patience = SOON if is_beside_the_cells else WHEN_IDLE
        self._unanswered_since = None
        self._heard((self._mark._view_count or 0) > 0)


class _Mark(widgets.HTML):
    def __init__(self, answered: Callable[[], None]) -> None:
        self._answered = answered
        super().__init__()
        # 0 in place of None makes the page count its views of this widget.
        self._view_count = 0

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take in what a page says; that it says anything is the answer."""
        super().set_state(sync_data)
        self._answered()


class UnsentHTML(widgets.HTML):
    """HTML that is not sent while nobody would see it; a page that opens asks for it as it is then.

    Args:
        is_seen: whether a page shows it, as far as is known.
    """

    def __init__(self, is_seen: Callable[[], bool]) -> None:
        self._is_seen, self._is_unsent = is_seen, False
        super().__init__()

    def send_state(self, key: Any = None) -> None:
        """Send what has changed, unless nobody would see it; a page that opens asks for all, without a key."""
        self._is_unsent = key is not None and not self._is_seen()
        if not self._is_unsent:
            super().send_state(key)

    def catch_up(self) -> None:
        """Send what was not sent, now that a page shows it."""
        if self._is_unsent:
            self.send_state("value")
