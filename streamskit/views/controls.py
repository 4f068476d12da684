"""What a user sets beside a view: fields and buttons, going through records step by step, choosing windows."""

import re
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import ipywidgets as widgets

from streamskit.common.durations import Duration, to_milliseconds
from streamskit.views.html import moment
from streamskit.views.store_snapshot import Span

ADVICE = "Choose a start from the list, or write one like 2024-01-02 09:00:05, in UTC, or in milliseconds since 1970."


Field = TypeVar("Field", bound=widgets.DOMWidget)


def checked_interval(refresh: Duration) -> int:
    """Return the refresh interval in milliseconds.

    Raises:
        ValueError: it is no duration, or too short.
    """
    interval = to_milliseconds(refresh, "refresh")
    if interval < 50:
        raise ValueError(f"A refresh every {interval} ms is too often: choose at least 50 ms.")
    return interval


def checked_count(count: Any, name: str, most: int) -> int:
    """Return a number of things to show.

    Raises:
        ValueError: it is no whole number from 1 to `most`.
    """
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= most:
        raise ValueError(f"{name}={count!r} cannot be shown: choose a number from 1 to {most}.")
    return count


def field(
    kind: type[Field], words: str, label: int, width: int, changed: Callable[[], object] | None = None, **traits: Any
) -> Field:
    """Return a field with words before it.

    Args:
        kind: the widget's class.
        words: the words.
        label: their width in pixels.
        width: the width of it all in pixels.
        changed: called when the field has another value.
        traits: of the widget.
    """
    widget = kind(
        description=words, style={"description_width": f"{label}px"}, layout={"width": f"{width}px"}, **traits
    )
    if changed is not None:
        widget.observe(lambda _: changed(), "value")
    return widget


def button(act: Callable[[], object], width: str = "auto", **traits: Any) -> widgets.Button:
    """Return a button that does something."""
    widget = widgets.Button(layout={"width": width}, **traits)
    widget.on_click(lambda _: act())
    return widget


def search_field(changed: Callable[[], object]) -> widgets.Text:
    """Return a search field for the beginning of the keys to show."""
    return field(widgets.Text, "Key", 30, 290, changed, placeholder='begins with …   (in "quotes": is)')


def offer(choice: widgets.Dropdown, options: Sequence[tuple[str, Any]]) -> None:
    """Offer words with values to choose from; what was chosen stays chosen, as long as it is among them.

    >>> choice = widgets.Dropdown(options=[("all", None), ("0", 0), ("1", 1)], value=1)
    >>> offer(choice, [("all", None), ("0", 0), ("1", 1), ("2", 2)])
    >>> choice.value
    1
    >>> offer(choice, [("all", None), ("0", 0)])
    >>> print(choice.value)
    None
    """
    if list(choice.options) == list(options):
        return
    chosen = choice.value
    choice.options = options  # which chooses the first
    if chosen in [value for _, value in options]:
        choice.value = chosen


def close_whole(widget: widgets.Widget) -> None:
    """Close a widget, all in it, and what it looks like: the kernel keeps each of them until it is closed."""
    for child in getattr(widget, "children", ()):
        close_whole(child)
    looks = [getattr(widget, name, None) for name in ("layout", "style")]
    widget.close()
    for look in looks:
        if look is not None:
            look.close()


def in_background(name: str, act: Callable[[], None]) -> None:
    """Do something that takes seconds in a separate thread, so that the kernel stays free."""
    threading.Thread(target=act, name=f"streamskit-{name}", daemon=True).start()


class Stepper(widgets.HBox):
    """Chooses how many records to replay; until the user has chosen, it shows how many there are.

    `chosen` is that number, or None. It is set as soon as the user moves the slider, before `stepped` is called: a
    view that refreshes at that moment must not move it back.

    Args:
        stepped: called when the user has chosen.

    >>> stepper = Stepper(lambda: print(stepper.chosen))
    """

    def __init__(self, stepped: Callable[[], None]) -> None:
        self.chosen: int | None = None
        self._stepped, self._shown_by = stepped, 0
        tooltip = "After how many records, in the order they came"
        self._slider = field(widgets.IntSlider, "Records", 58, 360, min=0, max=0, tooltip=tooltip)
        self._back = button(lambda: self._go(-1), "38px", icon="step-backward", tooltip="One record back")
        self._forward = button(lambda: self._go(1), "38px", icon="step-forward", tooltip="One record forward")
        self._slider.observe(self._on_slide, "value")
        super().__init__([self._back, self._slider, self._forward])

    def of(self, count: int) -> int:
        """Return how many of a number of records to replay: as many as were chosen, or all."""
        return count if self.chosen is None else min(self.chosen, count)

    def show(self, count: int) -> None:
        """Show the number of records, and how many of them are replayed."""
        self._shown_by = threading.get_ident()
        try:
            self._slider.max = count
            self._slider.value = self.of(count)
        finally:
            self._shown_by = 0

    def release(self) -> None:
        """Forget what was chosen."""
        self.chosen = None

    def _go(self, steps: int) -> None:
        self._slider.value = max(0, min(self._slider.max, self._slider.value + steps))

    def _on_slide(self, change: Any) -> None:
        # A user's moves come in another thread than those of the view that looks.
        if self._shown_by != threading.get_ident():
            self.chosen = int(change.new)
            self._stepped()


class WindowPicker(widgets.HBox):
    """Two fields for when windows start: from one time to another, or only at the first; the newest if both are empty.

    Each can be chosen from the starts that were seen, or written. `trouble` says what is wrong with what was written.

    >>> picker = WindowPicker()  # doctest: +SKIP
    >>> picker.when_chosen(view.refresh)  # doctest: +SKIP
    """

    def __init__(self) -> None:
        self.trouble = ""
        self.span: Span | None = None
        self._first = field(widgets.Combobox, "Windows", 72, 265, placeholder="the newest", continuous_update=False)
        self._last = field(widgets.Combobox, "to", 16, 210, placeholder="only that", continuous_update=False)
        self._offered: list[str] = []
        super().__init__([self._first, self._last], layout={"flex_flow": "wrap"})

    def when_chosen(self, call: Callable[[], None]) -> None:
        """Call a function whenever other windows are chosen."""

        def choose(change: object) -> None:
            self._read()
            self._write_offers()
            call()

        for each in (self._first, self._last):
            each.observe(choose, "value")

    def offer(self, starts: Sequence[int]) -> None:
        """Offer these starts (milliseconds since 1970) as choices, as soon as nobody can be typing in the field."""
        self._offered = [moment(start) for start in starts]
        if not self._first.options:
            self._write_offers()

    def _write_offers(self) -> None:
        # A page that gets new options puts back what a field held before somebody began to write in it.
        for each in (self._first, self._last):
            if list(each.options) != self._offered:
                each.options = self._offered

    def _read(self) -> None:
        try:
            self.trouble = ""
            first, last = (parse_time(each.value) for each in (self._first, self._last))
            if first is None and last is not None:
                raise ValueError("These windows have an end and no start: fill the first field too.")
            if first is not None and last is not None and last < first:
                raise ValueError("The second time is before the first: no window can be like that.")
            self.span = None if first is None else (first, first if last is None else last)
        except ValueError as mistake:
            self.trouble = f"{mistake} Shown are the windows chosen before."


def parse_time(text: str) -> int | None:
    """Return a time as milliseconds since 1970, or None for an empty text; a time without a zone is UTC.

    Raises:
        ValueError: it is no time.

    >>> parse_time("1970-01-01 00:00:01"), parse_time("250"), parse_time("1,700 ms"), parse_time("")
    (1000, 250, 1700, None)
    """
    text = text.strip()
    if not text:
        return None
    number = text.removesuffix(" ms").replace(",", "")
    if re.fullmatch(r"\d{1,19}", number):
        return int(number)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"'{text}' is not a time. {ADVICE}") from None
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
