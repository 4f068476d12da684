"""Processors that start again before each record: what is in a field is lost then, what is in a store is not.

A task's Python process imports this module, so it imports no more than a processor needs.
"""

from collections.abc import Callable
from inspect import isfunction
from typing import Any

from streamskit.api.processor import FixedKeyProcessor, Processor, ProcessorContext

Supplier = Callable[[], Any]

IN_A_FIELD = "lost at a restart"
"""The mistake of a processor that keeps in a field what has to last from one record to the next."""


def starting_again(supplier: Supplier) -> Supplier:
    """Return a supplier of processors that start again before each record; the same one if they punctuate.

    When a punctuation is due depends on when its task started, so the right results would be others.
    """
    made = supplier()
    if _punctuates(type(made)):
        return supplier
    kind = _StartingAgainWithItsKey if isinstance(made, FixedKeyProcessor) else _StartingAgain
    return lambda: kind(supplier)


def _punctuates(kind: type) -> bool:
    functions = (each for base in kind.__mro__ for each in vars(base).values() if isfunction(each))
    return any("schedule" in function.__code__.co_names for function in functions)


class _Again:
    """Makes a processor anew for each record, with the stores and the context of the task."""

    context: ProcessorContext

    def __init__(self, supplier: Supplier) -> None:
        self._supplier = supplier

    def init(self, context: ProcessorContext) -> None:
        """Let a processor start once before the first record, so that what is wrong with that is told at the start."""
        self.context = context
        self._supplier().init(context)

    def process(self, record: Any) -> None:
        """Let a processor process a record as the first one since it started."""
        made = self._supplier()
        made.init(self.context)
        made.process(record)
        made.close()


class _StartingAgain(_Again, Processor): ...


class _StartingAgainWithItsKey(_Again, FixedKeyProcessor): ...
