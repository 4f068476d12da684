"""Windows: how a grouped stream is cut along event time. Plain values; nothing here knows Spark."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from streamskit.common.durations import Duration, spell, to_milliseconds, to_signed_milliseconds, whole_milliseconds

FOREVER = 2**63 - 1
"""The last time that there is, and the longest duration, in milliseconds."""


class Windowed(NamedTuple):
    """A key and the window it was aggregated in; `start` and `end` in milliseconds.

    The end is exclusive, but inclusive for sessions and sliding windows.

    Mirrors `org.apache.kafka.streams.kstream.Windowed`.

    >>> Windowed("KO", 0, 5000)
    Windowed(key='KO', start=0, end=5000)
    """

    key: Any
    start: int
    end: int


@dataclass(frozen=True)
class TimeWindows:
    """Windows of a fixed size that start every `advance`: tumbling when the two are equal, else hopping.

    Made by `of_size_with_no_grace` or `of_size_and_grace`. A window accepts no more records once stream time
    reaches its end plus `grace`. Mirrors `org.apache.kafka.streams.kstream.TimeWindows`.

    >>> TimeWindows.of_size_with_no_grace("5 seconds").advance_by("1 second")
    TimeWindows(size=5000, advance=1000, grace=0)
    """

    size: int
    advance: int
    grace: int

    @classmethod
    def of_size_with_no_grace(cls, size: Duration) -> "TimeWindows":
        """Return tumbling windows that close as soon as stream time reaches their end.

        Args:
            size: the length of a window: "5 seconds", a `timedelta`, or milliseconds.

        Raises:
            ValueError: the size is 0 or not a duration.

        >>> TimeWindows.of_size_with_no_grace("5 seconds")
        TimeWindows(size=5000, advance=5000, grace=0)

        Mirrors `TimeWindows#ofSizeWithNoGrace`.
        """
        return cls.of_size_and_grace(size, 0)

    @classmethod
    def of_size_and_grace(cls, size: Duration, grace: Duration) -> "TimeWindows":
        """Return tumbling windows that stay open for late records for some time past their end.

        Args:
            size: the length of a window: "5 seconds", a `timedelta`, or milliseconds.
            grace: how long after its end a window still accepts late records, in the same form.

        Raises:
            ValueError: the size is 0, or one of the two is not a duration.

        >>> TimeWindows.of_size_and_grace("5 seconds", "1 second")
        TimeWindows(size=5000, advance=5000, grace=1000)

        Mirrors `TimeWindows#ofSizeAndGrace`.
        """
        if (milliseconds := to_milliseconds(size, "window size")) == 0:
            raise ValueError("A window of size 0 holds no record: give it at least 1 ms.")
        return cls(milliseconds, milliseconds, to_milliseconds(grace, "grace"))

    def advance_by(self, advance: Duration) -> "TimeWindows":
        """Return the same windows starting every `advance`, which makes them overlap (hopping windows).

        Args:
            advance: how long after a window the next one starts: "1 second", a `timedelta`, or milliseconds.

        Raises:
            ValueError: the advance is 0 or longer than the window, which would leave gaps.

        >>> TimeWindows.of_size_with_no_grace("5 seconds").advance_by("1 second")
        TimeWindows(size=5000, advance=1000, grace=0)

        Mirrors `TimeWindows#advanceBy`.
        """
        step = to_milliseconds(advance, "advance")
        if not 0 < step <= self.size:
            raise ValueError(
                f"Windows of {self.size} ms cannot advance by {step} ms: choose more than 0, at most the size."
            )
        return replace(self, advance=step)

    @property
    def retention(self) -> int:
        """How long a store keeps a window by default, in milliseconds: no longer than it is open."""
        return self.size + self.grace

    def starting_for(self, timestamp: int) -> list[int]:
        """Return the starts of all windows that hold a timestamp, in order; none is negative.

        Args:
            timestamp: milliseconds since 1970.

        >>> TimeWindows.of_size_with_no_grace("5 seconds").advance_by("2 seconds").starting_for(6500)
        [2000, 4000, 6000]
        """
        first = max(0, timestamp - self.size + self.advance) // self.advance * self.advance
        return list(range(first, timestamp + 1, self.advance))


@dataclass(frozen=True)
class SlidingWindows:
    """Windows that end at a record and reach back by `time_difference`, both ends inclusive.

    Mirrors `org.apache.kafka.streams.kstream.SlidingWindows`.

    >>> SlidingWindows.of_time_difference_with_no_grace("10 minutes")
    SlidingWindows(time_difference=600000, grace=0)
    """

    time_difference: int
    grace: int

    @classmethod
    def of_time_difference_with_no_grace(cls, time_difference: Duration) -> "SlidingWindows":
        """Return windows of records at most `time_difference` apart that take no late records.

        Args:
            time_difference: "10 minutes", a `timedelta`, or milliseconds.

        Raises:
            ValueError: it is not a duration.

        >>> SlidingWindows.of_time_difference_with_no_grace("10 minutes")
        SlidingWindows(time_difference=600000, grace=0)

        Mirrors `SlidingWindows#ofTimeDifferenceWithNoGrace`.
        """
        return cls.of_time_difference_and_grace(time_difference, 0)

    @classmethod
    def of_time_difference_and_grace(cls, time_difference: Duration, grace: Duration) -> "SlidingWindows":
        """Return windows of records at most `time_difference` apart that take late records for some time.

        Args:
            time_difference: "10 minutes", a `timedelta`, or milliseconds.
            grace: how long after its end a window still accepts late records, in the same form.

        Raises:
            ValueError: one of the two is not a duration.

        >>> SlidingWindows.of_time_difference_and_grace("10 minutes", "1 minute")
        SlidingWindows(time_difference=600000, grace=60000)

        Mirrors `SlidingWindows#ofTimeDifferenceAndGrace`.
        """
        return cls(to_milliseconds(time_difference, "time difference"), to_milliseconds(grace, "grace"))

    @property
    def size(self) -> int:
        """The distance from a window's start to its end, as written in the key, in milliseconds."""
        return self.time_difference

    @property
    def retention(self) -> int:
        """How long a store keeps a window by default, in milliseconds: a record can also create the next window."""
        return 2 * self.time_difference + self.grace


@dataclass(frozen=True)
class SessionWindows:
    """Windows as long as a key's activity: records up to `gap` apart share one.

    Mirrors `org.apache.kafka.streams.kstream.SessionWindows`.

    >>> SessionWindows.of_inactivity_gap_with_no_grace("5 minutes")
    SessionWindows(gap=300000, grace=0)
    """

    gap: int
    grace: int

    @classmethod
    def of_inactivity_gap_with_no_grace(cls, gap: Duration) -> "SessionWindows":
        """Return sessions that end after a gap without a record, and take no late records.

        Args:
            gap: "5 minutes", a `timedelta`, or milliseconds; with 0 no two records share a session.

        Raises:
            ValueError: the gap is not a duration.

        >>> SessionWindows.of_inactivity_gap_with_no_grace("5 minutes")
        SessionWindows(gap=300000, grace=0)

        Mirrors `SessionWindows#ofInactivityGapWithNoGrace`.
        """
        return cls.of_inactivity_gap_and_grace(gap, 0)

    @classmethod
    def of_inactivity_gap_and_grace(cls, gap: Duration, grace: Duration) -> "SessionWindows":
        """Return sessions that end after a gap without a record, and accept late records for some time after that.

        Args:
            gap: "5 minutes", a `timedelta`, or milliseconds; with 0 only records of the same time share a session, and
                with a grace of 0 as well none do.
            grace: how long after its end a session still accepts late records, in the same form.

        Raises:
            ValueError: one of the two is not a duration.

        >>> SessionWindows.of_inactivity_gap_and_grace("5 minutes", "30 seconds")
        SessionWindows(gap=300000, grace=30000)

        Mirrors `SessionWindows#ofInactivityGapAndGrace`.
        """
        return cls(to_milliseconds(gap, "inactivity gap"), to_milliseconds(grace, "grace"))

    @property
    def retention(self) -> int:
        """How long a store keeps a session by default, in milliseconds."""
        return self.gap + self.grace


@dataclass(frozen=True)
class UnlimitedWindows:
    """One window for each key, which begins at a time and never ends, so it never closes and is kept forever.

    Records from before its start are in no window; they do not count as dropped. The `grace` is always 0.
    Mirrors `org.apache.kafka.streams.kstream.UnlimitedWindows`.

    >>> UnlimitedWindows.of().start_on(1_767_225_600_000)
    UnlimitedWindows(start=1767225600000, grace=0)
    """

    start: int = 0
    grace: int = 0

    @classmethod
    def of(cls) -> "UnlimitedWindows":
        """Return a window that begins in 1970.

        >>> UnlimitedWindows.of()
        UnlimitedWindows(start=0, grace=0)

        Mirrors `UnlimitedWindows#of`.
        """
        return cls()

    def start_on(self, start: int) -> "UnlimitedWindows":
        """Return a window that begins at another time.

        Args:
            start: in milliseconds since 1970.

        Raises:
            ValueError: it is negative, or no whole number.

        >>> UnlimitedWindows.of().start_on(60_000)
        UnlimitedWindows(start=60000, grace=0)

        Mirrors `UnlimitedWindows#startOn`.
        """
        number = whole_milliseconds(start)
        if number is None or not 0 <= number < FOREVER:
            raise ValueError(f"A window cannot start on {start!r}: give milliseconds since 1970, an int of 0 or more.")
        return replace(self, start=number)

    @property
    def size(self) -> int:
        """How far the end, which is the last of all times, is from the start, in milliseconds."""
        return FOREVER - self.start

    @property
    def retention(self) -> int:
        """How long a store keeps the window by default, in milliseconds: forever."""
        return FOREVER

    def starting_for(self, timestamp: int) -> list[int]:
        """Return the starts of all windows that hold a timestamp: of the one window, or of none.

        Args:
            timestamp: milliseconds since 1970.

        >>> UnlimitedWindows.of().start_on(1000).starting_for(999)
        []
        """
        return [self.start] if timestamp >= self.start else []


AnyWindows = TimeWindows | SlidingWindows | SessionWindows | UnlimitedWindows


@dataclass(frozen=True)
class JoinWindows:
    """How far apart two records of a stream-stream join may be: the right one up to `before` earlier or `after` later.

    Mirrors `org.apache.kafka.streams.kstream.JoinWindows`.

    >>> JoinWindows.of_time_difference_with_no_grace("10 seconds").after("1 minute")
    JoinWindows(before_ms=10000, after_ms=60000, grace=0)
    """

    before_ms: int
    after_ms: int
    grace: int

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError(
                f"No record is in this window: it begins {spell(-self.before_ms)} after the left record, and ends "
                f"{spell(self.after_ms)} after it. before and after have to be 0 or more together."
            )

    @classmethod
    def of_time_difference_with_no_grace(cls, time_difference: Duration) -> "JoinWindows":
        """Return a window that reaches equally far in both directions and accepts no late records.

        Args:
            time_difference: how far apart two records may be: "10 seconds", a `timedelta`, or milliseconds.

        Raises:
            ValueError: it is not a duration.

        >>> JoinWindows.of_time_difference_with_no_grace("10 seconds")
        JoinWindows(before_ms=10000, after_ms=10000, grace=0)

        Mirrors `JoinWindows#ofTimeDifferenceWithNoGrace`.
        """
        return cls.of_time_difference_and_grace(time_difference, 0)

    @classmethod
    def of_time_difference_and_grace(cls, time_difference: Duration, grace: Duration) -> "JoinWindows":
        """Return a window that reaches equally far in both directions and waits for late records.

        Args:
            time_difference: how far apart two records may be: "10 seconds", a `timedelta`, or milliseconds.
            grace: how much longer the window waits for late records, in the same form.

        Raises:
            ValueError: one of the two is not a duration.

        >>> JoinWindows.of_time_difference_and_grace("10 seconds", "1 minute")
        JoinWindows(before_ms=10000, after_ms=10000, grace=60000)

        Mirrors `JoinWindows#ofTimeDifferenceAndGrace`.
        """
        milliseconds = to_milliseconds(time_difference, "time difference")
        return cls(milliseconds, milliseconds, to_milliseconds(grace, "grace"))

    def before(self, time_difference: Duration) -> "JoinWindows":
        """Return the same window with a different reach back in time.

        Args:
            time_difference: how much earlier the right record may be: "1 minute", a `timedelta`, or milliseconds; if it
                is negative, how much later it has to be.

        Raises:
            ValueError: it is not a duration, or no record could be in the window.

        >>> JoinWindows.of_time_difference_with_no_grace("10 seconds").before("-2 seconds")
        JoinWindows(before_ms=-2000, after_ms=10000, grace=0)

        Mirrors `JoinWindows#before`.
        """
        return replace(self, before_ms=to_signed_milliseconds(time_difference, "before"))

    def after(self, time_difference: Duration) -> "JoinWindows":
        """Return the same window with a different reach forward in time.

        Args:
            time_difference: how much later the right record may be: "1 minute", a `timedelta`, or milliseconds; if it
                is negative, how much earlier it has to be.

        Raises:
            ValueError: it is not a duration, or no record could be in the window.

        >>> JoinWindows.of_time_difference_with_no_grace("10 seconds").after("1 minute")
        JoinWindows(before_ms=10000, after_ms=60000, grace=0)

        Mirrors `JoinWindows#after`.
        """
        return replace(self, after_ms=to_signed_milliseconds(time_difference, "after"))

    @property
    def size(self) -> int:
        """The whole width in milliseconds."""
        return self.before_ms + self.after_ms

    @property
    def retention(self) -> int:
        """How long each side's records are kept, in milliseconds."""
        return self.size + self.grace
