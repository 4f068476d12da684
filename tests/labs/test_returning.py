"""`Returns`: a learner's function beside the right one, and beside such as are typically wrong."""

from typing import Any

import pytest

from streamskit.labs.returning import Returns, WrongWay

DOUBLED = Returns(
    lambda number: 2 * number,
    lambda: [(1,), (5,)],
    "Two numbers were doubled.",
    (WrongWay("squared", "Twice is not the square.", lambda number: number**2),),
)


def test_a_function_that_returns_the_same_passes() -> None:
    verdict = DOUBLED(lambda number: number + number)
    assert verdict.passed
    assert verdict.says == "Two numbers were doubled."


def test_a_function_that_returns_what_a_known_mistake_does_is_told_its_name() -> None:
    verdict = DOUBLED(lambda number: number * number)
    assert verdict.misconception is not None
    assert (verdict.misconception.name, verdict.says) == ("squared", "Twice is not the square.")


def test_of_another_mistake_the_first_case_that_differs_is_shown() -> None:
    def plus_one(number: int) -> int:
        return number + 1

    verdict = DOUBLED(plus_one)
    assert verdict.misconception is None
    assert verdict.says == "plus_one(5) returned 6, and should return 10."


def test_what_a_function_raises_is_told_with_the_case() -> None:
    def by_zero(number: int) -> float:
        return number / 0

    verdict = DOUBLED(by_zero)
    assert verdict.says == "by_zero(1) raised ZeroDivisionError: division by zero"
    assert isinstance(verdict.cause, ZeroDivisionError)


def test_a_stub_is_not_taken_for_a_mistake() -> None:
    def stub(number: int) -> Any:
        raise NotImplementedError

    with pytest.raises(NotImplementedError):
        DOUBLED(stub)
