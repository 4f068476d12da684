"""`predict("name", guess)` before a cell, `reveal("name", result)` in it: what you expected beside what came out.

The result is what the cell has really computed, never a stored answer. Without a guess the lesson goes on, and the
answer stays folded.
"""

from dataclasses import dataclass
from html import escape
from typing import Any

from streamskit.common.errors import StreamsKitError
from streamskit.course.lessons.folding import FRAME, Folded, markup
from streamskit.course.lessons.questions import Question, question, same

_guesses: dict[str, Any] = {}


@dataclass(frozen=True)
class Prediction:
    """A question as a page shows it, with the guess if there is one; `trouble` says why a guess was not taken."""

    question: Question
    guess: Any = ...
    trouble: str = ""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        choices = "".join(
            f"<div><b>{escape(letter)}</b>&ensp;{escape(str(value))}</div>"
            for letter, value in self.question.choices.items()
        )
        body = f'<div>{escape(self.question.ask)}</div><div style="margin:4px 16px">{choices}</div>'
        html = f'<div style="{FRAME}"><b>Predict.</b> {body}<div><i>{escape(self._next())}</i></div></div>'
        lines = [f"Predict. {self.question.ask}"]
        lines += [f"  {letter}  {value}" for letter, value in self.question.choices.items()]
        return {"text/html": html, "text/plain": "\n".join([*lines, self._next()])}

    def _next(self) -> str:
        if self.trouble:
            return self.trouble
        if self.guess is not ...:
            return f"Your guess is noted: {self.guess}. Now run the next cell."
        kind = self.question.wanted
        return f"Put {kind} in place of the ... above, run this cell, and then the next one."


@dataclass(frozen=True)
class Comparison:
    """A guess and the result; `shows` is what else the cell has to show."""

    question: Question
    guess: Any
    result: Any
    shows: tuple[Any, ...] = ()
    alt: str = ""

    @property
    def is_right(self) -> bool:
        """Whether the guess is the result."""
        return self.guess is not ... and same(self.question.value_of(self.guess), self.result)

    def says(self) -> str:
        """Return the verdict in a sentence or two, and why the result is what it is."""
        result = f"{self.result}"
        if self.guess is ...:
            return f"The answer: {result}. {self.question.because}"
        if self.is_right:
            return f"✓ {result}, as you said. {self.question.because}"
        said = self.question.value_of(self.guess)
        mistake = self.question.mistake(self.guess)
        return " ".join(filter(None, (f"✗ You said {said}; it is {result}.", mistake, self.question.because)))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        is_open = self.guess is not ...
        title = (
            "Your prediction and the result" if is_open else "No prediction yet. Make one above, or unfold the result"
        )
        html = f"<p>{escape(self.says())}</p>" + "".join(markup(thing, self.alt) for thing in self.shows)
        return Folded(title, html, self.says(), is_open)._repr_mimebundle_()


def predict(name: str, guess: Any = ..., *more: Any) -> Prediction:
    """Ask what the next cell will give, and note what you expect.

    Args:
        name: of the question.
        guess: the letter of a choice, or a value; `...` is no guess yet.
        more: the other numbers, for a question that asks for several, without parentheses around them.

    Raises:
        StreamsKitError: there is no such question.

    >>> predict("partition-of-a-key", "b")  # doctest: +SKIP
    """
    asked = question(name)
    guess = (guess, *more) if more else guess
    _guesses.pop(name, None)
    if guess is ...:
        return Prediction(asked)
    try:
        asked.value_of(guess)
    except StreamsKitError as error:
        return Prediction(asked, trouble=str(error))
    _guesses[name] = guess
    return Prediction(asked, guess)


def reveal(name: str, result: Any, *shows: Any, alt: str = "") -> Comparison:
    """Show what came beside what you predicted; folded away as long as there is no prediction.

    Args:
        name: of the question.
        result: what the cell has computed.
        shows: what else to show with it: a table, a drawing, a figure.
        alt: a figure in words, for readers who cannot see it.

    Raises:
        StreamsKitError: there is no such question, or the result is none of its choices.

    >>> reveal("partition-of-a-key", "always the same one")  # doctest: +SKIP
    """
    asked = question(name)
    if asked.choices and not asked.letter_of(result):
        raise StreamsKitError(
            f"This cell comes to {result!r}, which is none of the answers to '{name}': {[*asked.choices.values()]}. If "
            "you have changed a cell, or run cells in another order, run them again from the top of the lesson."
        )
    return Comparison(asked, _guesses.get(name, ...), result, shows, alt)
