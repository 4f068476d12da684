"""When the course's records happen, and how to replay them at their own pace."""

import itertools
import time
from collections.abc import Iterable, Iterator
from datetime import time as time_of_day
from typing import Any

from streamskit.common.errors import StreamsError
from streamskit.course.datasets.arguments import checked

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
"""Durations in milliseconds."""

NEW_YEAR = 1_767_225_600_000
"""2026-01-01 00:00:00 UTC in milliseconds: when the course's records begin."""


def numbers(count: int | None) -> Iterable[int]:
    """Return the numbers 0, 1, 2 and so on, `count` of them; without a count they never end.

    >>> list(numbers(3))
    [0, 1, 2]
    """
    return itertools.count() if count is None else range(count)


@checked
def replay(records: Iterable[dict[str, Any]], speed: float = 1.0) -> Iterator[dict[str, Any]]:
    """Yield records at the pace of their timestamps.

    Args:
        records: in the order of their `timestamp`.
        speed: 1 takes as long as it took; 60 packs a minute into a second.

    Raises:
        StreamsError: `speed` is not above 0.

    >>> broker.produce("trades", replay(trades(1_000), speed=10))  # doctest: +SKIP
    """
    first, began = None, time.monotonic()
    for record in records:
        first = record["timestamp"] if first is None else first
        due = began + (record["timestamp"] - first) / 1000 / speed
        if (ahead := due - time.monotonic()) > 0:
            time.sleep(ahead)
        yield record


def at(clock: str) -> int:
    """Return a time of the course's first day in milliseconds since 1970.

    Args:
        clock: hours and minutes, or hours, minutes and seconds, in UTC.

    Raises:
        StreamsError: it is no time of day.

    >>> at("00:01:30") - NEW_YEAR
    90000
    """
    try:
        hours, minutes, seconds = (int(part) for part in f"{clock}:0".split(":")[:3])
        time_of_day(hours, minutes, seconds)
    except ValueError:
        raise StreamsError(f"at({clock!r}) is no time of day: write hours and minutes, such as '09:05'.") from None
    return NEW_YEAR + ((hours * 60 + minutes) * 60 + seconds) * 1000
