"""Processors that start again before each record: what is in a field or a variable is lost then, a store is not.

A task's Python process imports this module, so it imports no more than a processor needs.
"""

import dis
from collections.abc import Callable
from functools import wraps
from inspect import getclosurevars, isfunction
from typing import Any

from pyspark import cloudpickle

from streamskit.api.processor import FixedKeyProcessor, Processor, ProcessorContext

Supplier = Callable[[], Any]

IN_A_FIELD = "lost at a restart"
"""The mistake of a processor that keeps in a field or a variable what has to last from one record to the next."""


def starting_again(supplier: Supplier) -> Supplier:
    """Return a supplier of processors that start again before each record; the same one if they punctuate.

    When a punctuation is due depends on when its task started, so the right results would be others.
    """
    made = supplier()
    if _punctuates(type(made)):
        return supplier
    kind = _StartingAgainWithItsKey if isinstance(made, FixedKeyProcessor) else _StartingAgain
    try:
        packed: bytes = cloudpickle.dumps(supplier)  # type: ignore[no-untyped-call]
    except Exception:  # pickle raises many kinds; a driver says which part of it cannot be sent to a task
        return supplier
    return lambda: kind(packed)


def called_anew(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a plain Python function whose variables of the notebook are as at the start before each of its calls.

    The same one is returned if it uses none that can change: a dict, a list or a set, or one that it assigns to.
    """
    if not (isfunction(function) and _uses_what_can_change(function)):
        return function
    try:
        packed: bytes = cloudpickle.dumps(function)  # type: ignore[no-untyped-call]
    except Exception:  # as above
        return function

    @wraps(function)
    def anew(*arguments: Any) -> Any:
        return cloudpickle.loads(packed)(*arguments)

    return anew


def _uses_what_can_change(function: Any) -> bool:
    try:
        used = getclosurevars(function)
    except ValueError:  # a variable has no value yet
        return False
    values = (*used.nonlocals.values(), *used.globals.values())
    assigns = any(each.opname == "STORE_GLOBAL" for each in dis.get_instructions(function))
    return assigns or any(isinstance(value, dict | list | set) for value in values)


def _punctuates(kind: type) -> bool:
    functions = (each for base in kind.__mro__ for each in vars(base).values() if isfunction(each))
    return any("schedule" in function.__code__.co_names for function in functions)


class _Again:
    """Makes a processor anew for each record, with the stores and the context of the task.

    Args:
        packed: the supplier as a task gets it, so that the variables of its notebook are as at the start, too.
    """

    context: ProcessorContext

    def __init__(self, packed: bytes) -> None:
        self._packed = packed

    def init(self, context: ProcessorContext) -> None:
        """Let a processor start once before the first record, so that what is wrong with that is told at the start."""
        self.context = context
        self._made().init(context)

    def process(self, record: Any) -> None:
        """Let a processor process a record as the first one since it started."""
        made = self._made()
        made.init(self.context)
        made.process(record)
        made.close()

    def _made(self) -> Any:
        return cloudpickle.loads(self._packed)()


class _StartingAgain(_Again, Processor): ...


class _StartingAgainWithItsKey(_Again, FixedKeyProcessor): ...
