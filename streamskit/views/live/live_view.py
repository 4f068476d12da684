"""`LiveView`: what all live views share. It looks while a page shows it, and leaves a page in a saved notebook."""

import threading
import time
from collections.abc import Iterator
from typing import Any, ClassVar

import ipywidgets as widgets
from IPython.display import DisplayHandle, display

from streamskit.common.durations import Duration, spell, to_milliseconds
from streamskit.views.live import html as parts
from streamskit.views.live.timer import Pulse

REFRESHES = (200, 500, 1000, 2000, 5000, 10_000)
"""The refresh intervals to choose from, in milliseconds."""

KEEP_EVERY = 10.0
"""How often the page that a saved notebook shows is brought up to date, in seconds."""

PATIENCE = 600.0
"""For how many seconds after it is displayed a view waits for a page to show it: messages wait for a busy kernel."""


class LiveView(widgets.VBox):
    """A view that looks again and again at something, takes a snapshot of it, and shows the snapshot.

    A subclass says how: `take` makes a snapshot, which says in `stopped` why no more will come; `header` and `show`
    write it into the page, `static` makes the page that a saved notebook keeps, `rest` closes what a look opened.

    Args:
        refresh: how often to look, a duration of at least 50 ms.
        controls: what the learner sets, beside the pace and the pause that each view has.
        body: what is shown beneath the controls.

    Raises:
        ValueError: `refresh` is not such a duration.
    """

    KIND: ClassVar[str] = ""
    """What the view's parts are called in the page, such as "store"."""

    WHAT: ClassVar[str] = ""
    """What it looks at, for sentences such as "The store could not be read"."""

    def __init__(self, refresh: Duration, controls: list[widgets.Widget], body: list[widgets.Widget]) -> None:
        self._snapshot: Any = None
        self._looking, self._awaited_until = threading.RLock(), 0.0
        self._kept: DisplayHandle | None = None
        self._kept_at = 0.0
        self._header = widgets.HTML()
        self._every, self._pause = _pace(checked_interval(refresh)), _pause_button(self.WHAT)
        self._controls = widgets.HBox([*controls, self._every, self._pause], layout=widgets.Layout(flex_flow="wrap"))
        self._pulse = Pulse(self.refresh, lambda: self._every.value / 1000, self._is_wanted, self._fall_asleep)
        super().__init__([widgets.HTML(parts.STYLE), self._header, self._controls, *body])
        self.add_class(parts.LIVE)
        # 0 in place of None makes the page count its views of this widget.
        self._view_count = 0
        self.observe(self._on_views, "_view_count")
        self._every.observe(lambda _: self._pulse.start(), "value")
        self._pause.observe(self._on_pause, "value")

    # ---- what a subclass says ----------------------------------------------------------------------------------------

    def take(self, previous: Any) -> Any:
        """Return a snapshot; `previous` is the one before, or None."""
        raise NotImplementedError

    def header(self, snapshot: Any, state: str, trouble: str = "") -> str:
        """Return the lines over the controls: what is seen, its state, and a sentence about `trouble`."""
        raise NotImplementedError

    def show(self, snapshot: Any) -> None:
        """Write a snapshot into the body."""
        raise NotImplementedError

    def static(self, snapshot: Any) -> str:
        """Return the page of a snapshot for a saved notebook."""
        raise NotImplementedError

    def rest(self) -> None:
        """Close what looking has opened; the next look opens it again."""

    # ---- what all views do -------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Look now and show what there is."""
        with self._looking:
            try:
                self._snapshot = self.take(self._snapshot)
                self.redraw()
                self._keep()
            except Exception as failure:
                why = str(failure).removesuffix(".")
                self._complain(f"{self.WHAT} could not be read: {why}. The next refresh tries again.")
            finally:
                self._listen_beside_the_cells()
                if not self._pulse.is_beating:
                    self.rest()

    def redraw(self) -> None:
        """Show the snapshot that there is, without another look."""
        self._header.value = self._part(self.header(self._snapshot, self._state))
        self.show(self._snapshot)

    def get_state(self, key: Any = None, drop_defaults: bool = False) -> dict[str, Any]:
        """Return what a page has to know; one that loads anew begins to count its views at 0."""
        state: dict[str, Any] = super().get_state(key, drop_defaults)
        return {**state, "_view_count": 0} if key is None else state

    def _part(self, html: str) -> str:
        return parts.part(html, self.KIND)

    def _complain(self, trouble: str) -> None:
        if self._snapshot is None:
            self._header.value = parts.notice(trouble, self.KIND)
        else:
            self._header.value = self._part(self.header(self._snapshot, "failed", trouble))

    def _listen_beside_the_cells(self) -> None:
        """Let the controls be heard while a cell runs."""
        for widget in (self, *_within(self._controls)):
            # JupyterLab speaks to a thread beside the cells; ipykernel would send the message to who wrote here last.
            getattr(widget.comm, "__dict__", {}).pop("_reply_subshell_id", None)

    @property
    def _state(self) -> str:
        if self._snapshot and self._snapshot.stopped:
            return "stopped"
        return "paused" if self._pause.value else "live"

    def _is_wanted(self) -> bool:
        return self._state == "live" and (bool(self._view_count) or time.monotonic() < self._awaited_until)

    def _fall_asleep(self) -> None:
        with self._looking:
            self.rest()

    def _on_views(self, change: Any) -> None:
        self._awaited_until = 0.0
        self._pulse.start()

    def _on_pause(self, change: Any) -> None:
        self._pause.description, self._pause.icon = ("Resume", "play") if change.new else ("Pause", "pause")
        self.refresh()
        self._pulse.start()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        return {**bundle, **self._page()}

    def _ipython_display_(self, **kwargs: Any) -> None:
        """Display the live view, and after it the page for those who open the notebook without it.

        JupyterLab shows "model not found" for a view whose kernel has gone, whatever else its output has. So
        the page is an output of its own, and its style hides whichever of the two is not wanted.
        """
        self._awaited_until = time.monotonic() + PATIENCE
        self.refresh()
        live = super()._repr_mimebundle_(**kwargs)
        live.pop("text/plain", None)
        display(live, raw=True)
        self._kept = display(self._page(), raw=True, display_id=True)
        self._kept_at = time.monotonic()
        self._pulse.start()

    def _page(self) -> dict[str, str]:
        static = self.static(self._snapshot) if self._snapshot else self._header.value
        return {"text/plain": repr(self), "text/html": static}

    def _keep(self) -> None:
        """Bring the page that a saved notebook shows up to date, now and then."""
        if self._kept and (self._state != "live" or time.monotonic() - self._kept_at > KEEP_EVERY):
            self._kept_at = time.monotonic()
            self._kept.update(self._page(), raw=True)


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


def search_field() -> widgets.Text:
    """Return a field for how the keys begin that are to be seen."""
    return widgets.Text(
        description="Key",
        placeholder='begins with …   (in "quotes": is)',
        style={"description_width": "30px"},
        layout=widgets.Layout(width="290px"),
    )


def _pace(interval: int) -> widgets.Dropdown:
    return widgets.Dropdown(
        description="Refresh",
        options=[(f"every {spell(ms)}", ms) for ms in sorted({*REFRESHES, interval})],
        value=interval,
        style={"description_width": "50px"},
        layout=widgets.Layout(width="180px"),
    )


def _pause_button(what: str) -> widgets.ToggleButton:
    return widgets.ToggleButton(
        description="Pause",
        icon="pause",
        tooltip=f"Stop or go on looking at {what[:1].lower()}{what[1:]}",
        layout=widgets.Layout(width="100px"),
    )


def _within(box: widgets.Box) -> Iterator[widgets.Widget]:
    for child in box.children:
        yield child
        if isinstance(child, widgets.Box):
            yield from _within(child)
