"""Where an application begins to read a topic that it has not read before."""

import re
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from streamskit.common.durations import Duration, to_milliseconds

KINDS = ("earliest", "latest", "none", "by_duration")
ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
"""A duration as Java writes it, such as PT1H30M."""


@dataclass(frozen=True)
class AutoOffsetReset:
    """Where to begin in a topic that was not read before: at its first record, after its last, or some time ago.

    Args:
        kind: "earliest", "latest", "none" (which refuses to begin) or "by_duration".
        milliseconds: how long ago, for "by_duration".

    >>> AutoOffsetReset.latest(), AutoOffsetReset.by_duration("1 hour")
    (AutoOffsetReset('latest'), AutoOffsetReset('by_duration:PT3600S'))

    Mirrors `org.apache.kafka.streams.AutoOffsetReset` (KIP-1106), and the consumer's `auto.offset.reset`.
    """

    kind: str = "earliest"
    milliseconds: int = 0

    def __repr__(self) -> str:
        return f"AutoOffsetReset({str(self)!r})"

    def __str__(self) -> str:
        return f"{self.kind}:PT{Decimal(self.milliseconds) / 1000:f}S" if self.kind == "by_duration" else self.kind

    @classmethod
    def earliest(cls) -> "AutoOffsetReset":
        """Begin with the first record in the topic."""
        return cls("earliest")

    @classmethod
    def latest(cls) -> "AutoOffsetReset":
        """Begin with the first record that comes after the start."""
        return cls("latest")

    @classmethod
    def none(cls) -> "AutoOffsetReset":
        """Refuse to begin: only an application that has run before can continue."""
        return cls("none")

    @classmethod
    def by_duration(cls, duration: Duration) -> "AutoOffsetReset":
        """Begin with the first record whose timestamp is no older than this.

        Args:
            duration: how long before the start: "1 hour", a `timedelta`, or milliseconds.

        Raises:
            ValueError: it is no duration.
        """
        return cls("by_duration", to_milliseconds(duration))

    @classmethod
    def of(cls, given: "AutoOffsetReset | str") -> "AutoOffsetReset":
        """Return what a text stands for: "earliest", "latest", "none", or "by_duration:PT1H" as in Kafka.

        Raises:
            ValueError: it stands for nothing.

        >>> AutoOffsetReset.of("by_duration:PT1M").milliseconds
        60000
        """
        if isinstance(given, AutoOffsetReset):
            return given
        kind, _, duration = str(given).partition(":")
        if kind not in KINDS or bool(duration) != (kind == "by_duration"):
            raise ValueError(
                f"auto_offset_reset={given!r} is not known: write 'earliest', 'latest', 'none' or "
                "AutoOffsetReset.by_duration('1 hour')."
            )
        return cls(kind, _milliseconds(duration)) if duration else cls(kind)


def _milliseconds(text: str) -> int:
    found = ISO.fullmatch(text)
    if found is None or not any(found.groups()):
        return to_milliseconds(text, "auto_offset_reset")
    days, hours, minutes, seconds = (float(each or 0) for each in found.groups())
    return round(timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds).total_seconds() * 1000)
