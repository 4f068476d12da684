"""`your_turn(function, check, solution)`: a function that the learner writes, and what is wrong with it, in a sentence.

Until it is right the lesson goes on with a function of its own, so that every later cell has one.
"""

import dis
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from streamskit.course.lessons.folding import FRAME, fold

Function = Callable[..., Any]
Check = Callable[[Function], str]

NOT_WRITTEN = "Not written yet. The lesson uses its own function until yours is right."


@dataclass(frozen=True)
class YourTurn:
    """A learner's function after its check; `function` is the one that the lesson uses from now on.

    Args:
        function: the learner's if it is right, else the lesson's.
        verdict: what the check says, in a sentence.
        solution: the lesson's function as text.
    """

    function: Function
    verdict: str
    solution: str

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        folded = fold("The lesson's own function", self.solution)._repr_mimebundle_()
        html = f'<div style="{FRAME}"><b>Your turn.</b> {escape(self.verdict)}</div>{folded["text/html"]}'
        return {"text/html": html, "text/plain": f"Your turn. {self.verdict}\n{folded['text/plain']}"}


def your_turn(function: Any, check: Check, solution: Function) -> YourTurn:
    """Check a function that a learner has written, and return it, or the lesson's as long as it is not right.

    Args:
        function: the learner's; as long as its body is `...` or `pass` it counts as not written.
        check: returns what is wrong with a function, in a sentence, or nothing if it is right.
        solution: the lesson's function.

    >>> your_turn(lambda n: n + n, lambda twice: "" if twice(4) == 8 else "Not double.", lambda n: 2 * n).verdict
    '✓ Yours is right, and the lesson uses it from now on.'
    """
    source = textwrap.dedent(inspect.getsource(solution))
    if not callable(function):
        return _not_right(f"It has to be a function, but is {function!r}.", solution, source)
    if not _does_something(function):
        return YourTurn(solution, NOT_WRITTEN, source)
    try:
        wrong = check(function)
    except Exception as error:
        wrong = f"It raised {type(error).__name__}: {error}."
    if wrong:
        return _not_right(wrong, solution, source)
    return YourTurn(function, "✓ Yours is right, and the lesson uses it from now on.", source)


def _not_right(wrong: str, solution: Function, source: str) -> YourTurn:
    return YourTurn(solution, f"✗ {wrong} The lesson uses its own function until yours is right.", source)


def _does_something(function: Function) -> bool:
    """Say whether a function's body is more than a docstring and `...`; what has no body in Python, is."""
    if not inspect.isfunction(function):
        return True
    returned = [each for each in function.__code__.co_consts if each not in (None, ..., function.__doc__)]
    return bool(returned) or not _steps(function) <= _steps(_nothing) | _steps(_nothing_async)


def _steps(function: Function) -> set[str]:
    return {step.opname for step in dis.get_instructions(function)}


def _nothing() -> None: ...


async def _nothing_async() -> None: ...
