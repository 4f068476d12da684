"""Punctuation: the calls that a task's processors have scheduled, and when each is due."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from streamskit.api.processor import PunctuationType, Punctuator
from streamskit.common.errors import StreamsError
from streamskit.operators.error_handling import attribute_failure

MAX_ADDED = 1_000
"""How many punctuations one call of those that are due may add that are due, too."""


@dataclass
class Schedule:
    """One punctuation of a processor; `due` is when it happens next, in milliseconds by its clock.

    Mirrors `org.apache.kafka.streams.processor.internals.PunctuationSchedule`.
    """

    processor: str
    kind: PunctuationType
    interval: int
    due: int
    punctuator: Punctuator
    is_cancelled: bool = False

    def cancel(self) -> None:
        """Let it never happen again."""
        self.is_cancelled = True

    def advance(self, now: int) -> None:
        """Make it due at the first multiple of its interval after `now`, counted from when it was due."""
        self.due += ((now - self.due) // self.interval + 1) * self.interval


class PunctuationQueue:
    """All punctuations of a task, asked after each record what is due.

    Mirrors `org.apache.kafka.streams.processor.internals.PunctuationQueue`.
    """

    def __init__(self) -> None:
        self.schedules: list[Schedule] = []
        self.next_due: dict[PunctuationType, Any] = {}
        self.replace([])

    def replace(self, schedules: list[Schedule]) -> None:
        """Set all punctuations."""
        self.schedules[:] = schedules
        self.next_due = {kind: self._earliest(kind) for kind in PunctuationType}

    def add(self, schedule: Schedule) -> Schedule:
        """Add another one."""
        self.replace([*self.schedules, schedule])
        return schedule

    def take_due(self, kind: PunctuationType, now: int) -> Iterator[Schedule]:
        """Yield those that are due, the earliest first, each advanced; also those that are added meanwhile.

        Raises:
            StreamsError: there is no end to those that are added.
        """
        left = len(self.schedules) + MAX_ADDED
        while due := [each for each in self.schedules
                      if each.kind is kind and each.due <= now and not each.is_cancelled]:  # fmt: skip
            schedule = min(due, key=lambda each: each.due)
            schedule.advance(now)
            if not (left := left - 1):
                raise _endless(schedule)
            yield schedule
        self.replace([schedule for schedule in self.schedules if not schedule.is_cancelled])

    def _earliest(self, kind: PunctuationType) -> Any:
        return min((schedule.due for schedule in self.schedules if schedule.kind is kind), default=float("inf"))


def _endless(schedule: Schedule) -> StreamsError:
    error = StreamsError(
        f"{schedule.processor}: its punctuation schedules another one whenever it is called, and by stream time each "
        "of them is due at once. Schedule it once, in init()."
    )
    attribute_failure(error, schedule.processor)
    return error
