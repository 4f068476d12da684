"""Expected and actual results side by side, step by step and store by store."""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from streamskit.api.windows import Windowed
from streamskit.course.labs.recording import OutcomeRow, Piped, Question, Recording, Step
from streamskit.course.labs.trial import Trial


class Compared:
    """Expected rows, and actual ones."""

    expected: tuple[OutcomeRow, ...]
    actual: tuple[OutcomeRow, ...]

    @property
    def missing(self) -> list[OutcomeRow]:
        """The expected rows that are missing."""
        return without(self.expected, self.actual)

    @property
    def extra(self) -> list[OutcomeRow]:
        """The rows that were not expected."""
        return without(self.actual, self.expected)


@dataclass(frozen=True)
class Moment(Compared):
    """A step, and for one topic the records expected after it and those that came."""

    number: int
    step: Step
    topic: str
    expected: tuple[OutcomeRow, ...]
    actual: tuple[OutcomeRow, ...]

    @property
    def differs(self) -> bool:
        """Whether other records came than expected."""
        return not same_rows(self.expected, self.actual)


@dataclass(frozen=True)
class StoreRows(Compared):
    """The rows that a store should hold and those that it holds; their order does not matter."""

    name: str
    expected: tuple[OutcomeRow, ...]
    actual: tuple[OutcomeRow, ...]
    exists: bool = True

    @property
    def differs(self) -> bool:
        """Whether the rows differ from the expected ones, or there is no such store."""
        return bool(self.missing or self.extra) or not self.exists


@dataclass(frozen=True)
class Outcome:
    """A trial and its recording: what a misconception is recognised by."""

    recording: Recording
    trial: Trial

    @cached_property
    def moments(self) -> list[Moment]:
        """Every step with each topic in which something was expected or came."""
        return list(self._moments())

    @cached_property
    def differing(self) -> list[Moment]:
        """The moments at which other records came than expected."""
        return [moment for moment in self.moments if moment.differs]

    @property
    def first(self) -> Moment | None:
        """The first moment at which something goes wrong."""
        return next(iter(self.differing), None)

    @cached_property
    def stores(self) -> list[StoreRows]:
        """The stores that were asked for, with the rows of theirs that count."""
        came = self.trial.stores
        return [
            StoreRows(name, self._counting(name, due), self._counting(name, came.get(name, ())), name in came)
            for name, due in self.recording.stores.items()
        ]

    def _counting(self, store: str, rows: Sequence[OutcomeRow]) -> tuple[OutcomeRow, ...]:
        return tuple(row for row in rows if self.recording.counts(store, row))

    @property
    def is_right(self) -> bool:
        """Whether everything is as expected: records, stores, and whether the application stopped."""
        stopped_right = (self.trial.error is not None) == self.recording.fails
        return stopped_right and not self.differing and not any(store.differs for store in self.stores)

    @cached_property
    def expected(self) -> list[OutcomeRow]:
        """All records that should have come, of all topics."""
        return [row for rows in self.recording.outputs.values() for row in rows]

    @cached_property
    def actual(self) -> list[OutcomeRow]:
        """All records that came, in the topics in which some were expected."""
        return [row for topic in self.recording.outputs for row in self.trial.outputs.get(topic, ())]

    @cached_property
    def fingerprint(self) -> str:
        """What distinguishes this outcome: its records, its error and, if the records are right, its stores.

        Topics in which nothing was expected count only where nothing came in the others.
        """
        came, due = self.trial.outputs, self.recording.outputs
        topics = due if any(came.get(topic) for topic in due) else {**due, **came}
        records = {topic: self._told_apart(came[topic], due.get(topic, ())) for topic in topics if topic in came}
        rows = () if self.differing else {name: _unordered(map(_told, rows)) for name, rows in self._rows.items()}
        error = self.trial.error and (type(self.trial.error).__name__, self.trial.stopped_at)
        return digest(records, rows, error)

    @property
    def _rows(self) -> dict[str, list[tuple[Any, ...]]]:
        return {name: [(row.key, row.value) for row in rows] for name, rows in self.trial.stores.items()}

    @staticmethod
    def _told_apart(rows: Sequence[OutcomeRow], due: Sequence[OutcomeRow]) -> list[Any]:
        """Leave out timestamps where any timestamp is right."""
        timed = not due or any(row.timestamp is not None for row in due)
        return [(row.step, row.key, row.value, row.timestamp if timed else None) for row in rows]

    def piped(self, moment: Moment) -> Piped | None:
        """Return the record that went in at a moment; None where the clock moved."""
        return moment.step if isinstance(moment.step, Piped) else None

    def at(self, where: Callable[[Piped], bool]) -> list[Moment]:
        """Return the moments at which a record for which `where` is true went in."""
        return [moment for moment in self.moments if isinstance(moment.step, Piped) and where(moment.step)]

    def _moments(self) -> Iterator[Moment]:
        for number, step in enumerate(self.recording.steps):
            if isinstance(step, Question):
                continue
            for topic, expected in self.recording.outputs.items():
                should = tuple(row for row in expected if row.step == number)
                came = tuple(row for row in self.trial.outputs.get(topic, ()) if row.step == number)
                if should or came or isinstance(step, Piped):
                    yield Moment(number, step, topic, should, came)


def same(one: Any, other: Any) -> bool:
    """Say whether two keys or values are the same: of one type, and numbers with fractions to the ninth digit."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(one, Windowed) and isinstance(other, Windowed):
        return (one.key, one.start, one.end) == (other.key, other.start, other.end)
    if isinstance(one, dict) and isinstance(other, dict):
        return all(_same_field(one.get(name), other.get(name)) for name in {**one, **other})
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


def _same_field(one: Any, other: Any) -> bool:
    """Say the same of fields, where JSON does not tell 0 from 0.0, and an absent one is read as null."""
    if {type(one), type(other)} == {int, float}:
        one, other = float(one), float(other)
    return same(one, other)


def same_row(one: OutcomeRow, other: OutcomeRow) -> bool:
    """Say whether two rows are the same; a timestamp that is not known is the same as any."""
    timed = one.timestamp == other.timestamp or None in (one.timestamp, other.timestamp)
    return timed and same(one.key, other.key) and same(one.value, other.value)


def same_rows(some: Sequence[OutcomeRow], others: Sequence[OutcomeRow]) -> bool:
    """Say whether rows are the same, in order."""
    return len(some) == len(others) and all(map(same_row, some, others))


def without(rows: Sequence[OutcomeRow], others: Sequence[OutcomeRow]) -> list[OutcomeRow]:
    """Return the rows that have no partner among the others."""
    left, lonely = list(others), []
    for row in rows:
        partner = next((index for index, other in enumerate(left) if same_row(row, other)), None)
        if partner is None:
            lonely.append(row)
        else:
            left.pop(partner)
    return lonely


def digest(*parts: Any) -> str:
    """Return a short text that is the same for the same parts; numbers with fractions count to the ninth digit.

    >>> digest("a", 1.0) == digest("a", 1.0 + 1e-12)
    True
    """
    return hashlib.sha256(_told(parts).encode()).hexdigest()[:12]


def _told(part: Any) -> str:
    """Write a part so that the same parts are written alike, in any process and on any machine."""
    if isinstance(part, Windowed):
        return f"{_told(part.key)}[{part.start},{part.end})"
    if isinstance(part, Mapping):
        return _unordered(f"{_told(name)}:{_told(value)}" for name, value in part.items())
    if isinstance(part, set | frozenset):
        return _unordered(map(_told, part))
    if isinstance(part, list | tuple):
        return f"[{','.join(map(_told, part))}]"
    return f"{part:.9g}f" if isinstance(part, float) else repr(part)


def _unordered(parts: Iterable[str]) -> str:
    return f"{{{','.join(sorted(parts))}}}"
