"""A function that the learner writes: what the check says, and which function the lesson goes on with."""

import heapq
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from streamskit.course.lessons.scatter_gather import checks_top, gathers_top
from streamskit.course.lessons.your_turn import NOT_WRITTEN, your_turn

ROWS = {"AMD": 2, "IBM": 5, "KO": 4, "T": 9}
SHARES = [{"AMD": 2, "IBM": 5}, {"KO": 4}, {"T": 9}]
CHECK = checks_top(ROWS, lambda key: next(number for number, share in enumerate(SHARES) if key in share))


def rows_of(number: int, count: int) -> list[tuple[int, str]]:
    return heapq.nlargest(count, [(value, key) for key, value in SHARES[number].items()])


def gathered(count: int) -> list[str]:
    rows = [row for number in range(3) for row in rows_of(number, count)]
    return [key for _, key in heapq.nlargest(count, rows)]


def asked(number: int, path: str) -> list[tuple[int, str]]:
    return rows_of(number, int(path.removeprefix("top/")))


def of_two_instances(count: int) -> list[str]:
    return [key for _, key in heapq.nlargest(count, rows_of(0, count) + rows_of(1, count))]


def everything(count: int) -> list[str]:
    return [key for number in range(3) for _, key in rows_of(number, count)]


def one_row_of_each(count: int) -> list[str]:
    return [key for _, key in heapq.nlargest(count, [rows_of(number, 1)[0] for number in range(3)])]


def nothing_returned(count: int) -> None:
    gathered(count)


def not_written(count: int) -> Any:
    """Return the keys."""


def failing(count: int) -> list[str]:
    return [str(ROWS["nobody"])]


def test_a_right_function_is_the_one_that_the_lesson_uses() -> None:
    turn = your_turn(gathered, CHECK, of_two_instances)
    assert turn.function is gathered
    assert turn.verdict.startswith("✓ Yours is right")


def test_a_function_that_is_not_written_yet_is_replaced_without_blame() -> None:
    turn = your_turn(not_written, CHECK, gathered)
    assert turn.function is gathered
    assert turn.verdict == NOT_WRITTEN


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (of_two_instances, "T is missing. It is on instance 2: do you ask all three instances"),
        (everything, "top(1) returned 3 keys. You have gathered them; now keep the 1 largest."),
        (one_row_of_each, "KO"),
        (nothing_returned, "top(1) returned None. Is the return missing?"),
        (lambda count: rows_of(2, count), "Return the keys alone, as text, without their values."),
        (lambda count: "T", "it should return a list of keys"),
        (lambda count: gathered(count)[::-1], "The keys are right, but the largest has to come first"),
        (failing, "It raised KeyError: 'nobody'."),
    ],
)
def test_a_wrong_function_is_told_what_is_wrong(function: Callable[[int], Any], sentence: str) -> None:
    turn = your_turn(function, CHECK, gathered)
    assert turn.function is gathered
    assert sentence in turn.verdict
    assert turn.verdict.startswith("✗")


class Doubling:
    def __call__(self, number: int) -> int:
        return 2 * number


@pytest.mark.parametrize("function", [partial(operator.mul, 2), Doubling(), (2).__mul__])
def test_what_can_be_called_is_checked_as_a_function_is(function: Callable[[int], int]) -> None:
    assert your_turn(function, lambda twice: "" if twice(4) == 8 else "Not double.", gathered).function is function


@pytest.mark.parametrize("given", [None, 5, ...])
def test_what_cannot_be_called_is_told_so(given: Any) -> None:
    turn = your_turn(given, CHECK, gathered)
    assert turn.function is gathered
    assert turn.verdict.startswith(f"✗ It has to be a function, but is {given!r}. The lesson uses its own")


def test_the_solution_is_folded_away() -> None:
    bundle = your_turn(not_written, CHECK, gathered)._repr_mimebundle_()
    assert bundle["text/html"].index("<details") < bundle["text/html"].index("heapq.nlargest")
    assert "heapq" not in bundle["text/plain"]


def test_the_lessons_own_scatter_gather_is_right() -> None:
    assert CHECK(gathers_top(asked, 3)) == ""
    assert CHECK(gathers_top(asked, 2)) != ""
