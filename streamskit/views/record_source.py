"""Records in the order they came, for views that show event time: from a test driver, or from an application's topics.

Both sources have the same methods: `look()` reads new records, `raw(partition)` returns those kept, `before` counts
earlier ones, `dropped` those that each node has dropped, `stopped` says why no more will come, `close()` disconnects
until the next look, `let_go()` for good.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from streamskit.api.error_handlers import fails
from streamskit.api.timestamp_extractor import TimestampExtractor
from streamskit.common.errors import StreamsError
from streamskit.kafka.tail import Tail
from streamskit.runtime import KafkaStreams
from streamskit.serdes import Serde
from streamskit.testing import TopologyTestDriver
from streamskit.testing.driver import CLOSED, DriverQuery
from streamskit.testing.memory import Raw
from streamskit.topology.nodes import Source
from streamskit.views import streams_source
from streamskit.views.charts import shortened
from streamskit.views.html import as_text
from streamskit.views.upstream import UpstreamSource

TimeOf = Callable[[Any], int]
"""Takes a record's value and returns its time in milliseconds since 1970."""


UNREADABLE = "its key or value is not what the serde reads"
TIMELESS, NO_TIME = "its time is negative", "it has no time"
"""Why a record is refused before any operator sees it."""


@dataclass(frozen=True)
class ShownRecord:
    """A record that arrived: key and value as text (None for null), its time in milliseconds, the sides it goes to.

    `refused` says why it never reaches an operator; one that a serde cannot read shows its bytes.
    """

    key: str | None
    value: str | None
    timestamp: int
    sides: tuple[int, ...] = (0,)
    refused: str = ""

    @property
    def reached(self) -> tuple[int, ...]:
        """The sides that it reaches: none if it was refused."""
        return () if self.refused else self.sides


class DriverRecords:
    """The last records that were piped into a test driver, from now on.

    Args:
        driver: the driver.
        topics: the topics whose records to keep.
        keep: how many records of each partition to keep.
    """

    def __init__(self, driver: TopologyTestDriver, topics: Iterable[str], keep: int) -> None:
        self._driver, self._topics = driver, frozenset(topics)
        self._kept: defaultdict[int, deque[Raw]] = defaultdict(lambda: deque(maxlen=keep))
        self._came = Counter[int]()
        self._seen: dict[int, tuple[int, list[Raw]]] = {}
        self._reader: dict[str, DriverQuery] = {}
        driver._watchers.add(self)

    def note(self, query: DriverQuery, records: list[Raw]) -> None:
        """Keep what a query of the driver is about to read."""
        # Two queries may read the same topic: each record counts once.
        new = [each for each in records if each.topic in self._topics
               and self._reader.setdefault(each.topic, query) is query]  # fmt: skip
        is_one_task = len(self.partitions) == 1
        for record in new:
            partition = 0 if is_one_task else record.partition or 0
            self._came[partition] += 1
            self._kept[partition].append(record)

    @property
    def partitions(self) -> Sequence[int]:
        """The numbers of the topics' partitions, each a task of its own."""
        return range(max(map(self._driver._partitions.count, self._topics), default=1))

    def look(self) -> None:
        """Take in what the driver has reported."""
        kept = {partition: list(records) for partition, records in list(self._kept.items())}
        self._seen = {partition: (self._came[partition] - len(raw), raw) for partition, raw in kept.items()}

    def raw(self, partition: int) -> list[Raw]:
        """Return the records of a partition in the order they were piped in."""
        return self._seen.get(partition, (0, []))[1]

    def before(self, partition: int) -> int:
        """Return how many of a partition were piped in before those that are kept."""
        return self._seen.get(partition, (0, []))[0]

    def dropped(self) -> Counter[str]:
        """Return what each node of the driver has dropped."""
        return Counter(self._driver.metrics())

    def stopped(self) -> str:
        """Return why no more can be piped in, once the driver is closed."""
        return CLOSED if self._driver._is_closed else ""

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

    def raw(self, partition: int) -> list[Any]:
        """Return the records in the order of the topic."""
        return self._tail.records(partition)

    def before(self, partition: int) -> int:
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


def leaves_out(source: KafkaStreams | TopologyTestDriver) -> bool:
    """Return whether a handler decides about records that a serde refuses; without one, they may be counted."""
    plans = source.plans if isinstance(source, KafkaStreams) else source._plans
    return not fails(plans[0].options.handlers.deserialization)


def as_arrivals(
    raw: Iterable[Any], feeding: Sequence[UpstreamSource], time: TimeOf | None = None, leaves_out: bool = False
) -> list[ShownRecord]:
    """Return records as they can be shown, each with the sides that its topic feeds.

    Args:
        raw: the records, in bytes.
        feeding: where they come from.
        time: takes a value and returns its time in milliseconds, where the topology takes times from values.
        leaves_out: whether records that a serde refuses are left out.
    """
    fed: dict[str, list[UpstreamSource]] = {}
    for origin in feeding:
        for topic in origin.topics:
            fed.setdefault(topic, []).append(origin)
    times = _Times(time)
    return [_arrival(record, fed[record.topic], times, leaves_out) for record in raw if record.topic in fed]


class _Times:
    """The times of one partition's records, as the timestamp extractors of their sources take them."""

    def __init__(self, time: TimeOf | None) -> None:
        self._time = time
        self._latest: dict[str, int] = {}

    def of(self, record: Any, value: Any, source: Source) -> tuple[int, str]:
        """Return the time of a record, and why it is refused if it has none that is valid."""
        taken = record.timestamp if self._time is None else self._taken(value)
        if taken is not None and taken >= 0:
            self._latest[record.topic] = max(taken, self._latest.get(record.topic, 0))
            return taken, ""
        extractor = source.timestamps or TimestampExtractor.fail_on_invalid()
        choice = extractor.invalid if taken is not None else extractor.missing or extractor.invalid
        if choice == "partition time" and record.topic in self._latest:
            return self._latest[record.topic], ""
        return (record.timestamp, NO_TIME) if taken is None else (taken, TIMELESS)

    def _taken(self, value: Any) -> int | None:
        if value is None or self._time is None:
            return None
        try:
            taken = self._time(value)
            return None if taken is None else int(taken)
        except Exception as failure:  # whatever a user's function raises
            why = f"{shortened(as_text(value), 60)}: {type(failure).__name__}: {failure}"
            raise StreamsError(f"time= takes no time from the value {why}") from failure


def _arrival(record: Any, feeding: Sequence[UpstreamSource], times: _Times, leaves_out: bool) -> ShownRecord:
    source, sides = feeding[0].source, tuple(sorted({origin.side for origin in feeding}))
    parts = ((source.key, record.key), (source.value, record.value))
    try:
        key, value = (None if data is None else serde.deserialize(data) for serde, data in parts)
    except Exception:  # whatever a serde raises
        shown = [readable(serde, data) for serde, data in parts]
        return ShownRecord(shown[0], shown[1], record.timestamp, sides, UNREADABLE if leaves_out else "")
    timestamp, refused = times.of(record, value, source)
    shown = [None if each is None else as_text(each) for each in (key, value)]
    return ShownRecord(shown[0], shown[1], timestamp, sides, refused)


def readable(serde: Serde, data: bytes | None) -> str | None:
    """Return bytes as text read by a serde, or their repr if it cannot read them; None for null."""
    if data is None:
        return None
    try:
        return as_text(serde.deserialize(data))
    except Exception:
        return repr(data)
