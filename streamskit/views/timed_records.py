"""The records that pictures are drawn of, and what is said where one cannot be drawn."""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

from streamskit.api.windows import Windowed
from streamskit.views.html import as_text


class TimedRecord(NamedTuple):
    """What a picture needs of a record; `timestamp` in milliseconds since 1970."""

    key: Any
    value: Any
    timestamp: int


def timed(record: Any) -> TimedRecord:
    """Return what a picture needs of a record: one that has these names, or a tuple.

    Raises:
        ValueError: it is neither.
    """
    if hasattr(record, "timestamp"):
        return TimedRecord(record.key, record.value, record.timestamp)
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
    except (TypeError, ValueError, OverflowError) as failure:
        raise ValueError(
            f"table_timeline draws numbers, and the row of {update.key!r} has the value {update.value!r}: say which "
            "number of it to draw, as in table_timeline(updates, value=lambda value: value['amount'])."
        ) from failure
