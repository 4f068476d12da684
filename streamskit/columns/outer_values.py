"""The simple values that a user's function takes from the variables around it, and whether they are still the same.

Python looks such a variable up when it calls the function, and a function is called again when the application starts:
functions made in a loop, which all use its variable, would then all see its last value.
"""

import datetime
import dis
import functools
import math
import reprlib
from collections.abc import Callable, Iterator
from decimal import Decimal
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

SIMPLE = (str, int, float, bool, type(None), bytes, Decimal, datetime.date, datetime.time, datetime.timedelta)
"""What is written down as a value in a program; other objects may change without being others."""

GLOBAL_LOADS, GLOBAL_STORES = ("LOAD_GLOBAL", "LOAD_NAME"), ("STORE_GLOBAL", "DELETE_GLOBAL")

_ABSENT = object()


class OuterValue(NamedTuple):
    """A variable that a function takes from around it, and the value that it had."""

    function: Any
    variable: str
    value: Any

    @property
    def is_same(self) -> bool:
        """Whether the variable still has this value, or is gone, which the function itself tells when it is called."""
        now = dict(_variables(self.function)).get(self.variable, _ABSENT)
        return now is _ABSENT or now is self.value or (_is_simple(now) and _is_equal(now, self.value))

    @property
    def change(self) -> str:
        """What the variable was and what it is now, in words."""
        now = dict(_variables(self.function)).get(self.variable)
        return f"'{self.variable}' was {_short(self.value)} on that line, and is {_short(now)} now"

    @property
    def remedy(self) -> str:
        """How to write the function so that it keeps the value."""
        code = self.function.__code__
        variable = self.variable
        arguments = [*code.co_varnames[: code.co_argcount], f"{variable}={variable}"]
        return (
            "A function looks its variables up when it is called, and it is called again when the application starts; "
            f"made in a loop, all see the last value. Have it keep its own: lambda {', '.join(arguments)}: ..."
        )


def outer_values(function: Callable[..., Any]) -> tuple[OuterValue, ...]:
    """Return the simple values that a function takes from around it: of its closures, and of its module's variables.

    Variables that the function itself changes are left out, and so is what a class's methods use.

    >>> field = "price"
    >>> [(each.variable, each.value) for each in outer_values(lambda v: v[field])]
    [('field', 'price')]
    """
    return tuple(
        OuterValue(one, name, value)
        for one in _functions_in(function)
        for name, value in _variables(one)
        if _is_simple(value)
    )


def _functions_in(function: Any, seen: frozenset[int] = frozenset()) -> Iterator[FunctionType]:
    """Yield the Python functions of a callable: itself, and those that it calls from its closure."""
    while isinstance(function, functools.partial | MethodType):
        function = function.func if isinstance(function, functools.partial) else function.__func__
    if not isinstance(function, FunctionType) or id(function) in seen:
        return
    yield function
    for _, value in _closed_over(function):
        yield from _functions_in(value, seen | {id(function)})


def _variables(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the variables around a function that it uses and does not change, with their values of this moment."""
    loaded, stored = _names_used(function.__code__)
    yield from ((name, value) for name, value in _closed_over(function) if name not in stored)
    module = function.__globals__
    yield from ((name, module[name]) for name in loaded if name in module and name not in stored)


def _closed_over(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # it has no value yet
            continue


@functools.lru_cache(1024)
def _names_used(code: CodeType) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the names of the module's variables that a function uses, and of all variables around it that it sets."""
    loaded: dict[str, None] = {}
    stored: set[str] = set()
    for each in dis.get_instructions(code):
        if each.opname in GLOBAL_LOADS:
            loaded[each.argval] = None
        elif each.opname in GLOBAL_STORES or (
            each.opname in ("STORE_DEREF", "DELETE_DEREF") and each.argval in code.co_freevars
        ):
            stored.add(each.argval)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            of_inner, set_inside = _names_used(inner)
            loaded |= dict.fromkeys(of_inner)
            stored |= set_inside
    return tuple(loaded), frozenset(stored)


def _is_simple(value: Any) -> bool:
    return all(map(_is_simple, value)) if type(value) is tuple else type(value) in (*SIMPLE, datetime.datetime)


def _is_equal(one: Any, other: Any) -> bool:
    both_nan = isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
    return both_nan or bool(one == other)


def _short(value: Any) -> str:
    return reprlib.repr(value) if _is_simple(value) else f"a {type(value).__name__}"
