"""Durations as people write them: "5 seconds", a timedelta, or a number of milliseconds."""

import re
from datetime import timedelta
from operator import index
from typing import Any, SupportsIndex, TypeAlias

Duration: TypeAlias = str | int | timedelta

MILLISECONDS = {
    "ms": 1, "millisecond": 1, "s": 1000, "sec": 1000, "second": 1000, "m": 60_000, "min": 60_000, "minute": 60_000,
    "h": 3_600_000, "hour": 3_600_000, "d": 86_400_000, "day": 86_400_000, "week": 604_800_000,
}  # fmt: skip


def to_milliseconds(duration: Duration, title: str = "duration") -> int:
    """Return `duration` in whole milliseconds.

    Args:
        duration: "5 seconds", "1 hour 30 minutes", "250 ms"; a `timedelta`; or an int of milliseconds.
        title: what the duration is for, named in the error.

    Raises:
        ValueError: the text is not a duration, or it is negative.

    >>> to_milliseconds("5 seconds"), to_milliseconds(250)
    (5000, 250)
    """
    milliseconds = to_signed_milliseconds(duration, title)
    if milliseconds < 0:
        raise ValueError(f"{title} {duration!r} is negative: a duration is 0 or more.")
    return milliseconds


def to_signed_milliseconds(duration: Duration, title: str = "duration") -> int:
    """Return `duration` in whole milliseconds, which may be negative: "-5 seconds".

    Args:
        duration: as `to_milliseconds` takes it, the text with a minus before it if it is negative.
        title: what the duration is for, named in the error.

    Raises:
        ValueError: the text is not a duration.

    >>> to_signed_milliseconds("-5 seconds")
    -5000
    """
    if isinstance(duration, timedelta):
        return round(duration.total_seconds() * 1000)
    if isinstance(duration, int) and not isinstance(duration, bool):
        return duration
    if isinstance(duration, str):
        return _parse(duration, title)
    raise ValueError(
        f"{title} {duration!r} is not a duration: write '5 seconds', a timedelta or milliseconds as an int."
    )


def whole_milliseconds(value: Any) -> int | None:
    """Return a time in milliseconds as an int, also one of NumPy's; None for what is no whole number.

    >>> whole_milliseconds(1500), whole_milliseconds("1500"), whole_milliseconds(True)
    (1500, None, None)
    """
    return index(value) if isinstance(value, SupportsIndex) and not isinstance(value, bool) else None


def _parse(text: str, title: str) -> int:
    pattern, lowered = r"(\d+(?:\.\d+)?)\s*([a-z]+)", text.strip().lower()
    unsigned = lowered.removeprefix("-")
    parts, leftover = re.findall(pattern, unsigned), re.sub(pattern, "", unsigned).strip()
    units = [unit if unit in MILLISECONDS else unit.removesuffix("s") for _, unit in parts]
    if not parts or leftover or any(unit not in MILLISECONDS for unit in units):
        raise ValueError(
            f"{title} {text!r} is not a duration: write a number and a unit, like '5 seconds', '250 ms' or '1 hour'."
        )
    size = round(sum(float(number) * MILLISECONDS[unit] for (number, _), unit in zip(parts, units, strict=True)))
    return size if unsigned == lowered else -size


def spell(milliseconds: int) -> str:
    """Return the shortest plain text for a duration: 5000 is "5 s", 250 is "250 ms"."""
    for name, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if milliseconds and milliseconds % size == 0:
            return f"{milliseconds // size} {name}"
    return f"{milliseconds} ms"
