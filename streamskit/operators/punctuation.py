"""Punctuations: what a task's processors have asked to be called for, and when each is due."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from streamskit.api.processor import PunctuationType, Punctuator
from streamskit.common.errors import StreamsError
from streamskit.operators.failure_attribution import attribute_failure

MOST_ADDED = 1_000
"""How many punctuations one call of those that are due may add that are due, too."""


@dataclass
class Schedule:
    """One punctuation of a processor; `due` is when it happens next, in milliseconds by its clock.

    Mirrors `org.apache.kafka.streams.processor.internals.PunctuationSchedule`.
    """

    member: str
    kind: PunctuationType
    interval: int
    due: int
    punctuator: Punctuator
    is_cancelled: bool = False

    def cancel(self) -> None:
        """Let it never happen again."""
        self.is_cancelled = True

    def move_on(self, now: int) -> None:
        """Make it due at the first multiple of its interval after `now`, counted from when it was due."""
        self.due += ((now - self.due) // self.interval + 1) * self.interval


class Schedules:
    """All punctuations of a task, asked after each record what is due.

    Mirrors `org.apache.kafka.streams.processor.internals.PunctuationQueue`.
    """

    def __init__(self, kept: list[Schedule]) -> None:
        self.kept = kept
        self.next_due: dict[PunctuationType, Any] = {}
        self.count_anew()

    def count_anew(self) -> None:
        """Find out again when the next one is due by each clock."""
        self.next_due = {kind: self._earliest(kind) for kind in PunctuationType}

    def add(self, schedule: Schedule) -> Schedule:
        """Take another one in."""
        self.kept.append(schedule)
        self.count_anew()
        return schedule

    def take_due(self, kind: PunctuationType, now: int) -> Iterator[Schedule]:
        """Yield those that are due, the earliest first, each made due again; also those that are added meanwhile.

        Raises:
            StreamsError: there is no end to those that are added.
        """
        most = len(self.kept) + MOST_ADDED
        while due := [each for each in self.kept if each.kind is kind and each.due <= now and not each.is_cancelled]:
            schedule = min(due, key=lambda each: each.due)
            schedule.move_on(now)
            if not (most := most - 1):
                raise self._endless(schedule)
            yield schedule
        self.kept[:] = [schedule for schedule in self.kept if not schedule.is_cancelled]
        self.next_due[kind] = self._earliest(kind)

    def _endless(self, schedule: Schedule) -> StreamsError:
        error = StreamsError(
            f"{schedule.member}: its punctuation schedules another one whenever it is called, and by stream time each "
            "of them is due at once. Schedule it once, in init()."
        )
        attribute_failure(error, schedule.member)
        return error

    def _earliest(self, kind: PunctuationType) -> Any:
        return min((schedule.due for schedule in self.kept if schedule.kind is kind), default=float("inf"))
