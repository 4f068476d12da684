"""A learner's functions tried before any record flows: what type they make, and whether they can be called at all."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from streamskit.columns import user_functions
from streamskit.common.errors import TopologyError
from streamskit.environment.session import spark_session
from streamskit.serdes import Serde

WRITTEN = {"key": "k", "value": "v"}
"""What a learner calls the columns of a row."""


def infer_type(
    function: Callable[..., Any],
    inputs: Mapping[str, T.DataType],
    what: str,
    aggregate: bool = False,
    at_least: int = 1,
) -> T.DataType:
    """Call a Column function on Columns of the right types and return the Spark type it makes.

    Args:
        function: takes all the inputs or the last ones, at least `at_least` of them.
        inputs: the name and Spark type of each argument.
        what: the operator and where it stands, for the error.
        aggregate: whether the function makes an aggregate Column.
        at_least: how many arguments it takes at the least.

    Raises:
        TopologyError: the function cannot be called so, or makes no Column.
    """
    made = user_functions.call(function, _arguments(function, inputs, what, at_least), what)
    return user_functions.result_type(made, dict(inputs), what, aggregate)


def infer_pair(
    function: Callable[..., Any], inputs: Mapping[str, T.DataType], what: str
) -> tuple[T.DataType, T.DataType]:
    """Call a Column function that makes a key and a value, and return their Spark types.

    Raises:
        TopologyError: the function cannot be called so, or makes no pair of Columns.
    """
    key, value = user_functions.pair(function, _arguments(function, inputs, what, 1), what)
    return user_functions.result_type(key, dict(inputs), what), user_functions.result_type(value, dict(inputs), what)


def check_signature(function: Any, role: str, arguments: Sequence[str], what: str) -> None:
    """Check that a plain Python function can be called with so many arguments; it is not called.

    Raises:
        TopologyError: it is no function, or takes other arguments.
    """
    example = f"lambda {', '.join(arguments)}: ...".replace("lambda :", "lambda:")
    if isinstance(function, Column) or not callable(function):
        raise TopologyError(f"{what}: the {role} has to be a Python function, {example}, and is {_kind(function)}.")
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        raise TopologyError(
            f"{what}: the {role} is called with {_count(len(arguments))}, as plain Python values, not Columns: "
            f"{example}. The one given takes {inspect.signature(function)}."
        ) from None
    except ValueError:
        return  # a function of C that does not say what it takes


def check_serde(given: Serde | None, have: Serde, part: str, what: str) -> Serde:
    """Return the serde that was given, or the one there is.

    Raises:
        TopologyError: the one given is for another type.
    """
    if given is not None and not same_type(given, have):
        raise TopologyError(
            f"{what}: the {part} is {user_functions.spell(have.data_type)}, and the serde given "
            f"writes {user_functions.spell(given.data_type)}. Cast it before, or give the serde that fits."
        )
    return given or have


def same_type(one: Serde, other: Serde) -> bool:
    """Say whether two serdes are for one type; whether a field may be null makes no difference to its bytes."""
    spark_session()  # a JSON serde's type cannot be read without one
    return one.data_type.simpleString() == other.data_type.simpleString()


def _arguments(
    function: Callable[..., Any], inputs: Mapping[str, T.DataType], what: str, at_least: int
) -> list[Column]:
    if isinstance(function, Column) or not callable(function):
        raise TopologyError(
            f"{what}: give a function that makes the Column, not {_kind(function)}: "
            f"lambda {', '.join(WRITTEN.get(name, name) for name in inputs)}: ..."
        )
    _check_count(function, [WRITTEN.get(name, name) for name in inputs], what, at_least)
    spark_session()  # no Column can be made without one
    return [user_functions.typed(F.col(name), data_type, WRITTEN.get(name, name)) for name, data_type in inputs.items()]


def _check_count(function: Callable[..., Any], names: list[str], what: str, at_least: int) -> None:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = sum(p.default is p.empty for p in positional)
    enough = len(positional) >= at_least or any(p.kind == p.VAR_POSITIONAL for p in parameters)
    if required > len(names) or not enough:
        ways = " or ".join(f"lambda {', '.join(names[-n:])}: ..." for n in range(at_least, len(names) + 1))
        raise TopologyError(f"{what}: the function takes {_count(required)}; write {ways}")


def _count(arguments: int) -> str:
    return {0: "no argument", 1: "1 argument"}.get(arguments, f"{arguments} arguments")


def _kind(thing: Any) -> str:
    return "nothing (None)" if thing is None else f"a {type(thing).__name__}"
