"""Examines a function that asks stores: its answers to questions, and by which calls it found them."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

from streamskit.labs.exercise import Verdict, is_answer, right
from streamskit.labs.misconceptions import Misconception

SCANS = frozenset({"all", "reverse_all", "backward_all", "each", "entries", "peek", "to_pandas", "len"})
"""The calls that read a store whole."""


@dataclass(frozen=True)
class Ask:
    """A question: what the function is called with, how that is written, and what it has to return."""

    told: str
    arguments: tuple[Any, ...]
    expected: Any


@dataclass(frozen=True)
class Raised:
    """What a function gave that raised an error: the error's kind."""

    kind: type[Exception]


class Answered(NamedTuple):
    """A question, the answer to it, what was called on the way, and the error if one was raised."""

    ask: Ask
    actual: Any
    calls: tuple[str, ...] = ()
    error: Exception | None = None

    @property
    def is_right(self) -> bool:
        """Whether the answer is the expected one."""
        return is_answer(self.actual, self.ask.expected)


@dataclass(frozen=True)
class Mistake:
    """A typical mistake: its name, what to know instead, and by what it is recognised in all answers together."""

    name: str
    says: str
    when: Callable[[Sequence[Answered]], bool]


def gives(*mistaken: Callable[..., Any]) -> Callable[[Sequence[Answered]], bool]:
    """Recognise the answers that one of some mistaken functions gives to every question."""

    def is_theirs(answered: Sequence[Answered]) -> bool:
        return any(
            all(is_answer(each.actual, _answer(function, each.ask).actual) for each in answered)
            for function in mistaken
        )

    return is_theirs


def reads_all(answered: Sequence[Answered]) -> bool:
    """Recognise a function that reads a whole store where it could ask for less."""
    return any(SCANS & set(each.calls) for each in answered)


@dataclass(frozen=True)
class Asks:
    """Examines a function: it is asked all questions and has to answer each of them.

    Args:
        asks: makes the questions; what they need may be open as long as they are asked.
        tested: what is said of the questions when all answers are right.
        mistakes: the typical wrong answers of this task, the most special ones first.
        habits: mistakes that give right answers at too high a price.
    """

    asks: Callable[[], Sequence[Ask] | AbstractContextManager[Sequence[Ask]]]
    tested: str
    mistakes: tuple[Mistake, ...] = ()
    habits: tuple[Mistake, ...] = ()

    def __call__(self, answer: Callable[..., Any]) -> Verdict:
        made = self.asks()
        with made if isinstance(made, AbstractContextManager) else nullcontext(made) as asks:
            answered = [_answer(answer, ask) for ask in asks]
            bad = [each for each in answered if not each.is_right]
            known = (*self.mistakes, *GENERAL) if bad else self.habits
            mistake = next((each for each in known if each.when(answered)), None)
        if not bad and not mistake:
            return right(f"{len(answered)} questions were asked: {self.tested}")
        says = _wrongness(bad, len(answered)) if bad else "All answers are right, and cost too much."
        found = Misconception(mistake.name, mistake.says, lambda _: True) if mistake else None
        return Verdict(False, says, found, cause=next((each.error for each in bad if each.error), None))


class _Watched:
    """A store, or a function, that notes how it is asked."""

    def __init__(self, watched: Any, calls: list[str]) -> None:
        self._watched, self._calls = watched, calls

    def __getattr__(self, name: str) -> Any:
        self._calls.append(name)
        return getattr(self._watched, name)

    def __call__(self, asked: Any, *rest: Any) -> Any:
        self._calls.append(str(asked))
        return self._watched(asked, *rest)

    def __len__(self) -> int:
        self._calls.append("len")
        return len(self._watched)


def _answer(function: Callable[..., Any], ask: Ask) -> Answered:
    calls: list[str] = []
    try:
        actual = function(*(_Watched(each, calls) if _is_watched(each) else each for each in ask.arguments))
    except NotImplementedError:
        raise
    except Exception as error:  # whatever a learner's function raises is an answer, and a wrong one
        return Answered(ask, Raised(type(error)), tuple(calls), error)
    return Answered(ask, actual, tuple(calls))


def _is_watched(argument: Any) -> bool:
    return hasattr(argument, "all") or callable(argument)


def _wrongness(bad: Sequence[Answered], count: int) -> str:
    first = bad[0]
    gave = f"raised {type(first.error).__name__}: {first.error}" if first.error else f"gave {_short(first.actual)}"
    rest = f" {len(bad)} of {count} answers are wrong." if count > 1 else ""
    return f"{first.ask.told} {gave.rstrip('.')}; right is {_short(first.ask.expected)}.{rest}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 200 else f"{text[:200]}…"


GENERAL = (
    Mistake(
        "nothing is returned",
        "Your function ends without an answer: it says no `return`, or not on every path.",
        lambda answered: all(each.actual is None for each in answered),
    ),
    Mistake(
        "rows in place of values",
        "A list of a store has rows, pairs of a key and a value, and the task asks for one part of them: "
        "`for key, value in ...`.",
        lambda answered: any(_are_rows(each.actual) and not _are_rows(each.ask.expected) for each in answered),
    ),
)


def _are_rows(answer: Any) -> bool:
    return isinstance(answer, list) and bool(answer) and all(isinstance(row, tuple) for row in answer)
