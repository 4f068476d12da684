"""`StoreView`: a state store, live in a notebook."""

import threading
import time
from typing import Any

import ipywidgets as widgets
from IPython.display import DisplayHandle, display

from streamskit.durations import Duration, spell, to_milliseconds
from streamskit.interactive import LocalStore
from streamskit.widgets import page
from streamskit.widgets.pulse import Pulse
from streamskit.widgets.snapshot import Snapshot, take

REFRESHES = (200, 500, 1000, 2000, 5000, 10_000)
"""The refresh intervals to choose from, in milliseconds."""

KEEP_EVERY = 10.0
"""How often the page that a saved notebook shows is brought up to date, in seconds."""

PATIENCE = 600.0
"""For how many seconds after it is displayed a view waits for a page to show it: messages wait for a busy kernel."""


class StoreView(widgets.VBox):
    """A live view of a state store, its rows, a chart and a search by key, as the last expression of a cell.

    It looks at the store only while a page shows it, and leaves a plain table in a saved notebook.

    Args:
        store: the store, from `streams.store(name)`.
        refresh: how often to look at it, a duration of at least 50 ms.
        rows: how many rows to show at most, 1 to 200.
        value: the field to chart; the first that holds numbers when not given.

    Raises:
        TypeError: `store` is not a store.
        ValueError: `refresh` is not such a duration, or `rows` not such a number.

    >>> StoreView(streams.store("trade-aggregates"), refresh="1 second", value="count")

    Mirrors what a Kafka Streams application shows of a store over its REST layer.
    """

    def __init__(
        self, store: LocalStore, refresh: Duration = "500 ms", rows: int = 15, value: str | None = None
    ) -> None:
        interval = _checked(store, refresh, rows)
        self._store, self._rows, self._value = store, rows, value
        self._snapshot: Snapshot | None = None
        self._looking, self._awaited_until = threading.Lock(), 0.0
        self._pulse = Pulse(self.refresh, lambda: self._every.value / 1000, self._is_wanted)
        self._kept: DisplayHandle | None = None
        self._kept_at = 0.0
        self._build(interval)
        super().__init__([widgets.HTML(page.STYLE), self._header, self._controls, self._chart, self._table])
        self.add_class(page.LIVE)
        # 0 in place of None makes the page count its views of this widget.
        self._view_count = 0
        self.observe(self._on_views, "_view_count")
        self._every.observe(lambda _: self._pulse.start(), "value")
        self._search.observe(lambda _: self.refresh(), "value")
        self._pause.observe(self._on_pause, "value")

    def __repr__(self) -> str:
        return f"<StoreView of {self._store!r}>"

    def refresh(self) -> None:
        """Look at the store now and show what there is."""
        with self._looking:
            try:
                self._snapshot = take(self._store, self._search.value, self._rows, self._value, self._snapshot)
                self._show(self._snapshot)
                self._keep()
            except Exception as failure:
                self._complain(f"The store could not be read: {failure}. The next refresh tries again.")
            self._listen_beside_the_cells()

    def get_state(self, key: Any = None, drop_defaults: bool = False) -> dict[str, Any]:
        """Return what a page has to know; one that loads anew begins to count its views at 0."""
        state: dict[str, Any] = super().get_state(key, drop_defaults)
        return {**state, "_view_count": 0} if key is None else state

    def _show(self, snapshot: Snapshot) -> None:
        self._header.value = page.part(page.header(snapshot, self._state))
        self._chart.value = page.part(page.chart(snapshot))
        self._table.value = page.part(page.table(snapshot, height_of=self._rows))

    def _complain(self, trouble: str) -> None:
        if self._snapshot is None:
            self._header.value = page.notice(trouble)
        else:
            self._header.value = page.part(page.header(self._snapshot, "failed", trouble))

    def _listen_beside_the_cells(self) -> None:
        """Let the controls be heard while a cell runs."""
        for widget in (self, self._search, self._every, self._pause):
            # JupyterLab speaks to a thread beside the cells; ipykernel would send the message to who wrote here last.
            getattr(widget.comm, "__dict__", {}).pop("_reply_subshell_id", None)

    @property
    def _state(self) -> str:
        if self._snapshot and self._snapshot.stopped:
            return "stopped"
        return "paused" if self._pause.value else "live"

    def _is_wanted(self) -> bool:
        return self._state == "live" and (bool(self._view_count) or time.monotonic() < self._awaited_until)

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
        static = page.render(self._snapshot) if self._snapshot else self._header.value
        return {"text/plain": repr(self), "text/html": static}

    def _keep(self) -> None:
        """Bring the page that a saved notebook shows up to date, now and then."""
        if self._kept and (self._state != "live" or time.monotonic() - self._kept_at > KEEP_EVERY):
            self._kept_at = time.monotonic()
            self._kept.update(self._page(), raw=True)

    def _build(self, interval: int) -> None:
        self._search = widgets.Text(
            description="Key",
            placeholder='begins with …   (in "quotes": is)',
            style={"description_width": "30px"},
            layout=widgets.Layout(width="290px"),
        )
        self._every = widgets.Dropdown(
            description="Refresh",
            options=[(f"every {spell(ms)}", ms) for ms in sorted({*REFRESHES, interval})],
            value=interval,
            style={"description_width": "50px"},
            layout=widgets.Layout(width="180px"),
        )
        self._pause = widgets.ToggleButton(
            description="Pause",
            icon="pause",
            tooltip="Stop or go on looking at the store",
            layout=widgets.Layout(width="100px"),
        )
        self._header, self._chart, self._table = (widgets.HTML() for _ in range(3))
        self._controls = widgets.HBox([self._search, self._every, self._pause])


def _checked(store: Any, refresh: Duration, rows: int) -> int:
    """Return the refresh interval in milliseconds."""
    if not isinstance(store, LocalStore):
        raise TypeError(
            f"StoreView shows a store, and this is a {type(store).__name__}: write StoreView(streams.store('a-name'))."
        )
    if not isinstance(rows, int) or not 1 <= rows <= 200:
        raise ValueError(f"rows={rows!r} cannot be shown: choose a number from 1 to 200.")
    interval = to_milliseconds(refresh, "refresh")
    if interval < 50:
        raise ValueError(f"A refresh every {interval} ms is too often: choose at least 50 ms.")
    return interval
