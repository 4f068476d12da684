"""`JoinView`: the records of two streams and how they meet, live in a notebook."""

from typing import Any

from streamskit.common.durations import Duration
from streamskit.runtime import KafkaStreams
from streamskit.testing import TopologyTestDriver
from streamskit.views.live import join_page
from streamskit.views.live.event_time_view import EventTimeView
from streamskit.views.live.join_snapshot import JoinSnapshot, join_snapshot
from streamskit.views.live.record_source import TimeOf, application_id
from streamskit.views.live.upstream import join_sides, origins

UNORDERED = (
    "In which order records of two topics were taken up is written nowhere: here they are merged by their times. Which "
    "records meet does not depend on it, as long as none is late."
)
"""What is otherwise where records of a running application are shown."""


class JoinView(EventTimeView):
    """A live view of a join of two streams: two lanes of records in event time, the window around each, who met whom.

    It shows the last records of the topics on both sides, and runs the join's own algorithm again on them, one task at
    a time. The slider goes back in the order in which they came; between two topics of a running application that is
    the order of their times. Of a test driver it shows what is piped in after the view was made.

    Args:
        source: a running application, or a test driver.
        join: the name of the join, or of one of its nodes; not needed where the topology has only one.
        refresh: how often to look, a duration of at least 50 ms.
        records: how many of the last records to show, of each partition, 1 to 2000.
        time: where the topology takes times from values by a Column function, the same in Python: takes a value and
            returns milliseconds since 1970.

    Raises:
        TypeError: `source` is neither of them.
        ValueError: there is no such join, or another argument is out of range.

    >>> JoinView(streams)
    >>> JoinView(driver, records=40)

    Mirrors what `KStream#join` with `JoinWindows` does, which no metric of Kafka Streams shows.
    """

    KIND, WHAT = "join", "The records"

    def __init__(
        self, source: KafkaStreams | TopologyTestDriver, join: str | None = None, refresh: Duration = "500 ms",
        records: int = 40, time: TimeOf | None = None,
    ) -> None:  # fmt: skip
        named = application_id(source)
        left, right = join_sides(source.topology, join)
        if left.windows is None:
            raise ValueError(f"{left.name} has no windows: JoinView shows joins of two streams.")
        feeding = [each for node in (left, right) for each in origins(source.topology, node, named, node.side)]
        self._source, self._name = source, left.name
        self._windows, self._outer = left.windows, left.outer
        topics = [[topic for each in feeding if each.side == side for topic in each.topics] for side in (0, 1)]
        self._names = (", ".join(topics[0]), ", ".join(topics[1]))
        caveat = UNORDERED if isinstance(source, KafkaStreams) else ""
        super().__init__(source, [left, right], feeding, refresh, records, time, caveat, [])

    def __repr__(self) -> str:
        return f"<JoinView of {self._name} in {self._source!r}>"

    def take(self, previous: JoinSnapshot | None) -> JoinSnapshot:
        """Look at the records."""
        taken = join_snapshot(self._name, self._names, self._windows, self._outer, self.look(), previous)
        return self.stepped(taken)

    def header(self, snapshot: JoinSnapshot, state: str, trouble: str = "") -> str:
        """Say which join this is."""
        return join_page.header(snapshot, state, trouble)

    def show(self, snapshot: JoinSnapshot) -> None:
        """Show both streams, and what was dropped."""
        self._chart.value = self._part(join_page.chart(snapshot))
        self._story.value = self._part(join_page.story(snapshot))

    def static(self, snapshot: Any) -> str:
        """Return the page that stays in a saved notebook."""
        return join_page.render_join(snapshot)
