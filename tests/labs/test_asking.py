"""`Asks`: a learner's function beside the right one, and beside such as are typically wrong."""

from typing import Any

import pytest

from streamskit.course.labs.asking import Asks, like, reading_all, reads_all
from streamskit.course.labs.exercise import Exercise
from streamskit.labs import table
from streamskit.serdes import Serdes

DOUBLED = Asks(
    like(lambda number: 2 * number, lambda: [(1,), (5,)]),
    "two numbers were doubled.",
    wrong={"squared": lambda number: number**2},
)
LOOKED_UP = Asks(
    like(lambda store: store.get("a"), lambda: [(table("rows", {"a": "x", "b": "y"}, Serdes.string()),)]),
    "a key was looked up.",
    habits={"whole store read": reads_all},
)
EMPTIED = Asks(like(lambda numbers: sum(numbers), lambda: [([1, 2],), ([5],)]), "two lists were added up.")


def test_a_function_that_returns_the_same_passes() -> None:
    verdict = DOUBLED(lambda number: number + number)
    assert verdict.passed
    assert verdict.says == "2 questions were asked: two numbers were doubled."


def test_a_function_that_returns_what_a_known_mistake_does_is_told_its_name() -> None:
    exercise = Exercise("doubled", "Double.", DOUBLED, ("a", "b", "c"), {"squared": "Twice is not the square."})
    verdict = exercise.examine_answer(lambda number: number * number)
    assert verdict.misconception is not None
    assert (verdict.misconception.name, verdict.misconception.says) == ("squared", "Twice is not the square.")


def test_right_answers_that_read_a_whole_store_are_told_so() -> None:
    assert LOOKED_UP(lambda store: store.get("a")).passed
    verdict = LOOKED_UP(reading_all(lambda store: store.get("a")))
    assert verdict.misconception is not None
    assert (verdict.says, verdict.misconception.name) == (
        "All answers are right, but cost too much.",
        "whole store read",
    )


def test_of_another_mistake_each_call_that_differs_is_shown() -> None:
    def plus_one(number: int) -> int:
        return number + 1

    verdict = DOUBLED(plus_one)
    assert verdict.misconception is None
    assert verdict.says == "1 of 2 answers are wrong."
    assert verdict.answers == (("plus_one(5)", "10", "6"),)


def test_what_a_function_raises_is_told_with_the_call() -> None:
    def by_zero(number: int) -> float:
        return number / 0

    verdict = DOUBLED(by_zero)
    assert verdict.answers[0] == ("by_zero(1)", "2", "ZeroDivisionError: division by zero")
    assert isinstance(verdict.cause, ZeroDivisionError)


def test_a_function_that_changes_the_lists_it_is_given_spoils_no_other_question() -> None:
    def emptying(numbers: list[int]) -> int:
        total = 0
        while numbers:
            total += numbers.pop()
        return total

    assert EMPTIED(emptying).passed
    assert EMPTIED(emptying).passed


def test_what_is_no_function_is_told_to_be_one() -> None:
    assert DOUBLED(2).says == "It has to be a function, but is 2."


def test_a_stub_is_not_taken_for_a_mistake() -> None:
    def stub(number: int) -> Any:
        raise NotImplementedError

    with pytest.raises(NotImplementedError):
        DOUBLED(stub)


def test_a_function_is_handed_over_as_one_that_takes_keywords_and_has_a_name_of_its_own() -> None:
    asked = Asks(like(lambda ask: ask("a"), lambda: [(lambda path: path + "!",)]), "one question was put.")
    assert asked(lambda ask: ask(path="a")).passed
    (_, _, given), *_ = asked(lambda ask: ask["a"]).answers
    assert given == "TypeError: 'function' object is not subscriptable"
