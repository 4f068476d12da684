"""The scatter-gather that a learner writes in lesson 16: what is wrong with it, and one that is right."""

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streamskit.course.lessons.your_turn import Check, Function


def gathers_top(call: Callable[[int, str], Any], instances: int) -> Function:
    """Return a scatter-gather: the keys of the largest rows of all instances.

    Args:
        call: asks an instance, by its number, for a path such as "top/2".
        instances: how many there are.
    """

    def top(count: int) -> list[str]:
        gathered = [row for number in range(instances) for row in call(number, f"top/{count}")]
        return [key for _, key in heapq.nlargest(count, map(tuple, gathered))]

    return top


def checks_top(rows: Mapping[str, int], owner: Callable[[str], int]) -> Check:
    """Return the check of a scatter-gather: `top(count)` returns the keys of the largest rows of all instances.

    Args:
        rows: all rows, by key; no two values are the same.
        owner: returns the number of the instance that has a key.
    """
    ranked = sorted(rows, key=lambda key: -rows[key])

    def check(top: Function) -> str:
        for count in range(1, len(ranked) + 1):
            if wrong := _wrong_with(top(count), ranked[:count], owner, f"top({count})"):
                return wrong
        return ""

    return check


def _wrong_with(found: Any, expected: Sequence[str], owner: Callable[[str], int], call: str) -> str:
    """Say what is wrong with the result of a call, in a sentence."""
    if found is None:
        return f"{call} returned None. Is the return missing?"
    if not isinstance(found, list | tuple):
        return f"{call} returned {found!r}; it should return a list of keys."
    if any(not isinstance(key, str) for key in found):
        return f"{call} returned {[*found]!r}. Return the keys alone, as text, without their values."
    if len(found) > len(expected):
        return f"{call} returned {len(found)} keys. You have gathered them; now keep the {len(expected)} largest."
    if missing := [key for key in expected if key not in found]:
        return (
            f"{call} returned {[*found]!r}, and {missing[0]} is missing. It is on instance {owner(missing[0])}: do you "
            "ask all three instances, and for enough rows?"
        )
    if [*found] != [*expected]:
        return f"{call} returned {[*found]!r}. The keys are right, but the largest has to come first: {[*expected]!r}."
    return ""
