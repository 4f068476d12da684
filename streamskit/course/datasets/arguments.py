"""What the data sets check of their arguments: at the call, with a sentence, rather than at the first record."""

import functools
import inspect
import math
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any, NamedTuple, ParamSpec, TypeVar

from streamskit.common.errors import StreamsError

P = ParamSpec("P")
Item = TypeVar("Item")


class Rule(NamedTuple):
    """What an argument may be, as code and in words."""

    holds: Callable[[Any], bool]
    words: str


def is_finite(value: Any) -> bool:
    """Whether a value is a finite number, of Python's or NumPy's."""
    try:
        return not isinstance(value, (bool, str, bytes)) and math.isfinite(value)
    except TypeError:
        return False


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number."""
    return is_finite(value) and hasattr(value, "__index__")


def _is_day(value: Any) -> bool:
    try:
        return isinstance(value, str) and len(value) == 10 and date.fromisoformat(value) is not None
    except ValueError:
        return False


PACE = Rule(lambda value: is_finite(value) and value > 0, "a number above 0")
COUNT = Rule(lambda value: is_whole(value) and value >= 0, "a whole number from 0 on")
DAY = Rule(_is_day, "a day such as '2013-03-08'")

RULES = {
    "count": COUNT,
    "burst": COUNT,
    "late": COUNT,
    "per_second": PACE,
    "per_minute": PACE,
    "per_day": Rule(lambda value: is_whole(value) and value > 0, "a whole number from 1 on"),
    "speed": PACE,
    "start": Rule(lambda value: is_whole(value) and value >= 0, "a time in milliseconds since 1970, from 0 on"),
    "seed": Rule(is_whole, "a whole number"),
    "share": Rule(lambda value: is_finite(value) and 0 <= value <= 1, "a number from 0 to 1"),
    "symbols": Rule(
        lambda value: isinstance(value, (tuple, list)) and bool(value) and all(isinstance(each, str) for each in value),
        "one or more texts, such as ('KO', 'IBM')",
    ),
    "stop_at": Rule(is_whole, "a whole number, or None for no end"),
    "broken": Rule(lambda value: not isinstance(value, bytes) and bool(value), "a list of one or more values in bytes"),
    "first": DAY,
    "last": DAY,
}
"""By the name of an argument: what it may be. Where None is the default, None may be given as well."""


def check_argument(function: str, name: str, value: Any) -> None:
    """Check one argument of a function by the rule for its name.

    Raises:
        StreamsError: it is not what it may be.

    >>> check_argument("plays", "per_minute", 0)
    Traceback (most recent call last):
    streamskit.common.errors.StreamsError: plays(per_minute=0): per_minute has to be a number above 0.
    """
    rule = RULES.get(name)
    if rule is not None and not rule.holds(value):
        raise StreamsError(f"{function}({name}={value!r}): {name} has to be {rule.words}.")


def checked(function: Callable[P, Iterator[Item]]) -> Callable[P, Iterator[Item]]:
    """Check a generator function's arguments by `RULES` when it is called; a generator alone waits for its reader."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Iterator[Item]:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            if value is not None or signature.parameters[name].default is not None:
                check_argument(function.__name__, name, value)
        return function(*args, **kwargs)

    return call
