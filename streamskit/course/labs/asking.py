"""Examines a function: its answers to questions, and by which calls of a store it found them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from streamskit.course.labs.exercise import Verdict, Wrong, copied, is_answer, right, several, wrong
from streamskit.course.labs.misconceptions import recognise

SCANS = frozenset({"all", "reverse_all", "backward_all", "each", "entries", "peek", "to_pandas", "len"})
"""The calls that read a store whole."""

LONGEST = 300
"""How many characters of a question or an answer are shown."""


@dataclass(frozen=True)
class Ask:
    """A question: how it is shown (if not as the call itself), its arguments, and what has to be returned."""

    told: str
    arguments: tuple[Any, ...]
    expected: Any


@dataclass(frozen=True)
class Raised:
    """The result of a function that raised an error: the error's type."""

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


Sign = Callable[[Sequence[Answered]], bool]
"""Recognises a mistake in all answers together."""


def like(reference: Callable[..., Any], cases: Callable[[], Sequence[tuple[Any, ...]]]) -> Callable[[], list[Ask]]:
    """Make questions from cases, each the arguments of a call; the expected answer is what a reference returns."""
    return lambda: [Ask("", case, _answer(reference, Ask("", case, None)).actual) for case in cases()]


def gives(*mistaken: Callable[..., Any]) -> Sign:
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


def reading_all(answer: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives the same answers, but reads every store it is given as a whole."""

    def lavish(*arguments: Any) -> Any:
        for argument in arguments:
            if hasattr(argument, "all"):
                list(argument.all())
        return answer(*arguments)

    return lavish


@dataclass(frozen=True)
class Asks:
    """Examines a function: it is called with every question, and has to answer each of them.

    Args:
        asks: makes the questions, or a context manager that holds open what they need.
        tested: what is said about the questions when all answers are right.
        wrong: functions that answer wrongly, by the mistake that they make.
        signs: what other answers caused by a mistake look like; the first sign found counts.
        habits: the same for mistakes that give right answers at too high a cost.
    """

    asks: Callable[[], Sequence[Ask] | AbstractContextManager[Sequence[Ask]]]
    tested: str
    wrong: Wrong = field(default_factory=dict, kw_only=True)
    signs: Mapping[str, Sign] = field(default_factory=dict, kw_only=True)
    habits: Mapping[str, Sign] = field(default_factory=dict, kw_only=True)

    def __call__(self, answer: Any) -> Verdict:
        if not callable(answer):
            return wrong(f"It has to be a function, but is {answer!r}.")
        made = self.asks()
        with made if isinstance(made, AbstractContextManager) else nullcontext(made) as asks:
            answered = [_answer(answer, ask) for ask in asks]
            bad = [each for each in answered if not each.is_right]
            theirs = {mistake: gives(*several(some)) for mistake, some in self.wrong.items()}
            mistake = recognise(answered, *((theirs, self.signs, GENERAL) if bad else (self.habits,)))
        if not bad and not mistake:
            return right(f"{len(answered)} questions were asked: {self.tested}")
        says = (
            f"{len(bad)} of {len(answered)} answers are wrong." if bad else "All answers are right, but cost too much."
        )
        told = tuple((_told(answer, each.ask), _short(each.ask.expected), _gave(each)) for each in bad)
        return Verdict(False, says, mistake, answers=told, cause=next((each.error for each in bad if each.error), None))


class _Watched:
    """A store or a function that records how it is called."""

    def __init__(self, watched: Any, calls: list[str]) -> None:
        self._watched, self._calls = watched, calls

    def __getattr__(self, name: str) -> Any:
        self._calls.append(name)
        return getattr(self._watched, name)

    def __call__(self, *asked: Any, **named: Any) -> Any:
        self._calls.append(str(next(iter((*asked, *named.values())), "")))
        return self._watched(*asked, **named)

    def __len__(self) -> int:
        self._calls.append("len")
        return len(self._watched)


def _answer(function: Callable[..., Any], ask: Ask) -> Answered:
    calls: list[str] = []
    try:
        actual = function(*(_handed_out(each, calls) for each in ask.arguments))
    except NotImplementedError:
        raise
    except Exception as error:  # whatever a learner's function raises is an answer, and a wrong one
        return Answered(ask, Raised(type(error)), tuple(calls), error)
    return Answered(ask, actual, tuple(calls))


def _handed_out(argument: Any, calls: list[str]) -> Any:
    if not hasattr(argument, "all") and not callable(argument):
        return copied(argument)
    watching = type(type(argument).__name__, (_Watched,), {})  # Python names the class where the argument is misused
    return watching(argument, calls)


def _told(function: Any, ask: Ask) -> str:
    name = getattr(function, "__name__", "your function")
    return ask.told or f"{name}({', '.join(map(_short, ask.arguments))})"


def _gave(answered: Answered) -> str:
    error = answered.error
    return f"{type(error).__name__}: {error}" if error else _short(answered.actual)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _are_rows(answer: Any) -> bool:
    return isinstance(answer, list) and bool(answer) and all(isinstance(row, tuple) for row in answer)


GENERAL: dict[str, Sign] = {
    "nothing is returned": lambda answered: all(each.actual is None for each in answered),
    "rows in place of values": lambda answered: any(
        _are_rows(each.actual) and (not _are_rows(each.ask.expected)) for each in answered
    ),
}
