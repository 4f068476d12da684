"""`StoreView`: a state store, live in a notebook."""

from typing import Any

import ipywidgets as widgets

from streamskit.common.durations import Duration
from streamskit.views.live import page
from streamskit.views.live.live_view import LiveView, checked_count, search_field
from streamskit.views.live.snapshot import Snapshot, take
from streamskit.views.live.store_source import SnapshotSource
from streamskit.views.live.window_picker import WindowPicker


class StoreView(LiveView):
    """A live view of a state store, its rows, a chart and a search by key, as the last expression of a cell.

    It looks at the store only while a page shows it, and leaves a plain table in a saved notebook.

    Args:
        store: the store, from `streams.store(name)` or `QueryClient(url).store(name)`.
        refresh: how often to look at it, a duration of at least 50 ms.
        rows: how many rows to show at most, 1 to 200.
        value: the field to chart; the first that holds numbers when not given.

    Raises:
        TypeError: `store` is not a store.
        ValueError: `refresh` is not such a duration, or `rows` not such a number.

    >>> StoreView(streams.store("trade-aggregates"), refresh="1 second", value="count")

    Mirrors what a Kafka Streams application shows of a store over its REST layer.
    """

    KIND, WHAT = "store", "The store"

    def __init__(
        self, store: SnapshotSource, refresh: Duration = "500 ms", rows: int = 15, value: str | None = None
    ) -> None:
        if not isinstance(store, SnapshotSource):
            raise TypeError(
                f"StoreView shows a store, and this is a {type(store).__name__}: write "
                "StoreView(streams.store('a-name'))."
            )
        self._store, self._rows, self._value = store, checked_count(rows, "rows", 200), value
        self._search, self._windows = search_field(), WindowPicker()
        self._chart, self._table = widgets.HTML(), widgets.HTML()
        picker = [self._windows] if store.kind == "window" else []
        super().__init__(refresh, [self._search, *picker], [self._chart, self._table])
        self._search.observe(lambda _: self.refresh(), "value")
        self._windows.when_chosen(self.refresh)

    def __repr__(self) -> str:
        return f"<StoreView of '{self._store.name}'>"

    def take(self, previous: Snapshot | None) -> Snapshot:
        """Look at the store."""
        span = self._windows.span
        return take(self._store, self._search.value, self._rows, self._value, previous, span=span)

    def header(self, snapshot: Snapshot, state: str, trouble: str = "") -> str:
        """Say what the store holds, how fresh that is and who answered."""
        return page.header(snapshot, state, trouble or self._windows.trouble)

    def show(self, snapshot: Snapshot) -> None:
        """Show chart and rows."""
        self._windows.offer(snapshot.starts)
        self._chart.value = self._part(page.chart(snapshot))
        self._table.value = self._part(page.table(snapshot, height_of=self._rows))

    def static(self, snapshot: Any) -> str:
        """Return the page that stays in a saved notebook."""
        return page.render(snapshot)
