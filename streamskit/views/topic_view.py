"""`TopicView`: the tail of a topic, live in a notebook: its newest records with keys, times and headers."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import ipywidgets as widgets

from streamskit.common.durations import Duration
from streamskit.common.names import own_name
from streamskit.kafka.client import KafkaClient
from streamskit.kafka.encoding import text_or_bytes
from streamskit.kafka.tail import Tail
from streamskit.serdes import Serde, require_serde
from streamskit.state.rows import matches
from streamskit.views.charts import counted
from streamskit.views.controls import checked_count, field, offer, search_field
from streamskit.views.html import TableColumn, TableRow, as_text, cell, grid, moment, text_cell
from streamskit.views.live_view import LiveView
from streamskit.views.page import Page, Snapshot, condition, counted_until, rate
from streamskit.views.record_source import readable

ENDS = 16
"""Of how many partitions the end is shown."""

KEPT = 500
"""How many records of each partition are kept to search in."""

Decode = Callable[[bytes | None], str | None]
"""Turns bytes into text to read, None for null."""


@dataclass(frozen=True)
class TopicRow:
    """A record: key and value as text (None is null), its time in milliseconds since 1970, headers as text."""

    partition: int
    offset: int
    timestamp: int
    key: str | None
    value: str | None
    headers: str
    is_new: bool = False


@dataclass(frozen=True, kw_only=True)
class TopicSnapshot(Snapshot):
    """The tail of a topic at one moment, the newest record first.

    `ends` has the offset after the last record of each partition, `history` their sum at moments of the last seconds;
    `partition` and `search` say which of the `kept` records are shown; the table has room for
    `height` rows.
    """

    rows: Sequence[TopicRow]
    ends: Mapping[int, int]
    kept: int
    partition: int | None
    search: str
    history: Sequence[tuple[float, int]]
    height: int = 0

    def calm(self) -> "TopicSnapshot":
        """Return the same without marks, in a table no higher than its rows."""
        return replace(self, rows=[replace(row, is_new=False) for row in self.rows], height=0)


def decoder(serde: Serde | None) -> Decode:
    """Return how to read bytes: by a serde, or as text where they are text; as they are where that fails."""
    if serde is None:
        return lambda data: None if data is None else as_text(text_or_bytes(data))
    return lambda data: readable(serde, data)


def topic_snapshot(
    name: str, records: Sequence[Any], ends: Mapping[int, int], key: Decode, value: Decode, rows: int,
    partition: int | None = None, search: str = "", previous: TopicSnapshot | None = None,
    clock: Callable[[], float] = time.time,
) -> TopicSnapshot:  # fmt: skip
    """Return the newest records of a topic, as many as fit or are searched for.

    Args:
        name: the topic.
        records: the last records, in the order they came, of one partition or all.
        ends: the offset after the last record of each partition.
        key: reads keys.
        value: reads values.
        rows: how many to show at most.
        partition: of which partition they are, None for all.
        search: the beginning of the keys to show, or a whole key in double quotes.
        previous: the snapshot before, to tell what is new.
        clock: tells the time, in seconds since 1970.
    """
    known = previous.ends if previous is not None else ends
    newest = []
    for record in reversed(records):
        text = key(record.key)
        if search and not matches(text or "", search):
            continue
        is_new = previous is not None and record.offset >= known.get(record.partition, 0)
        headers = ", ".join(f"{name}={as_text(text_or_bytes(data))}" for name, data in record.headers or ())
        place = (record.partition, record.offset, record.timestamp)
        newest.append(TopicRow(*place, text, value(record.value), headers, is_new))
        if len(newest) == rows:
            break
    now = clock()
    history = counted_until(previous.history if previous else (), now, sum(ends.values()))
    return TopicSnapshot(name=name, rows=newest, ends=dict(ends), kept=len(records), partition=partition, search=search,
                         taken_at=now, history=history, height=rows)  # fmt: skip


# ---- the page --------------------------------------------------------------------------------------------------------

COLUMNS = (
    TableColumn("partition", 95),
    TableColumn("offset", 90),
    TableColumn("timestamp (UTC)", 190, left=True),
    TableColumn("key", 140, left=True),
    TableColumn("value", 340, left=True),
    TableColumn("headers", 160, left=True),
)


def facts(snapshot: TopicSnapshot, is_saved: bool) -> list[str]:
    """Say how much the topic holds and how fast it grows."""
    ends = ", ".join(f"{number}: {end:,}" for number, end in sorted(snapshot.ends.items())[:ENDS])
    if len(snapshot.ends) > ENDS:
        ends += f", …, {sum(snapshot.ends.values()):,} in all"
    speed = [] if is_saved else [f"{rate(snapshot.history) or 0:,.0f} records/s"]
    return [counted(len(snapshot.ends), "partition"), f"end offsets {ends}", *speed]


def table(snapshot: TopicSnapshot) -> str:
    """Return the records, under a line that says which."""
    lines = [_line(row) for row in snapshot.rows]
    return f'<div class="sk-quiet">{escape(_which(snapshot))}</div>' + grid(COLUMNS, lines, "new", snapshot.height)


def _line(row: TopicRow) -> TableRow:
    cells = [cell(str(row.partition)), cell(f"{row.offset:,}"), cell(moment(row.timestamp), left=True)]
    cells += map(text_cell, (row.key, row.value, row.headers))
    return TableRow(cells, "●", "new since the last refresh", "sk-new") if row.is_new else TableRow(cells)


def _which(snapshot: TopicSnapshot) -> str:
    count, search = len(snapshot.rows), snapshot.search
    where = "" if snapshot.partition is None else f" of partition {snapshot.partition}"
    among = f" among the last {snapshot.kept:,}{where}"
    if not count:
        return f"No key {condition(search)}{among}." if search else f"There are no records{where} yet."
    newest = f"the {counted(count, 'newest record')}, the newest first"
    return newest + (f", whose key {condition(search)},{among}" if search else where)


# ---- the view --------------------------------------------------------------------------------------------------------


class TopicView(LiveView):
    """A live view of the newest records of a topic, by partition, with keys, timestamps and headers.

    It reads only while a page shows it, and skips records instead of lagging behind.

    Args:
        broker: the broker, from `shared_broker()` or another.
        topic: the topic's name.
        key: how to read keys, a serde; where none is given, text is shown as text and all else as bytes.
        value: how to read values, likewise.
        refresh: how often to look, a duration of at least 50 ms.
        rows: how many records to show at most, 1 to 200.

    Raises:
        TypeError: `broker` is no broker.
        TopologyError: `key` or `value` is no serde.
        BrokerError: it has no such topic.
        ValueError: another argument is out of range.

    >>> TopicView(broker, "trades", value=Serdes.json("symbol string, price double, size int"))  # doctest: +SKIP

    Mirrors `kafka-console-consumer.sh` with `print.key`, `print.timestamp`, `print.partition` and `print.headers`.
    """

    PAGE = Page("topic", "The topic", facts, {"table": table})

    def __init__(
        self, broker: KafkaClient, topic: str, key: Serde | None = None, value: Serde | None = None,
        refresh: Duration = "500 ms", rows: int = 15,
    ) -> None:  # fmt: skip
        if not isinstance(broker, KafkaClient):
            raise TypeError(
                f"TopicView reads from a broker, and this is a {type(broker).__name__}: write "
                "TopicView(broker, 'a-topic'), with broker = shared_broker()."
            )
        for serde, what in ((key, "keys"), (value, "values")):
            if serde is not None:  # a record that it cannot read is shown as bytes, whatever it is
                require_serde(serde, f"TopicView of '{topic}': the serde of {what}")
        partitions = broker.describe_topic(topic).partitions
        self._topic, self._rows = topic, checked_count(rows, "rows", 200)
        self._key, self._value = decoder(key), decoder(value)
        self._tail = Tail(broker.connection, [own_name(topic)], KEPT)
        self._search = search_field(self.refresh)
        choices = _choices(range(partitions))
        self._partition = field(widgets.Dropdown, "Partition", 58, 150, self.refresh, options=choices)
        super().__init__(f"'{topic}'", refresh, [self._partition, self._search])

    def take(self, previous: TopicSnapshot | None) -> TopicSnapshot:
        """Look at the topic; while the view is paused, search only the records already read."""
        if previous is None or not self._pause.value:
            self._tail.look()
        if self._tail.partitions:  # a topic that is made again may have others
            offer(self._partition, _choices(self._tail.partitions))
        partition = self._partition.value
        ends = {where.partition: end for where, end in self._tail.ends.items()}
        records = self._tail.records(partition)
        key, value, search = self._key, self._value, self._search.value
        return topic_snapshot(self._topic, records, ends, key, value, self._rows, partition, search, previous)

    def rest(self) -> None:
        """Close the connection to the broker."""
        self._tail.close()


def _choices(partitions: Iterable[int]) -> list[tuple[str, int | None]]:
    return [("all", None), *((str(number), number) for number in partitions)]
