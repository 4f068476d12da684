"""An answer of several parts, such as three numbers: each is judged by itself, with the mistakes typical for it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from streamskit.course.labs.exercise import (
    Verdict,
    Wrong,
    differing_parts,
    is_answer,
    mistaken,
    right,
    unwritten,
    wrong,
)

Typical = Mapping[Any, Any]
"""The wrong values of parts for a mistake: each a value, a tuple of several, or a function of the right values."""


@dataclass(frozen=True)
class SaysEach:
    """Examines a dict of values; reports the first wrong part about which there is something to say.

    Args:
        expected: makes the right value of each part; called once.
        tested: what is said when all are right.
        typical: for each mistake, the wrong values of parts that it leads to; its words may differ between parts.
        otherwise: what is said of another wrong value of a part.
    """

    expected: Callable[[], dict[Any, Any]]
    tested: str
    typical: Mapping[str, Typical] = field(default_factory=dict)
    otherwise: Mapping[str, str] = field(default_factory=dict)

    @property
    def wrong(self) -> Wrong:
        """For each mistake, functions that make the right answer except for one part."""
        return {
            mistake: [
                partial(self._with, part, value)
                for part, some in values.items()
                for value in (some if isinstance(some, tuple) else (some,))
            ]
            for mistake, values in self.typical.items()
        }

    @cached_property
    def _due(self) -> dict[Any, Any]:
        return self.expected()

    def __call__(self, answer: Any) -> Verdict:
        if answer is None or answer is ...:
            return unwritten("There is no answer yet: put one in place of the `...`.")
        expected = self._due
        if not isinstance(answer, dict) or set(answer) != set(expected):
            return wrong(f"The answer has to be a dict with these parts: {_told(expected)}. It {_has(answer)}.")
        if any(value is ... for value in answer.values()):
            return unwritten("One part has no answer yet: replace the `...` by one.")
        if is_answer(answer, expected):
            return right(self.tested)
        told = (
            self._told(part, answer[part], expected)
            for part, due in expected.items()
            if not is_answer(answer[part], due)
        )
        return next(filter(None, told), None) or wrong(differing_parts(answer, expected))

    def _told(self, part: Any, given: Any, expected: Mapping[Any, Any]) -> Verdict | None:
        for mistake, values in self.typical.items():
            if part in values and any(is_answer(given, each) for each in _values(values[part], expected)):
                return mistaken(mistake, case=part)
        return wrong(self.otherwise[part]) if part in self.otherwise else None

    def _with(self, part: Any, value: Any) -> dict[Any, Any]:
        expected = self._due
        return {**expected, part: _values(value, expected)[0]}


def _told(parts: Iterable[Any]) -> str:
    return ", ".join(map(repr, parts))


def _has(answer: Any) -> str:
    """Say what an answer is that has other parts: "1" is another part than 1."""
    if not isinstance(answer, dict):
        return f"is {answer!r}"
    return f"has {_told(answer)}" if answer else "is empty"


def _values(some: Any, expected: Mapping[Any, Any]) -> tuple[Any, ...]:
    value = some(expected) if callable(some) else some
    return value if isinstance(value, tuple) else (value,)
