"""Choosing the windows to look at: one, or those of a range of time."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import ipywidgets as widgets

from streamskit.views.live.html import moment
from streamskit.views.live.store_source import Span

ADVICE = "Choose a start from the list, or write one like 2024-01-02 09:00:05, in UTC, or in milliseconds since 1970."


class WindowPicker(widgets.HBox):
    """Two fields for when windows start: from one time to another, or only at the first; the newest if both are empty.

    Each can be chosen from the starts that were seen, or written. `trouble` says what is wrong with what was written.

    >>> picker = WindowPicker()
    >>> picker.when_chosen(view.refresh)
    """

    def __init__(self) -> None:
        self.trouble = ""
        self.span: Span | None = None
        self._first = _field("Windows", "the newest", 265, 72)
        self._last = _field("to", "only that", 210, 16)
        self._offered: list[str] = []
        super().__init__([self._first, self._last])

    def when_chosen(self, call: Callable[[], None]) -> None:
        """Call a function whenever other windows are chosen."""

        def choose(change: object) -> None:
            self._read()
            self._write_offers()
            call()

        for field in (self._first, self._last):
            field.observe(choose, "value")

    def offer(self, starts: Sequence[int]) -> None:
        """Offer these starts, in milliseconds since 1970, to choose from, as soon as nobody can be writing."""
        self._offered = [moment(start / 1000) for start in starts]
        if not self._first.options:
            self._write_offers()

    def _write_offers(self) -> None:
        # A page that gets new options puts back what a field held before somebody began to write in it.
        for field in (self._first, self._last):
            if list(field.options) != self._offered:
                field.options = self._offered

    def _read(self) -> None:
        try:
            self.trouble = ""
            first, last = (parse_time(field.value) for field in (self._first, self._last))
            if first is None and last is not None:
                raise ValueError("These windows have an end and no start: fill the first field too.")
            if first is not None and last is not None and last < first:
                raise ValueError("The second time is before the first: these would be no windows.")
            self.span = None if first is None else (first, first if last is None else last)
        except ValueError as mistake:
            self.trouble = f"{mistake} Shown are the windows chosen before."


def parse_time(text: str) -> int | None:
    """Return a time as milliseconds since 1970, or None for an empty text; a time without a zone is UTC.

    Raises:
        ValueError: it is no time.

    >>> parse_time("1970-01-01 00:00:01"), parse_time("250"), parse_time("")
    (1000, 250, None)
    """
    text = text.strip()
    if not text:
        return None
    if re.fullmatch(r"\d{1,15}", text):
        return int(text)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"'{text}' is not a time. {ADVICE}") from None
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def _field(description: str, placeholder: str, width: int, label: int) -> widgets.Combobox:
    return widgets.Combobox(
        description=description,
        placeholder=placeholder,
        continuous_update=False,
        style={"description_width": f"{label}px"},
        layout=widgets.Layout(width=f"{width}px"),
    )
