"""The pictures of `timelines` in words, for readers who cannot see them; made from the same records."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from streamskit.views.charts import dated

MOST = 40
"""How many records, windows or pairs are named at most."""

Text = Callable[[Any], str]


def clock_for(timestamps: Iterable[int]) -> Callable[[int], str]:
    """Return what writes times of a column, an axis or a text as times of day in UTC, no finer than they have to be.

    If one of them has seconds, all have them: beside 00:00:50, 00:01 would read as a second. A time that no
    calendar has is its number.

    >>> [*map(clock_for([60_000, 0]), [60_000, 0])], [*map(clock_for([50_000, 60_001]), [50_000, 60_000, 60_001])]
    (['00:01', '00:00'], ['00:00:50', '00:01:00', '00:01:00.001'])
    """
    whole = "seconds" if any(timestamp % 60_000 for timestamp in timestamps) else "minutes"

    def of(at: datetime) -> str:
        return at.time().isoformat("milliseconds" if at.microsecond else whole)

    return lambda timestamp: dated(timestamp, of)


def windows_in_words(windows: Mapping[Any, Any], dropped: Sequence[Any], text: Text, record_text: Text) -> str:
    """Say what each window came to, and which records came too late."""
    ends = (end for window in windows for end in (window.start, window.end))
    clock = clock_for([*ends, *(record.timestamp for record in dropped)])
    said = [f"{w.key} {clock(w.start)} to {clock(w.end)}: {text(value)}" for w, value in windows.items()]
    lost = [f"{record.key} {record_text(record.value)} at {clock(record.timestamp)}" for record in dropped]
    return "Windows in event time. " + _listed(said) + (f" Too late and dropped: {_listed(lost)}" if lost else "")


def pairs_in_words(pairs: Iterable[tuple[Any, Any]], names: tuple[str, str]) -> str:
    """Say which records of two sides met."""
    said = [f"{'null' if one is None else one} with {'null' if two is None else two}" for one, two in pairs]
    return f"Joined records of {names[0]} and {names[1]} in event time. " + _listed(said)


def arrivals_in_words(records: Sequence[tuple[Any, bool]], text: Text) -> str:
    """Say in the order of arrival when each record happened, what stream time was with it, and whether it was late."""
    said, now = [], 0
    clock = clock_for(record.timestamp for record, _ in records)
    for record, is_late in records:
        now = max(now, record.timestamp)
        late = ", too late" if is_late else ""
        said.append(f"{text(record)} from {clock(record.timestamp)}, stream time {clock(now)}{late}")
    return "Records in the order of arrival. " + _listed(said)


def rows_in_words(rows: Mapping[Any, Sequence[Any]], text: Text) -> str:
    """Say how each row of a table changed."""
    clock = clock_for(each.timestamp for updates in rows.values() for each in updates)
    said = [
        f"{key}: " + ", ".join(f"{_gone(each, text)} at {clock(each.timestamp)}" for each in updates)
        for key, updates in rows.items()
    ]
    return "The rows of a table over time. " + _listed(said)


def _gone(update: Any, text: Text) -> str:
    return "deleted" if update.value is None else text(update)


def _listed(parts: Sequence[str]) -> str:
    more = f"; and {len(parts) - MOST} more" if len(parts) > MOST else ""
    return "; ".join(parts[:MOST]) + more + "."
