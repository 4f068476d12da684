"""Records in the order they came, for views that show event time: from a test driver, or from an application's topics.

Both sources have the same methods: `look()` reads new records, `raw(partition)` returns those kept, `before` counts
earlier ones, `dropped` those that each node has dropped, `stopped` says why no more will come, `close()` disconnects
until the next look, `let_go()` for good.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from streamskit.kafka.tail import Tail
from streamskit.runtime import KafkaStreams
from streamskit.serdes import Serde
from streamskit.testing import TopologyTestDriver
from streamskit.testing.driver import DriverQuery
from streamskit.testing.memory import Raw
from streamskit.views import streams_source
from streamskit.views.html import as_text
from streamskit.views.upstream import UpstreamSource

TimeOf = Callable[[Any], int]
"""Takes a record's value and returns its time in milliseconds since 1970."""


@dataclass(frozen=True)
class ShownRecord:
    """A record that arrived: key and value as text (None for null), its time in milliseconds, the sides it goes to."""

    key: str | None
    value: str | None
    timestamp: int
    sides: tuple[int, ...] = (0,)


class DriverRecords:
    """The last records that were piped into a test driver, from now on.

    Args:
        driver: the driver.
        topics: the topics whose records to keep.
        keep: how many records to keep.
    """

    def __init__(self, driver: TopologyTestDriver, topics: Iterable[str], keep: int) -> None:
        self._driver, self._topics = driver, frozenset(topics)
        self._kept: deque[Raw] = deque(maxlen=keep)
        self._came = 0
        self._reader: dict[str, DriverQuery] = {}
        driver._watchers.add(self)

    def note(self, query: DriverQuery, records: list[Raw]) -> None:
        """Keep what a query of the driver is about to read."""
        # Two queries may read the same topic: each record counts once.
        new = [each for each in records if each.topic in self._topics
               and self._reader.setdefault(each.topic, query) is query]  # fmt: skip
        self._kept.extend(new)
        self._came += len(new)

    @property
    def partitions(self) -> Sequence[int]:
        """The one task that a driver has."""
        return (0,)

    def look(self) -> None:
        """Do nothing: the driver reports each record by itself."""

    def raw(self, partition: int | None) -> list[Raw]:
        """Return the records in the order they were piped in."""
        return list(self._kept)

    def before(self, partition: int | None) -> int:
        """Return how many were piped in before those that are kept."""
        return self._came - len(self._kept)

    def dropped(self) -> Counter[str]:
        """Return what each node of the driver has dropped."""
        return Counter(self._driver.metrics())

    def stopped(self) -> str:
        """Return nothing: records may be piped in at any time."""
        return ""

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def let_go(self) -> None:
        """Note nothing more."""
        self._driver._watchers.discard(self)


class TopicRecords:
    """The last records of an application's topics.

    Args:
        streams: the application.
        topics: the topics to read.
        keep: so many records of each partition.
    """

    def __init__(self, streams: KafkaStreams, topics: Iterable[str], keep: int) -> None:
        self._streams = streams
        self._tail = Tail(streams.config.connection, topics, keep)

    @property
    def partitions(self) -> Sequence[int]:
        """The numbers of the topics' partitions, each a task of its own."""
        return self._tail.partitions

    def look(self) -> None:
        """Read on."""
        self._tail.look()

    def raw(self, partition: int | None) -> list[Any]:
        """Return the records in the order of the topic."""
        return self._tail.records(partition)

    def before(self, partition: int | None) -> int:
        """Return how many offsets come before the records that are kept."""
        return self._tail.before(partition)

    def dropped(self) -> Counter[str]:
        """Return what each node of the application has dropped, in all partitions."""
        return streams_source.dropped_by_node(self._streams.metrics())

    def stopped(self) -> str:
        """Return why the application does nothing more."""
        return streams_source.why_stopped(self._streams)

    def close(self) -> None:
        """Close the connection."""
        self._tail.close()

    def let_go(self) -> None:
        """Do nothing: there is only the connection."""


def arrivals_of(
    source: KafkaStreams | TopologyTestDriver, feeding: Sequence[UpstreamSource], keep: int, time: TimeOf | None
) -> DriverRecords | TopicRecords:
    """Return where to see the records that come from these origins.

    Raises:
        ValueError: the topology takes times from values, and `time` does not say how.
    """
    topics = list(dict.fromkeys(topic for origin in feeding for topic in origin.topics))
    for origin in feeding:
        if time is None and origin.source.timestamps is not None and origin.source.timestamps.extract is not None:
            raise ValueError(
                f"{origin.source.name} takes the time from each record's value, by a Column function. Say the same in "
                "Python, so that it can be shown: time=lambda value: value['a-field'], in milliseconds since 1970."
            )
    if isinstance(source, TopologyTestDriver):
        return DriverRecords(source, topics, keep)
    return TopicRecords(source, topics, keep)


def application_id(source: KafkaStreams | TopologyTestDriver) -> str:
    """Return the name of what runs.

    Raises:
        TypeError: it is neither an application nor a test driver.
    """
    if isinstance(source, KafkaStreams):
        return source.application_id
    if isinstance(source, TopologyTestDriver):
        return source._plans[0].application_id
    raise TypeError(
        f"This view shows a running application or a test driver, and this is a {type(source).__name__}: write "
        "WindowView(streams, 'a-store') or WindowView(driver, 'a-store')."
    )


def as_arrivals(raw: Iterable[Any], feeding: Sequence[UpstreamSource], time: TimeOf | None = None) -> list[ShownRecord]:
    """Return records as they can be shown, each with the sides that its topic feeds."""
    fed: dict[str, list[UpstreamSource]] = {}
    for origin in feeding:
        for topic in origin.topics:
            fed.setdefault(topic, []).append(origin)
    return [_arrival(record, fed[record.topic], time) for record in raw if record.topic in fed]


def _arrival(record: Any, feeding: Sequence[UpstreamSource], time: TimeOf | None) -> ShownRecord:
    source, sides = feeding[0].source, tuple(sorted({origin.side for origin in feeding}))
    timestamp = record.timestamp
    if time is not None and record.value is not None:
        timestamp = int(time(source.value.deserialize(record.value)))
    return ShownRecord(readable(source.key, record.key), readable(source.value, record.value), timestamp, sides)


def readable(serde: Serde, data: bytes | None) -> str | None:
    """Return bytes as text read by a serde, or their repr if it cannot read them; None for null."""
    if data is None:
        return None
    try:
        return as_text(serde.deserialize(data))
    except Exception:
        return repr(data)
