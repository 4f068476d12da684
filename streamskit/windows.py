"""Windows: how a grouped stream is cut along event time. Plain values; nothing here knows Spark."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from streamskit.durations import Duration, to_milliseconds


class Windowed(NamedTuple):
    """A key and the window it was aggregated in; `start` and `end` in milliseconds, the end exclusive.

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
        milliseconds = to_milliseconds(size, "window size")
        if milliseconds == 0:
            raise ValueError("A window of size 0 holds no record: give it at least 1 ms.")
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
