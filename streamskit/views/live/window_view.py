"""`WindowView`: records and their windows in event time, live in a notebook."""

from typing import Any

from streamskit.common.durations import Duration
from streamskit.runtime import KafkaStreams
from streamskit.testing import TopologyTestDriver
from streamskit.views.live import streams_source, window_page
from streamskit.views.live.event_time_view import EventTimeView
from streamskit.views.live.live_view import search_field
from streamskit.views.live.record_source import TimeOf, application_id
from streamskit.views.live.upstream import origins, windowed_nodes
from streamskit.views.live.window_snapshot import WindowSnapshot, window_snapshot

NATIVE = (
    "Spark's own operators keep these windows. Their stream time is that of the whole query and moves once in a "
    "micro-batch, so that a window may close later than shown here, never earlier."
)
"""What is otherwise where an aggregation runs without Python."""


class WindowView(EventTimeView):
    """A live view of how windows open and close: records in event time, stream time, and what came too late.

    It shows the last records of the topics that feed the windows, and runs the windows' own algorithm again on them,
    one task at a time. The slider goes back in the order in which they came. Of a test driver it shows what is piped in
    after the view was made.

    Args:
        source: a running application, or a test driver.
        store: the name of a store with windows: hopping, tumbling, sliding or sessions.
        refresh: how often to look, a duration of at least 50 ms.
        records: how many of the last records to show, of each partition, 1 to 2000.
        time: where the topology takes times from values by a Column function, the same in Python: takes a value and
            returns milliseconds since 1970.

    Raises:
        TypeError: `source` is neither of them.
        ValueError: there is no such store, or another argument is out of range.

    >>> WindowView(streams, "trade-aggregates")
    >>> WindowView(driver, "counts", records=50)

    Mirrors what the metrics `dropped-records-total` and `stream-time` tell by numbers.
    """

    KIND, WHAT = "windows", "The records"

    def __init__(
        self, source: KafkaStreams | TopologyTestDriver, store: str, refresh: Duration = "500 ms", records: int = 200,
        time: TimeOf | None = None,
    ) -> None:  # fmt: skip
        named = application_id(source)
        nodes, self._windows = windowed_nodes(source.topology, store)
        kept = nodes[0].store
        self._store, self._source = store, source
        self._retention = kept.retention if kept and kept.retention is not None else self._windows.retention
        self._search = search_field()
        feeding = [origin for node in nodes for origin in origins(source.topology, node, named)]
        is_native = isinstance(source, KafkaStreams) and any(streams_source.is_native(source, node) for node in nodes)
        caveat = NATIVE if is_native else ""
        super().__init__(source, nodes, feeding, refresh, records, time, caveat, [self._search])
        self._search.observe(lambda _: self.refresh(), "value")

    def __repr__(self) -> str:
        return f"<WindowView of '{self._store}' in {self._source!r}>"

    def take(self, previous: WindowSnapshot | None) -> WindowSnapshot:
        """Look at the records."""
        seen = self.look()
        taken = window_snapshot(self._store, self._windows, self._retention, seen, self._search.value, previous)
        return self.stepped(taken)

    def header(self, snapshot: WindowSnapshot, state: str, trouble: str = "") -> str:
        """Say which windows these are."""
        return window_page.header(snapshot, state, trouble)

    def show(self, snapshot: WindowSnapshot) -> None:
        """Show the windows, and what was dropped."""
        self._chart.value = self._part(window_page.chart(snapshot))
        self._story.value = self._part(window_page.story(snapshot))

    def static(self, snapshot: Any) -> str:
        """Return the page that stays in a saved notebook."""
        return window_page.render_windows(snapshot)
