"""`check("name")`: what the learner wrote under that name is examined, and the verdict shown and noted."""

import sys
from typing import Any

from IPython.display import display

from streamskit.common.errors import StreamsKitError
from streamskit.course.labs import catalogue, scores
from streamskit.course.labs.exercise import Exercise, Verdict, endless, unwritten
from streamskit.course.labs.time_limit import TookTooLong, time_limit
from streamskit.course.labs.verdict_page import hints_page, page, plain

LONGEST = 300.0
"""For how many seconds a check waits for an answer. Most take a second; a slow machine may start Spark first."""

_ABSENT = object()


class CheckFailed(StreamsKitError):  # noqa: N818 - what a learner reads
    """An answer is not right yet; the page above says why."""

    def __init__(self, name: str, verdict: Verdict) -> None:
        super().__init__(plain(name, verdict))
        self.verdict = verdict
        self.name = name

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows: the page above has said everything."""
        return [f"CheckFailed: {self.name} is not right yet; see above."]


class _Latest:
    exercise: Exercise | None = None


def check(name: str, answer: Any = _ABSENT) -> None:
    """Examine what the notebook has under this name, and show what is right or wrong.

    Args:
        name: of the exercise, and of the function, class or variable to examine.
        answer: what to examine in its place.

    Raises:
        CheckFailed: it is not right, so that a cell that runs is a task that is done.

    >>> check("clicks_per_minute")
    """
    exercise = catalogue.exercise(name)
    _Latest.exercise = exercise
    if answer is _ABSENT:
        answer = _notebook().get(name, _ABSENT)
    verdict = _missing(name) if answer is _ABSENT else _examined(exercise, answer)
    if verdict.written:
        scores.note(exercise, verdict.passed)
    _show(page(name, verdict), plain(name, verdict), {"exercise": name, "passed": verdict.passed})
    if not verdict.passed:
        raise CheckFailed(name, verdict) from verdict.cause


def hint(name: str = "") -> None:
    """Show the next hint of an exercise: the one that was last checked or named here, unless another is named.

    Raises:
        StreamsKitError: no exercise was checked yet, and none is named.

    >>> hint()
    """
    exercise = named_or_latest(name, "hint")
    shown = min(len(exercise.hints), scores.known().get(exercise.name, {}).get("hints", 0) + 1)
    scores.note(exercise, hints=shown)
    hints = exercise.hints[:shown]
    _show(hints_page(exercise.name, hints, len(exercise.hints)), "\n".join(hints), None)


def named_or_latest(name: str, call: str) -> Exercise:
    """Return the exercise of this name or, without one, that which was last checked or named.

    Raises:
        StreamsKitError: there is none; the message has an example with `call`.
    """
    is_named = not isinstance(name, str | None) or bool(name)
    exercise = catalogue.exercise(name) if is_named else _Latest.exercise
    if exercise is None:
        raise StreamsKitError(f'Run a check first, or name the exercise: {call}("...").')
    _Latest.exercise = exercise
    return exercise


def _examined(exercise: Exercise, answer: Any) -> Verdict:
    """Judge an answer, which has to come to an end in time; a live mission sees to that itself."""
    if exercise.is_live:
        return exercise.examine_answer(answer)
    try:
        with time_limit(LONGEST):
            return exercise.examine_answer(answer)
    except TookTooLong as interruption:
        return endless(LONGEST, interruption)


def _missing(name: str) -> Verdict:
    return unwritten(f"The notebook has no {name} yet: write it in the cell above, and run that cell.")


def _notebook() -> dict[str, Any]:
    """The names of the notebook, or of the module that called `check`."""
    return sys._getframe(2).f_globals


def _show(html: str, text: str, found: dict[str, Any] | None) -> None:
    bundle: dict[str, Any] = {"text/html": html, "text/plain": text}
    display(bundle | ({scores.MEDIA_TYPE: found} if found else {}), raw=True)
