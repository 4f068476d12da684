"""Timestamp extractors: where a record's time comes from, and what becomes of a record without a valid one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TimestampExtractor:
    """Takes a record's time from its value, or uses the broker's timestamp, in milliseconds since 1970.

    `extract` is a Column function of the value, or of key and value; None takes the record's own timestamp. `invalid`
    says what to do if the time is null or negative: "fail", "skip" or "partition time", which is the latest time read
    from the same partition so far. `missing` says what to do if it is null, where that should differ: "partition time"
    takes that time, and follows `invalid` as long as there is none.

    Mirrors `org.apache.kafka.streams.processor.TimestampExtractor`.

    >>> TimestampExtractor.of(lambda v: v.ts, invalid="skip")
    """

    extract: Callable[..., Any] | None = None
    invalid: str = "fail"
    missing: str | None = None

    def __post_init__(self) -> None:
        for name, choice in (("invalid", self.invalid), ("missing", self.missing)):
            if choice not in INVALID and (name, choice) != ("missing", None):
                raise ValueError(f"{name}={choice!r} is not known: choose {', '.join(map(repr, INVALID))}.")

    @classmethod
    def of(cls, extract: Callable[..., Any], invalid: str = "fail", missing: str | None = None) -> "TimestampExtractor":
        """Return an extractor that gets a record's time from a function.

        Args:
            extract: a Column function of the value, or of key and value, that returns milliseconds since 1970.
            invalid: what to do when that is null or negative: "fail", "skip" or "partition time".
            missing: what to do when it is null, if that should differ; the same choices.

        Raises:
            ValueError: there is no such choice.

        >>> by_time = TimestampExtractor.of(lambda v: v.time, invalid="partition time")
        >>> payments = builder.stream("payments", value=Serdes.json("time long"), timestamps=by_time)

        Mirrors `TimestampExtractor#extract`.
        """
        return cls(extract, invalid, missing)

    @classmethod
    def fail_on_invalid(cls) -> "TimestampExtractor":
        """Take the record's own time and fail where it is negative.

        >>> TimestampExtractor.fail_on_invalid()
        TimestampExtractor(extract=None, invalid='fail', missing=None)

        Mirrors `FailOnInvalidTimestamp`.
        """
        return cls()

    @classmethod
    def log_and_skip_on_invalid(cls) -> "TimestampExtractor":
        """Take the record's own time and drop the record where it is negative.

        >>> TimestampExtractor.log_and_skip_on_invalid()
        TimestampExtractor(extract=None, invalid='skip', missing=None)

        Mirrors `LogAndSkipOnInvalidTimestamp`.
        """
        return cls(None, "skip")

    @classmethod
    def use_partition_time_on_invalid(cls) -> "TimestampExtractor":
        """Take the record's own time, or the partition's where it is negative.

        >>> TimestampExtractor.use_partition_time_on_invalid()
        TimestampExtractor(extract=None, invalid='partition time', missing=None)

        Mirrors `UsePartitionTimeOnInvalidTimestamp`.
        """
        return cls(None, "partition time")


INVALID = ("fail", "skip", "partition time")
