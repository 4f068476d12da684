"""The questions of the lessons, from TOML: what to predict, the choices, and the replies to typical wrong guesses."""

import difflib
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from streamskit.common.errors import StreamsKitError

FOLDER = "predictions"

THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
"""The commas of a number such as 1,234,567."""


@dataclass(frozen=True)
class Question:
    """Something to predict before a cell runs.

    Args:
        name: by which a lesson names it; no two lessons have the same.
        lesson: the file it is in, such as "windows".
        ask: the question.
        because: why the result is what it is, shown once there is one.
        choices: answers to choose from, by letter; none where the learner writes a value.
        mistakes: the reply to a wrong guess, by the letter of the choice, or by the value as text.
    """

    name: str
    lesson: str
    ask: str
    because: str
    choices: Mapping[str, Any] = field(default_factory=dict)
    mistakes: Mapping[str, str] = field(default_factory=dict)

    @property
    def wants_number(self) -> bool:
        """Whether the learner writes a number: all typical wrong guesses are numbers."""
        return not self.choices and bool(self.mistakes) and all(map(_is_number, self.mistakes))

    @property
    def numbers_wanted(self) -> int:
        """How many numbers the learner writes together, as in all typical wrong guesses; 0 where they are no lists."""
        lengths = {len(read) if isinstance(read := _read(each), list) else 0 for each in self.mistakes}
        return lengths.pop() if not self.choices and len(lengths) == 1 else 0

    @property
    def wanted(self) -> str:
        """What the learner writes, with quotes where Python needs them.

        >>> Question("door", "demo", "Which?", "So.", {"a": "left", "b": "right", "c": "none"}).wanted
        '"a", "b" or "c"'
        """
        if self.choices:
            *others, last = (f'"{letter}"' for letter in self.choices)
            return " or ".join(filter(None, (", ".join(others), last)))
        if self.numbers_wanted:
            return f"{self.numbers_wanted} numbers, such as {_example(self.numbers_wanted)},"
        return "your guess" if self.wants_number or not self.mistakes else "your guess, a word in quotes,"

    def value_of(self, guess: Any) -> Any:
        """Return what a guess stands for: the choice of a letter, else itself.

        Raises:
            StreamsKitError: there are choices, and it is none of them; or numbers are wanted, and it is none.
        """
        if not self.choices:
            if self.wants_number and not _is_number(guess):
                raise StreamsKitError(f"{guess!r} is not a number, and this question asks for one, such as 1.")
            count, read = self.numbers_wanted, _read(_plain(guess))
            if count and not (isinstance(read, list | tuple) and len(read) == count):
                raise StreamsKitError(
                    f"{guess!r} is not {count} numbers, and this question asks for {count}, such as {_example(count)}."
                )
            return guess
        letter = self.letter_of(guess)
        if not letter:
            letters = ", ".join(f'"{each}"' for each in self.choices)
            raise StreamsKitError(f"{guess!r} is none of the choices. Guess with one of their letters: {letters}.")
        return self.choices[letter]

    def letter_of(self, guess: Any) -> str:
        """Return the letter of a choice, given by its letter or its value; nothing if it is none."""
        if isinstance(guess, str) and guess.strip().lower() in self.choices:
            return guess.strip().lower()
        return next((letter for letter, value in self.choices.items() if same(value, guess)), "")

    def mistake(self, guess: Any) -> str:
        """Return the reply to a wrong guess; nothing if it is not a typical one."""
        letter = self.letter_of(guess)
        if letter:
            return self.mistakes.get(letter, "")
        return next((reply for wrong, reply in self.mistakes.items() if same(_read(wrong), guess)), "")


def same(one: Any, other: Any) -> bool:
    """Say whether a guess is right: equal values; text may differ in case, outer blanks and quotes, or hold numbers.

    A guess may also be a value or a list of NumPy's, or a Series, as a learner computes it.

    >>> same(" Oslo", "'oslo'"), same(2, 2.0), same("4,000", 4000), same(True, 1), same("1, 2", (1, 2))
    (True, True, True, False, True)
    """
    one, other = _plain(one), _plain(other)
    if isinstance(one, str) or isinstance(other, str):
        if _bare(one) == _bare(other):
            return True
        texts = [each for each in (one, other) if isinstance(each, str)]
        return len(texts) == 1 and not isinstance(_read(texts[0]), str) and same(*map(_read, (one, other)))
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    try:
        return bool(one == other)
    except ValueError:  # a data frame, which is no guess, says of each of its cells whether it is equal
        return False


@cache
def questions() -> Mapping[str, Question]:
    """Return all questions by name.

    Raises:
        StreamsKitError: two have the same name.
    """
    found: dict[str, Question] = {}
    folder = files("streamskit.course.lessons") / FOLDER
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        if file.name.endswith(".toml"):
            for question in parsed(file.read_text(), file.name.removesuffix(".toml")):
                if question.name in found:
                    raise StreamsKitError(f"Two questions are called '{question.name}': rename the one in {file.name}.")
                found[question.name] = question
    return found


def parsed(toml: str, lesson: str) -> list[Question]:
    """Return the questions of a file.

    Raises:
        StreamsKitError: one lacks its words, or has an entry that is not known.

    >>> parsed('[seats]\\nask = "How many?"\\nbecause = "One each."', "demo")[0].name
    'seats'
    """
    made = []
    for name, entry in tomllib.loads(toml).items():
        words = {part: _one_line(text) for part, text in entry.items() if isinstance(text, str)}
        unknown = entry.keys() - {"ask", "because", "choices", "mistakes"}
        if unknown or not {"ask", "because"} <= words.keys():
            wrong = f"does not know {', '.join(sorted(unknown))}" if unknown else "needs both 'ask' and 'because'"
            raise StreamsKitError(f"The question [{name}] of {lesson}.toml {wrong}.")
        mistakes = {guess: _one_line(text) for guess, text in entry.get("mistakes", {}).items()}
        made.append(Question(name, lesson, words["ask"], words["because"], entry.get("choices", {}), mistakes))
    return made


def question(name: str) -> Question:
    """Return a question by its name.

    Raises:
        StreamsKitError: there is none.
    """
    if not isinstance(name, str):
        raise StreamsKitError(f"{name!r} is no name of a question: that is text, as in the lesson's own cells.")
    if name not in questions():
        near = difflib.get_close_matches(name, questions(), 3, 0.4)
        advice = f"Did you mean {' or '.join(near)}?" if near else "The lesson's own cells have the names."
        raise StreamsKitError(f"There is no question '{name}'. {advice}")
    return questions()[name]


def _example(count: int) -> tuple[int, ...]:
    return tuple(range(1, count + 1))


def _is_number(guess: Any) -> bool:
    return isinstance(_read(str(guess)), float)


def _read(guess: Any) -> Any:
    """Return the number that a text spells, or its several numbers as a list; anything else as it is.

    >>> _read("4,000"), _read("+3.50"), _read("(2, 12)"), _read("Oslo")
    (4000.0, 3.5, [2.0, 12.0], 'Oslo')
    """
    if not isinstance(guess, str):
        return guess
    with suppress(ValueError):
        return float(THOUSANDS.sub("", guess))
    with suppress(ValueError):
        return [float(part) for part in guess.strip().strip("()[]").split(",")]
    return guess


def _plain(guess: Any) -> Any:
    """Return Python's own value of one of NumPy's or pandas', which have `tolist`; anything else as it is."""
    return guess.tolist() if hasattr(guess, "tolist") else guess


def _bare(word: Any) -> str:
    return str(word).strip(" \t\n'\"").casefold()


def _one_line(text: str) -> str:
    return " ".join(text.split())
