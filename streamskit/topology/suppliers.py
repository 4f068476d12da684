"""Suppliers of processors: that each makes a new one for every task, and which stores it brings along."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from streamskit.common.errors import TopologyError
from streamskit.state.stores import Store


def check_supplier(supplier: object, kind: type, step: str, *others: type) -> None:
    """Check that a supplier makes a new processor or transformer whenever it is called.

    A class does, so it is only looked at. Anything else is called twice, and what it makes is forgotten.

    Args:
        supplier: a class, a function that makes an object of it, or an object that can be called.
        kind: the class of what it has to make, a subclass included.
        step: the step and its line in the program, for the error.
        others: classes that will do as well.

    Raises:
        TopologyError: it cannot be called without arguments, fails, makes something else, or makes the same object
            each time, which the tasks would share.

    Mirrors `ApiUtils#checkSupplier`.
    """
    if not callable(supplier):
        raise TopologyError(f"{step}: give the {kind.__name__} class itself, or a function that makes one.")
    _check_needs_nothing(supplier, step)
    if isinstance(supplier, type):
        return _check_class(supplier, (kind, *others), step)
    try:
        made, another = supplier(), supplier()
    except Exception as failure:
        raise TopologyError(f"{step}: its supplier raised {type(failure).__name__}: {failure}") from failure
    name = type(made).__name__
    if not isinstance(made, (kind, *others)):
        raise TopologyError(
            f"{step}: its supplier made a {name}, and has to make a {kind.__name__}: pass the class itself, or a "
            "function without arguments that makes one."
        )
    if made is another:
        raise TopologyError(
            f"{step}: its supplier returned the same {name} twice, and each task needs one of its own: make a new one "
            f"in the function, such as lambda: {name}(...), or pass the class itself."
        )
    return None


def _check_needs_nothing(supplier: Callable[..., Any], step: str) -> None:
    name = getattr(supplier, "__name__", type(supplier).__name__)
    try:
        signature = inspect.signature(supplier)
    except ValueError:
        return  # a C function without a signature
    try:
        signature.bind()
    except TypeError:
        raise TopologyError(
            f"{step}: the supplier is called without arguments, and {name} takes {signature}. Give a function that "
            f"passes them: lambda: {name}(...)."
        ) from None


def _check_class(made: type, kinds: tuple[type, ...], step: str) -> None:
    kind = kinds[0].__name__
    if not issubclass(made, kinds):
        raise TopologyError(f"{step}: {made.__name__} is not a {kind}; make it one: class {made.__name__}({kind}).")
    if missing := sorted(getattr(made, "__abstractmethods__", ())):
        raise TopologyError(f"{step}: {made.__name__} has no method {missing[0]}(), which a {kind} needs.")


def brought_stores(supplier: Callable[[], Any], step: str) -> list[Store]:
    """Return the stores that a supplier of processors brings along: what its `stores()` returns, if it has one.

    Args:
        supplier: a class of processors, a function that makes one, or an object that can be called.
        step: the step and its line in the program, for the error.

    Raises:
        TopologyError: `stores()` cannot be called without arguments, or returns something other than stores.

    Mirrors `ConnectedStoreProvider#stores`.
    """
    made_by = supplier.func if isinstance(supplier, partial) else supplier
    provide = getattr(made_by, "stores", None)
    if not callable(provide):
        return []
    name = getattr(made_by, "__name__", type(made_by).__name__)
    try:
        inspect.signature(provide).bind()
    except TypeError:
        raise TopologyError(
            f"{step}: {name}.stores says which stores the processor brings along, and is called before there is one: "
            "write @staticmethod above it, and no argument."
        ) from None
    brought = provide()
    brought = [brought] if isinstance(brought, Store) else list(brought or ())
    if wrong := [each for each in brought if not isinstance(each, Store)]:
        raise TopologyError(
            f"{step}: {name}.stores() returned {wrong[0]!r} among its stores. Return a list of what Stores makes, such "
            "as Stores.persistent_key_value_store('counts', Serdes.string(), Serdes.long())."
        )
    return brought
