"""`LiveView`: what all live views share. It looks while a page shows it, and leaves a page in a saved notebook."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import ipywidgets as widgets
from IPython.display import display

from streamskit.common.durations import Duration, spell
from streamskit.views.controls import checked_interval, close_whole, field
from streamskit.views.html import DISCONNECTED, LIVE, STYLE, notice, part
from streamskit.views.kept_page import KeptPage
from streamskit.views.page import Page, saved_page
from streamskit.views.page_answers import PageAnswers, UnsentHTML

REFRESHES = (200, 500, 1000, 2000, 5000, 10_000)
"""The refresh intervals to choose from, in milliseconds."""

PATIENCE = 600.0
"""For how many seconds after it is displayed a view waits for a page to show it: messages wait for a busy kernel."""

RESTS = "No page has answered for a while, so this view rests. It goes on as soon as one answers."

GLANCE, AT_MOST_EVERY = 0.01, 0.05
"""How often a timer asks whether there is news, and how soon after a look news leads to the next one, in seconds."""

SHARE, LONGEST_REST = 0.2, 2.0
"""The share of one core's time that a timer's calls may take, and the longest wait in seconds after a slow call. A call
that waited for an unavailable broker is slow too, and the next one should notice when the broker is back."""


class LiveView(widgets.VBox):
    """A view that looks again and again at something, takes a snapshot of it, and shows the snapshot.

    A subclass says how: `take` makes a snapshot, `PAGE` says how it is written, `rest` closes what a look opened, and
    `let_go` gives up what a view keeps hold of between its looks.

    Args:
        subject: what is seen, for the view's repr.
        refresh: how often to look, a duration of at least 50 ms.
        controls: what the user sets, beside the pace and the pause that each view has.

    Raises:
        ValueError: `refresh` is not such a duration.
    """

    PAGE: ClassVar[Page[Any]]

    def __init__(self, subject: object, refresh: Duration, controls: Sequence[widgets.Widget] = ()) -> None:
        self._subject, self._trouble = subject, ""
        self._snapshot: Any = None
        self._looking, self._awaited_until = threading.RLock(), 0.0
        self._is_closed = False
        self._followers = set[object]()
        self._kept = KeptPage(self._page)
        self.refreshed: list[Callable[[], None]] = []
        self._answers = PageAnswers(self._on_answer)
        self._header = UnsentHTML(self._is_seen)
        self._parts = {name: UnsentHTML(self._is_seen) for name in self.PAGE.parts}
        self._every, self._pause = _pace(checked_interval(refresh)), self._pause_button()
        self._controls = widgets.HBox([*controls, self._every, self._pause], layout={"flex_flow": "wrap"})
        self._timer = RepeatingTimer(
            self._tick, lambda: self._every.value / 1000, self._is_needed, self._fall_asleep, self.has_news
        )
        shown = [self._header, self._controls, *self._parts.values()]
        super().__init__([widgets.HTML(STYLE + DISCONNECTED), *shown, self._answers])
        self.add_class(LIVE)
        # 0 in place of None makes the page count its views of this widget.
        self._view_count = 0
        self.observe(self._on_views, "_view_count")
        self._every.observe(lambda _: self._timer.start(), "value")
        self._pause.observe(self._on_pause, "value")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._subject}>"

    # ---- what a subclass says ----------------------------------------------------------------------------------------

    def take(self, previous: Any) -> Any:
        """Return a snapshot; `previous` is the one before, or None."""
        raise NotImplementedError

    def has_news(self) -> bool:
        """Whether there is something to see before the next look is due; asked very often, so it must cost nothing."""
        return False

    def rest(self) -> None:
        """Close what looking has opened; the next look opens it again."""

    def let_go(self) -> None:
        """Give up what the view keeps hold of between its looks: it is closed, and looks no more."""

    # ---- what all views do -------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Look now and show what there is; a closed view shows what it saw last."""
        with self._looking:
            if self._is_closed and self._snapshot is None:
                return
            try:
                self._snapshot = self._snapshot if self._is_closed else self.take(self._snapshot)
                self.redraw()
                if self._is_seen() or not self.is_live:
                    self._kept.keep(at_once=not self.is_live)
                    for tell in list(self.refreshed):
                        tell()
            except Exception as failure:
                why = str(failure).removesuffix(".")
                self._complain(f"{self.PAGE.subject} could not be read: {why}. The next refresh tries again.")
            finally:
                self._listen_beside_the_cells()
                if not self._timer.is_running:
                    self.rest()

    def redraw(self) -> None:
        """Show the snapshot that there is, without another look."""
        self._header.value = self._part(self.PAGE.header(self._snapshot, self._state, self._trouble))
        for name, write in self.PAGE.parts.items():
            self._parts[name].value = self._part(write(self._snapshot))

    def seen(self) -> dict[str, str]:
        """Return what is seen now as HTML without controls, part by part: for a page outside of the notebook."""
        plain = self.PAGE.saved_parts
        if plain is None:
            parts = {name: shown.value for name, shown in self._parts.items()}
        elif self._snapshot is None:
            parts = dict.fromkeys(plain, "")
        else:
            parts = {name: self._part(write(self._snapshot)) for name, write in plain.items()}
        return {"header": self._header.value, **parts}

    def saved(self) -> str:
        """Return what a saved notebook shows of it, as HTML."""
        return self._part(self.PAGE.kept(self._snapshot)) if self._snapshot else self._header.value

    def follow(self) -> Callable[[], None]:
        """Look even while no notebook shows it, until the returned function is called."""
        follower = object()

        def leave() -> None:
            self._followers.discard(follower)
            self._timer.start()  # so that it notices at once

        self._followers.add(follower)
        self._timer.start()
        return leave

    def await_page(self) -> None:
        """Look now, and go on until a page shows it, or none has for a long time."""
        self._awaited_until = time.monotonic() + PATIENCE
        self.refresh()
        self._timer.start()

    def close(self) -> None:
        """Look no more, give up what looking has opened, and take the view off its pages; a saved page stays.

        A view that no page shows rests by itself. Closing it also ends its thread and its connection to the broker. A
        closed view cannot be opened again; make a new one. Closing it twice does nothing.
        """
        if self.comm is None:  # it is closed, or was never made in full
            return
        self._is_closed = True
        self._followers.clear()
        self._timer.start()  # so that it notices at once
        self.refresh()
        self.let_go()
        for child in self.children:
            close_whole(child)
        super().close()
        self.layout.close()

    @property
    def is_live(self) -> bool:
        """Whether it looks again: it is not paused or closed, and what it looks at goes on."""
        return self._state == "live"

    def get_state(self, key: Any = None, drop_defaults: bool = False) -> dict[str, Any]:
        """Return what a page has to know; a reloaded page asks for all, and counts its views from 0."""
        state: dict[str, Any] = super().get_state(key, drop_defaults)
        if key is not None:
            return state
        self._answers.wait_again()
        self._timer.start()
        return {**state, "_view_count": 0}

    def _part(self, html: str) -> str:
        return part(html, self.PAGE.kind)

    def _complain(self, trouble: str) -> None:
        if self._snapshot is None:
            self._header.value = notice(trouble, self.PAGE.kind)
        else:
            self._header.value = self._part(self.PAGE.header(self._snapshot, "failed", trouble))

    def _listen_beside_the_cells(self) -> None:
        """Let the controls respond while a cell runs."""
        for widget in (self, *_within(self._controls), *self._answers.all):
            # JupyterLab talks to a thread beside the cells; ipykernel would reply to whichever frontend wrote last.
            getattr(widget.comm, "__dict__", {}).pop("_reply_subshell_id", None)

    def _pause_button(self) -> widgets.ToggleButton:
        subject = self.PAGE.subject
        tooltip = f"Stop or go on looking at {subject[:1].lower()}{subject[1:]}"
        return widgets.ToggleButton(description="Pause", icon="pause", tooltip=tooltip, layout={"width": "100px"})

    @property
    def _state(self) -> str:
        if self._is_closed or (self._snapshot and self._snapshot.stopped):
            return "stopped"
        return "paused" if self._pause.value else "live"

    @property
    def _is_counted(self) -> bool:
        """Whether a page has counted it last; pages that share the count may bring it below 0."""
        return (self._view_count or 0) > 0

    def _is_on_a_page(self) -> bool:
        is_shown = self._is_counted and not self._answers.is_silent
        return bool(is_shown or time.monotonic() < self._awaited_until)

    def _is_seen(self) -> bool:
        """Whether a page shows it, as far as is known: while it is followed elsewhere, it also looks without one."""
        return not self._followers or self._is_on_a_page()

    def _is_needed(self) -> bool:
        return self.is_live and bool(self._followers or self._is_on_a_page())

    def _tick(self) -> None:
        if self._is_counted and not self._answers.is_silent:
            self._answers.ask()
        self.refresh()

    def _fall_asleep(self) -> None:
        with self._looking:
            self.rest()
            if self._snapshot is not None and self.is_live and self._answers.is_silent:
                self._header.value = self._part(self.PAGE.header(self._snapshot, "resting", RESTS))

    def _catch_up(self) -> None:
        for each in (self._header, *self._parts.values()):
            each.catch_up()

    def _on_answer(self, is_shown: bool) -> None:
        if is_shown and not self._is_counted:
            self._view_count = 1  # another page shows it than the one that has said that it does not
        self._catch_up()
        if not self._timer.is_running:
            self._timer.start()

    def _on_views(self, change: Any) -> None:
        self._awaited_until = 0.0
        if not self._is_counted and not self._is_closed:
            self._answers.ask_anew()
            self._listen_beside_the_cells()
        self._catch_up()
        self._timer.start()

    def _on_pause(self, change: Any) -> None:
        self._pause.description, self._pause.icon = ("Resume", "play") if change.new else ("Pause", "pause")
        self.refresh()
        self._timer.start()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        return {**bundle, **self._page()}

    def _ipython_display_(self, **kwargs: Any) -> None:
        """Display the live view, and after it the page for those who open the notebook without it."""
        if self._is_closed:
            display(self._page(), raw=True)
            return
        self.await_page()
        self._kept.display(super()._repr_mimebundle_(**kwargs))

    def _page(self) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": saved_page(self.saved())}


def _pace(interval: int) -> widgets.Dropdown:
    options = [(f"every {spell(ms)}", ms) for ms in sorted({*REFRESHES, interval})]
    return field(widgets.Dropdown, "Refresh", 50, 180, options=options, value=interval)


def _within(box: widgets.Box) -> Iterator[widgets.Widget]:
    for child in box.children:
        yield child
        if isinstance(child, widgets.Box):
            yield from _within(child)


class RepeatingTimer:
    """Calls `tick` every `interval()` seconds while `is_needed()`; then calls `rest()` and ends its thread.

    Where `has_news()`, it does not wait for the interval to end.
    """

    def __init__(
        self,
        tick: Callable[[], None],
        interval: Callable[[], float],
        is_needed: Callable[[], bool],
        rest: Callable[[], None] = lambda: None,
        has_news: Callable[[], bool] = lambda: False,
    ) -> None:
        self._tick, self._interval, self._is_needed, self._rest = tick, interval, is_needed, rest
        self._has_news = has_news
        self._wake, self._changing = threading.Event(), threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether the thread is running."""
        return self._thread is not None

    def start(self) -> None:
        """Start if it is needed; if it runs already, tick now."""
        with self._changing:
            self._wake.set()
            if self._thread is None and self._is_needed():
                self._thread = threading.Thread(target=self._run, name="streamskit-view", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while self._goes_on():
            self._wake.clear()
            began = time.perf_counter()
            self._tick()
            self._wait(began, min((time.perf_counter() - began) / SHARE, LONGEST_REST))
        self._rest()

    def _wait(self, began: float, pause: float) -> None:
        """Wait until the next tick is due or requested, or until there is news, which waits for `pause` seconds.

        Args:
            began: when the last tick began, as `time.perf_counter()` counts.
            pause: the shortest wait, unless a tick is requested, in seconds.
        """
        due = time.perf_counter() + max(self._interval(), pause)
        not_before = max(began + AT_MOST_EVERY, time.perf_counter() + pause)
        while (left := due - time.perf_counter()) > 0 and not self._wake.wait(min(left, GLANCE)):
            if time.perf_counter() >= not_before and self._has_news():
                return

    def _goes_on(self) -> bool:
        # Under the lock, so that a start() at the same moment sees either a thread that goes on or none.
        with self._changing:
            if not self._is_needed():
                self._thread = None
            return self._thread is not None
