"""`TopologyView`: a running topology, live in a notebook."""

from typing import Any

import ipywidgets as widgets

from streamskit.common.durations import Duration
from streamskit.kafka.tail import Ends
from streamskit.runtime import KafkaStreams
from streamskit.views.live import topology_page
from streamskit.views.live.live_view import LiveView
from streamskit.views.live.topology_snapshot import TopologySnapshot, take_topology


class TopologyView(LiveView):
    """A live diagram of an application: how fast its topics are read and written, how far its tasks are, what failed.

    Only what is measured has a number: what sources have read, what was written to sinks' topics and to the changelogs
    of stores (by offsets, over the last five seconds), and what nodes have dropped.

    Args:
        streams: the application, started or not.
        refresh: how often to look at it, a duration of at least 50 ms.

    Raises:
        TypeError: `streams` is no application.
        ValueError: `refresh` is not such a duration.

    >>> TopologyView(streams)

    Mirrors what the metrics of `KafkaStreams#metrics` tell: `process-rate`, `records-lag`, `dropped-records-total`.
    """

    KIND, WHAT = "topology", "The application"

    def __init__(self, streams: KafkaStreams, refresh: Duration = "1 second") -> None:
        if not isinstance(streams, KafkaStreams):
            raise TypeError(
                f"TopologyView shows a running application, and this is a {type(streams).__name__}: write "
                "TopologyView(streams), or topology.diagram() for one that does not run."
            )
        self._streams, self._ends = streams, Ends(streams.bootstrap_servers)
        self._diagram, self._tasks = widgets.HTML(), widgets.HTML()
        super().__init__(refresh, [], [self._diagram, self._tasks])

    def __repr__(self) -> str:
        return f"<TopologyView of {self._streams!r}>"

    def take(self, previous: TopologySnapshot | None) -> TopologySnapshot:
        """Look at the application."""
        return take_topology(self._streams, self._ends.ask, previous)

    def header(self, snapshot: TopologySnapshot, state: str, trouble: str = "") -> str:
        """Say what the application is doing."""
        return topology_page.header(snapshot, state, trouble)

    def show(self, snapshot: TopologySnapshot) -> None:
        """Show the diagram and the tasks."""
        self._diagram.value = self._part(topology_page.diagram(snapshot))
        self._tasks.value = self._part(topology_page.tasks(snapshot))

    def static(self, snapshot: Any) -> str:
        """Return the page that stays in a saved notebook."""
        return topology_page.render_topology(snapshot)

    def rest(self) -> None:
        """Leave the broker alone."""
        self._ends.close()
