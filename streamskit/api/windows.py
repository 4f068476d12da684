"""Windows: how a grouped stream is cut along event time. Plain values; nothing here knows Spark."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from streamskit.common.durations import Duration, to_milliseconds


def _positive(duration: Duration, title: str, refusal: str) -> int:
    """Return a duration in milliseconds.

    Raises:
        ValueError: it is no duration, or 0, of which `refusal` says what is wrong.
    """
    if (milliseconds := to_milliseconds(duration, title)) == 0:
        raise ValueError(refusal)
    return milliseconds


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

    Made by `of_size_with_no_grace` or `of_size_and_grace`. A record later than stream time minus `grace`
    no longer counts for a window that has ended. Mirrors `org.apache.kafka.streams.kstream.TimeWindows`.

    >>> TimeWindows.of_size_with_no_grace("5 seconds").advance_by("1 second")
    TimeWindows(size=5000, advance=1000, grace=0)
    """

    size: int
    advance: int
    grace: int

    @classmethod
    def of_size_with_no_grace(cls, size: Duration) -> "TimeWindows":
        """Return tumbling windows of `size` that close as soon as stream time reaches their end."""
        return cls.of_size_and_grace(size, 0)

    @classmethod
    def of_size_and_grace(cls, size: Duration, grace: Duration) -> "TimeWindows":
        """Return tumbling windows of `size` that stay open for late records for `grace` past their end.

        Raises:
            ValueError: the size is 0, or one of the two is not a duration.
        """
        milliseconds = _positive(size, "window size", "A window of size 0 holds no record: give it at least 1 ms.")
        return cls(milliseconds, milliseconds, to_milliseconds(grace, "grace"))

    def advance_by(self, advance: Duration) -> "TimeWindows":
        """Return the same windows starting every `advance`, which makes them overlap (hopping windows).

        Raises:
            ValueError: the advance is 0 or longer than the window, which would leave gaps.
        """
        step = to_milliseconds(advance, "advance")
        if not 0 < step <= self.size:
            raise ValueError(
                f"Windows of {self.size} ms cannot advance by {step} ms: choose more than 0, at most the size."
            )
        return replace(self, advance=step)

    @property
    def retention(self) -> int:
        """How long a store keeps a window when nothing else is said, in milliseconds: no longer than it is open."""
        return self.size + self.grace

    def starting_for(self, timestamp: int) -> list[int]:
        """Return the starts of all windows that hold `timestamp`, in order; none is negative."""
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
        """Return windows of records at most `time_difference` apart, without patience for late ones."""
        return cls.of_time_difference_and_grace(time_difference, 0)

    @classmethod
    def of_time_difference_and_grace(cls, time_difference: Duration, grace: Duration) -> "SlidingWindows":
        """Return windows of records at most `time_difference` apart that take late records for `grace`."""
        return cls(to_milliseconds(time_difference, "time difference"), to_milliseconds(grace, "grace"))

    @property
    def size(self) -> int:
        """The distance from a window's start to its end, as it stands in the key, in milliseconds."""
        return self.time_difference

    @property
    def retention(self) -> int:
        """How long a store keeps a window when nothing else is said, in milliseconds."""
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
        """Return sessions that end after `gap` without a record, without patience for late ones."""
        return cls.of_inactivity_gap_and_grace(gap, 0)

    @classmethod
    def of_inactivity_gap_and_grace(cls, gap: Duration, grace: Duration) -> "SessionWindows":
        """Return sessions that end after `gap` without a record, and take late ones for `grace` more.

        Raises:
            ValueError: the gap is 0, or one of the two is not a duration.
        """
        milliseconds = _positive(gap, "inactivity gap", "Sessions need an inactivity gap: give it at least 1 ms.")
        return cls(milliseconds, to_milliseconds(grace, "grace"))

    @property
    def retention(self) -> int:
        """How long a store keeps a session when nothing else is said, in milliseconds."""
        return self.gap + self.grace


AnyWindows = TimeWindows | SlidingWindows | SessionWindows


@dataclass(frozen=True)
class JoinWindows:
    """How far apart two records of a stream-stream join may be: the right one from `before` the left one to `after`.

    Mirrors `org.apache.kafka.streams.kstream.JoinWindows`.

    >>> JoinWindows.of_time_difference_with_no_grace("10 seconds").after("1 minute")
    JoinWindows(before_ms=10000, after_ms=60000, grace=0)
    """

    before_ms: int
    after_ms: int
    grace: int

    @classmethod
    def of_time_difference_with_no_grace(cls, time_difference: Duration) -> "JoinWindows":
        """Return a window of `time_difference` to both sides that closes at once."""
        return cls.of_time_difference_and_grace(time_difference, 0)

    @classmethod
    def of_time_difference_and_grace(cls, time_difference: Duration, grace: Duration) -> "JoinWindows":
        """Return a window of `time_difference` to both sides that waits `grace` longer for late records."""
        milliseconds = to_milliseconds(time_difference, "time difference")
        return cls(milliseconds, milliseconds, to_milliseconds(grace, "grace"))

    def before(self, time_difference: Duration) -> "JoinWindows":
        """Return the same with another reach back: how much earlier the right record may be."""
        return replace(self, before_ms=to_milliseconds(time_difference, "before"))

    def after(self, time_difference: Duration) -> "JoinWindows":
        """Return the same with another reach forward: how much later the right record may be."""
        return replace(self, after_ms=to_milliseconds(time_difference, "after"))

    @property
    def size(self) -> int:
        """The whole width in milliseconds."""
        return self.before_ms + self.after_ms

    @property
    def retention(self) -> int:
        """How long each side's records are kept, in milliseconds."""
        return self.size + self.grace
