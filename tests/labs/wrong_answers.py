"""What tests of wrong answers share: an answer is examined, and its misconception looked up."""

from collections.abc import Callable
from typing import Any

import pytest

from streamskit import StreamsBuilder
from streamskit.course.labs import catalogue

Answer = Callable[[StreamsBuilder], None]

one_more = pytest.mark.soak
"""Marks a wrong answer beside others of its lab that `make test` examines: `make soak` examines all."""


def misconception(exercise: str, answer: Any) -> str:
    """Return the name of the mistake that a check finds in an answer; the reason if it finds none of its list."""
    verdict = catalogue.exercise(exercise).examine_answer(answer)
    assert not verdict.passed, "it passed"
    assert verdict.written
    return verdict.misconception.name if verdict.misconception else verdict.says
