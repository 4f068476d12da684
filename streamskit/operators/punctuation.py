"""Punctuation: the calls that a task's processors have scheduled, and when each is due."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from streamskit.api.processor import PunctuationType, Punctuator
from streamskit.common.errors import StreamsError
from streamskit.operators.error_handling import attribute_failure

MAX_ADDED = 1_000
"""How many due punctuations one call of `take_due` may yield beyond those already in the queue."""


@dataclass
class Schedule:
    """One punctuation of a processor; `due` is when it happens next, in milliseconds by its clock.

    `place` is where it stood in the queue when it was last taken out of it to be kept.
    Mirrors `org.apache.kafka.streams.processor.internals.PunctuationSchedule`.
    """

    processor: str
    kind: PunctuationType
    interval: int
    due: int
    punctuator: Punctuator
    is_cancelled: bool = False
    place: int = 0

    def cancel(self) -> None:
        """Stop this punctuation: it will not happen again."""
        self.is_cancelled = True

    def advance(self, now: int) -> None:
        """Make it due at the first multiple of its interval after `now`, counted from when it was due."""
        self.due += ((now - self.due) // self.interval + 1) * self.interval


class PunctuationQueue:
    """All punctuations of a task, whichever processors scheduled them, queried after each record for what is due.

    Those due at one time take turns as in the heap of Java's `PriorityQueue`, which does not keep their order: of three
    that begin together the last one comes second.
    Mirrors `org.apache.kafka.streams.processor.internals.PunctuationQueue`.
    """

    def __init__(self) -> None:
        self._heaps: dict[PunctuationType, list[Schedule]] = {kind: [] for kind in PunctuationType}
        self.next_due: dict[PunctuationType, Any] = dict.fromkeys(PunctuationType, float("inf"))

    @property
    def schedules(self) -> list[Schedule]:
        """All punctuations."""
        return [schedule for heap in self._heaps.values() for schedule in heap]

    def of(self, processors: Collection[str]) -> list[Schedule]:
        """Return the punctuations of some processors, each with its place, as `put_back` takes them."""
        for heap in self._heaps.values():
            for place, schedule in enumerate(heap):
                schedule.place = place
        return [schedule for schedule in self.schedules if schedule.processor in processors]

    def put_back(self, schedules: Sequence[Schedule]) -> None:
        """Add punctuations that were kept, among those that are there; each takes the place it had."""
        for kind, heap in self._heaps.items():
            every = [*heap, *(schedule for schedule in schedules if schedule.kind is kind)]
            heap.clear()
            for schedule in sorted(every, key=lambda schedule: schedule.place):
                self.add(schedule)

    def add(self, schedule: Schedule) -> Schedule:
        """Add another one."""
        heap = self._heaps[schedule.kind]
        heap.append(schedule)
        place = len(heap) - 1
        while place and schedule.due < heap[(place - 1) // 2].due:
            heap[place] = heap[(place - 1) // 2]
            place = (place - 1) // 2
        heap[place] = schedule
        self._note_next(schedule.kind)
        return schedule

    def take_due(self, kind: PunctuationType, now: int) -> Iterator[Schedule]:
        """Yield the schedules that are due, the earliest first, including those added meanwhile.

        Each is advanced and put back into the queue when the next one is requested, unless it has been cancelled.

        Raises:
            StreamsError: schedules are added without end.
        """
        heap = self._heaps[kind]
        left = len(heap) + MAX_ADDED
        while heap and heap[0].due <= now:
            schedule = _take_first(heap)
            if schedule.is_cancelled:
                continue
            if not (left := left - 1):
                raise _endless(schedule)
            yield schedule
            if not schedule.is_cancelled:
                schedule.advance(now)
                self.add(schedule)
        self._note_next(kind)

    def _note_next(self, kind: PunctuationType) -> None:
        heap = self._heaps[kind]
        self.next_due[kind] = heap[0].due if heap else float("inf")


def _take_first(heap: list[Schedule]) -> Schedule:
    """Remove the first schedule of a heap, as `PriorityQueue#poll` does."""
    first, last = heap[0], heap.pop()
    size, place = len(heap), 0
    while place < size // 2:
        child = 2 * place + 1
        if child + 1 < size and heap[child].due > heap[child + 1].due:
            child += 1
        if last.due <= heap[child].due:
            break
        heap[place], place = heap[child], child
    if heap:
        heap[place] = last
    return first


def _endless(schedule: Schedule) -> StreamsError:
    error = StreamsError(
        f"{schedule.processor}: its punctuation schedules another one whenever it is called, and by stream time each "
        "of them is due at once. Schedule it once, in init()."
    )
    attribute_failure(error, schedule.processor)
    return error
