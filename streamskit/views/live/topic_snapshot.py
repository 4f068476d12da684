"""What a view shows of the tail of a topic at one moment, as plain values."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamskit.kafka.encoding import text_or_bytes
from streamskit.serdes import Serde
from streamskit.views.live.html import as_text
from streamskit.views.live.record_source import readable
from streamskit.views.live.snapshot import RATE_OVER
from streamskit.views.live.store_source import matches

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


@dataclass(frozen=True)
class TopicSnapshot:
    """The tail of a topic at one moment, the newest record first; `taken_at` in seconds since 1970.

    `ends` has the offset after the last record of each partition, `history` their sum at moments of the last seconds;
    `partition` and `search` say which records are shown, of `kept` that are there to search in.
    """

    name: str
    rows: Sequence[TopicRow]
    ends: Mapping[int, int]
    kept: int
    partition: int | None
    search: str
    taken_at: float
    history: Sequence[tuple[float, int]]
    stopped: str = ""

    @property
    def rate(self) -> float:
        """Records a second that were written, over the last seconds."""
        (since, before), (until, after) = self.history[0], self.history[-1]
        return max(0.0, (after - before) / (until - since)) if until - since > 0.1 else 0.0


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
    """Return the newest records of a topic that are wanted.

    Args:
        name: the topic.
        records: the last records, in the order they came, of one partition or all.
        ends: the offset after the last record of each partition.
        key: reads keys.
        value: reads values.
        rows: how many to show at most.
        partition: of which partition they are, None for all.
        search: how the keys begin that are to be shown, or a whole key in double quotes.
        previous: the snapshot before, to tell what is new.
        clock: tells the time, in seconds since 1970.
    """
    found = []
    known = previous.ends if previous is not None else ends
    for record in reversed(records):
        read = key(record.key)
        if search and not matches(read or "", search):
            continue
        is_new = previous is not None and record.offset >= known.get(record.partition, 0)
        headers = ", ".join(f"{name}={as_text(text_or_bytes(data))}" for name, data in record.headers or ())
        found.append(
            TopicRow(record.partition, record.offset, record.timestamp, read, value(record.value), headers, is_new)
        )
        if len(found) == rows:
            break
    now = clock()
    counts = [*(previous.history if previous else ()), (now, sum(ends.values()))]
    while len(counts) > 2 and counts[1][0] < now - RATE_OVER:
        counts.pop(0)
    return TopicSnapshot(name, found, dict(ends), len(records), partition, search, now, counts)
