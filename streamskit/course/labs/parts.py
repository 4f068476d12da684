"""An answer of several parts, such as three numbers: each is judged by itself, with the mistakes typical for it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from streamskit.course.labs.exercise import Verdict, right, unwritten, wrong

Typical = Mapping[Any, tuple[str, str]]
"""Wrong values of a part, each with the mistake's name and what to think of."""


@dataclass(frozen=True)
class SaysEach:
    """Examines a dict of values; the first part that is wrong is told.

    Args:
        expected: makes the right value of each part.
        tested: what is said when all are right.
        mistakes: makes the typical wrong values of each part, from the right ones.
        otherwise: what is said of another wrong value of a part.
    """

    expected: Callable[[], Mapping[str, Any]]
    tested: str
    mistakes: Callable[[Mapping[str, Any]], Mapping[str, Typical]] = field(default=lambda _: {})
    otherwise: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, answer: Any) -> Verdict:
        if answer is None or answer is ...:
            return unwritten("There is no answer yet: put one in place of the `...`.")
        expected = self.expected()
        if not isinstance(answer, dict) or set(answer) != set(expected):
            return wrong(f"The answer has to be a dict with these parts: {', '.join(map(repr, expected))}.")
        if any(value is ... for value in answer.values()):
            return unwritten("There is a part without an answer yet: put one in place of the `...`.")
        for part, due in expected.items():
            if answer[part] != due:
                otherwise = self.otherwise.get(part, f"{part!r} is not {answer[part]!r}.")
                return _told(answer[part], self.mistakes(expected).get(part, {}), otherwise)
        return right(self.tested)


def _told(value: Any, typical: Typical, otherwise: str) -> Verdict:
    for mistaken, (name, says) in typical.items():
        if value == mistaken:
            return wrong(says, name)
    return wrong(otherwise)
