"""`Returns`: examines a function of plain values, beside the right one and beside such as are typically wrong."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from streamskit.labs.exercise import Verdict, is_answer, right, wrong

Function = Callable[..., Any]
LONGEST = 300
"""How many characters of a case or a result are shown."""


@dataclass(frozen=True)
class WrongWay:
    """A typical mistake, as the function that makes it, with its name and what is true instead."""

    name: str
    says: str
    function: Function


@dataclass(frozen=True)
class Returns:
    """Examines a function: for each case it has to return what the reference does.

    Args:
        reference: the right function.
        cases: makes the arguments of each call.
        tested: what is said when it is right.
        mistakes: an answer that returns in all cases what one of these does has made that mistake.
    """

    reference: Function
    cases: Callable[[], Sequence[tuple[Any, ...]]]
    tested: str
    mistakes: tuple[WrongWay, ...] = ()

    def __call__(self, answer: Any) -> Verdict:
        if not callable(answer):
            return wrong(f"It has to be a function, and is {answer!r}.")
        due = [self.reference(*case) for case in self.cases()]
        came = []
        for case in self.cases():
            try:
                came.append(answer(*case))
            except NotImplementedError:
                raise
            except Exception as error:
                return Verdict(False, f"{_call(answer, case)} raised {type(error).__name__}: {error}", cause=error)
        if is_answer(came, due):
            return right(self.tested)
        for mistake in self.mistakes:
            if is_answer(came, [mistake.function(*case) for case in self.cases()]):
                return wrong(mistake.says, mistake.name)
        case, is_, should = next(each for each in zip(self.cases(), came, due, strict=True) if not is_answer(*each[1:]))
        return wrong(f"{_call(answer, case)} returned {_short(is_)}, and should return {_short(should)}.")


def _call(answer: Any, case: tuple[Any, ...]) -> str:
    return f"{answer.__name__}({', '.join(map(_short, case))})"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
