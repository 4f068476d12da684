"""The records that pictures are drawn of, and what is said where one cannot be drawn."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import product
from numbers import Integral
from typing import Any, NamedTuple

from streamskit.api.windows import JoinWindows, Windowed
from streamskit.views.charts import shortened
from streamskit.views.html import as_text


class TimedRecord(NamedTuple):
    """What a picture needs of a record; `timestamp` in milliseconds since 1970."""

    key: Any
    value: Any
    timestamp: int


Pair = tuple[str | None, str | None]
"""The labels of two joined records, None for a side that is missing."""


def timed(record: Any) -> TimedRecord:
    """Return what a picture needs of a record: one that has these names, or a tuple.

    Raises:
        ValueError: it is neither, or its time is no whole number.
    """
    taken = TimedRecord(record.key, record.value, record.timestamp) if hasattr(record, "timestamp") else _taken(record)
    time: Any = taken.timestamp
    if not isinstance(time, Integral):
        raise ValueError(
            f"The record of {taken.key!r} has the time {time!r}: give a whole number of milliseconds since "
            "1970, such as at('09:00') of streamskit.datasets returns."
        )
    return taken


def _taken(record: Any) -> TimedRecord:
    if not isinstance(record, Sequence) or isinstance(record, str) or len(record) < 3:
        raise ValueError(
            f"{record!r} is no record with a time: give (key, value, timestamp), with milliseconds since 1970, or what "
            "read_records_to_list() returns."
        )
    return TimedRecord(*record[:3])


def keyed(record: Any) -> TimedRecord:
    """Return a record as `timed` does, with a key that can be looked up."""
    taken = timed(record)
    return taken._replace(key=_hashable(taken.key))


def _hashable(key: Any) -> Any:
    """Return a key, or what it is called where it is a list or has fields, which cannot be looked up."""
    try:
        hash(key)
    except TypeError:
        return key._replace(key=as_text(key.key)) if isinstance(key, Windowed) else as_text(key)
    return key


def which_dropped(came: Sequence[TimedRecord], lost: Collection[TimedRecord]) -> list[bool]:
    """Return for each record whether it was dropped; of equal ones the last, as stream time only moves on.

    >>> late = TimedRecord("tv", 1, 1000)
    >>> which_dropped([late, TimedRecord("tv", 2, 9000), late], [late])
    [False, False, True]
    """
    left, found = list(lost), list[bool]()
    for record in reversed(came):
        found.append(record in left)
        if found[-1]:
            left.remove(record)
    return found[::-1]


def window_of(key: Any) -> Windowed:
    """Return the key of a result, which is a window.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(key, Windowed):
        raise ValueError(
            f"windows_timeline draws windows, and a result has the key {key!r}, which is none: give as results what "
            "comes out of a windowed aggregation."
        )
    return key


def check_known(labels: Iterable[Any], known: Collection[str], name: str) -> None:
    """Check that pairs name records that are there.

    Args:
        labels: what the pairs have for one side, None where it is missing.
        known: the labels of the records of that side.
        name: what the side is called.

    Raises:
        ValueError: a pair names another.
    """
    for label in labels:
        if label is not None and str(label) not in known:
            there = ", ".join(map(repr, known)) or "none"
            raise ValueError(
                f"A pair names {label!r}, which is no record of {name}: there are {there}. A pair has what label= "
                "returns for the two values."
            )


def records_of_pairs(
    pairs: Iterable[Pair], sides: Sequence[Sequence[TimedRecord]], labels: Sequence[Sequence[str]],
    windows: JoinWindows | None = None, rows: bool = False,
) -> list[tuple[TimedRecord | None, TimedRecord | None]]:  # fmt: skip
    """Return the records that pairs name; where several have a label, each pair takes the likeliest not taken yet.

    Likely are two of one key whose times the windows allow, and beside a missing side a record that has met none.

    Args:
        pairs: the labels of the joined records, left and right, with None where a side is missing.
        sides: the left and the right records.
        labels: their labels.
        windows: how far apart joined records may be, if that is known.
        rows: whether the right ones are rows: the first of a label stands for all, as it does not matter where it is.
    """
    left, right = (_by_label(*side) for side in zip(sides, labels, strict=True))
    right = {label: own[:1] if rows else own for label, own in right.items()}
    met = set[int]()

    def unlikely(pair: tuple[TimedRecord | None, TimedRecord | None]) -> tuple[bool, bool]:
        one, two = pair
        if one is None or two is None:
            return (id(one) in met or id(two) in met), False
        is_near = windows is None or -windows.before_ms <= two.timestamp - one.timestamp <= windows.after_ms
        return not is_near, one.key != two.key

    named, found = Counter(pairs), []
    for (one, two), count in sorted(named.items(), key=lambda item: None in item[0]):
        likely = sorted(product(left[one], right[two]), key=unlikely)[:count]
        met |= {id(record) for pair in likely for record in pair if None not in pair}
        found += likely
    return found


def _by_label(records: Sequence[TimedRecord], labels: Sequence[str]) -> dict[str | None, list[TimedRecord | None]]:
    found: dict[str | None, list[TimedRecord | None]] = {None: [None]}
    for record, label in zip(records, labels, strict=True):
        found.setdefault(label, []).append(record)
    return found


def height_of(update: TimedRecord, value: Callable[[Any], float] | None) -> float:
    """Return the number that is drawn for an update of a table; NaN for a deletion.

    Args:
        update: the update.
        value: returns a number for its value, which is one itself when not given.

    Raises:
        ValueError: it has no number.
    """
    if update.value is None:
        return math.nan
    try:
        return float(update.value if value is None else value(update.value))
    except (TypeError, ValueError, OverflowError, LookupError, AttributeError) as failure:
        whole = shortened(repr(update.value), 60)
        raise ValueError(
            f"table_timeline draws numbers, and the row of {update.key!r} has the value {whole}: say which "
            "number of it to draw, as in table_timeline(updates, value=lambda value: value['amount'])."
        ) from failure
