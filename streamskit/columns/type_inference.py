"""Users' functions tried before any record flows: which type they return, and whether they can be called at all."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from streamskit.api.stream_partitioner import ARGUMENTS, Partition, Partitioner, partition_function
from streamskit.columns import user_functions
from streamskit.common.errors import TopologyError
from streamskit.environment.session import spark_session
from streamskit.serdes import Serde, require_serde

ARGUMENT_NAMES = {"key": "k", "value": "v"}
"""What users call the columns of a row in their functions."""


def infer_type(
    function: Callable[..., Any],
    inputs: Mapping[str, T.DataType],
    step: str,
    aggregate: bool = False,
    at_least: int = 1,
) -> T.DataType:
    """Call a Column function on Columns of the right types and return the Spark type it makes.

    Args:
        function: takes all the inputs or the last ones, at least `at_least` of them.
        inputs: the name and Spark type of each argument.
        step: the operator and its place in the program, for the error.
        aggregate: whether the function makes an aggregate Column.
        at_least: how many arguments it takes at the least.

    Raises:
        TopologyError: the function cannot be called this way, or returns no Column.
    """
    column = user_functions.apply(function, _arguments(function, inputs, step, at_least), step)
    return user_functions.result_type(column, inputs, step, aggregate)


def infer_pair(
    function: Callable[..., Any], inputs: Mapping[str, T.DataType], step: str
) -> tuple[T.DataType, T.DataType]:
    """Call a Column function that makes a key and a value, and return their Spark types.

    Raises:
        TopologyError: the function cannot be called this way, or returns no pair of Columns.
    """
    key, value = user_functions.apply_pair(function, _arguments(function, inputs, step, 1), step)
    return user_functions.result_type(key, inputs, step), user_functions.result_type(value, inputs, step)


def check_signature(function: Any, role: str, arguments: Sequence[str], step: str) -> None:
    """Check that a plain Python function can be called with these arguments; it is not called.

    Raises:
        TopologyError: it is not a function, or takes other arguments.
    """
    example = f"lambda {', '.join(arguments)}: ...".replace("lambda :", "lambda:")
    if isinstance(function, Column) or not callable(function):
        raise TopologyError(f"{step}: the {role} has to be a Python function, {example}, and is {_kind(function)}.")
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        raise TopologyError(
            f"{step}: the {role} is called with {_count(len(arguments))}, as plain Python values, not Columns: "
            f"{example}. The one given takes {inspect.signature(function)}."
        ) from None
    except ValueError:
        return  # a C function without a signature


def check_partitioner(partitioner: Partitioner | None, step: str) -> Partition | None:
    """Return the function of a partitioner, if there is one.

    Raises:
        TopologyError: it is not a partitioner, or takes other arguments.
    """
    if partitioner is None:
        return None
    if isinstance(partitioner, type):
        name = partitioner.__name__
        raise TopologyError(f"{step}: the partitioner is the class {name}; give an object of it: {name}(...).")
    function = partition_function(partitioner)
    check_signature(function, "partitioner", ARGUMENTS, step)
    return function


def check_serde(serde: Serde | None, default: Serde, part: str, step: str) -> Serde:
    """Return the user's serde, or by default the one that fits the type of the records.

    Raises:
        TopologyError: the user's serde is for another type, or is not a serde.
    """
    if serde is None:
        return default
    require_serde(serde, f"{step}: {part}=")
    if not same_type(serde, default):
        raise TopologyError(
            f"{step}: the {part} is {user_functions.type_text(default.data_type)}, and the serde given "
            f"writes {user_functions.type_text(serde.data_type)}. Cast it first, or give a serde that fits."
        )
    return serde


def same_type(one: Serde, other: Serde) -> bool:
    """Return whether two serdes are for the same type; whether a field may be null makes no difference to its bytes."""
    spark_session()  # a JSON serde's type cannot be read without one
    return one.data_type.simpleString() == other.data_type.simpleString()


def _arguments(
    function: Callable[..., Any], inputs: Mapping[str, T.DataType], step: str, at_least: int
) -> list[Column]:
    names = {name: ARGUMENT_NAMES.get(name, name) for name in inputs}
    if isinstance(function, Column) or not callable(function):
        raise TopologyError(
            f"{step}: give a function that makes the Column, not {_kind(function)}: "
            f"lambda {', '.join(names.values())}: ..."
        )
    _check_count(function, list(names.values()), step, at_least)
    spark_session()  # no Column can be made without one
    return [
        user_functions.typed_column(F.col(user_functions.TRIAL_PREFIX + name), inputs[name], names[name])
        for name in inputs
    ]


def _check_count(function: Callable[..., Any], names: list[str], step: str, at_least: int) -> None:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = sum(p.default is p.empty for p in positional)
    # A parameter with a default keeps it, as in `lambda v, limit=limit: v < limit`; only a single one is filled.
    filled = max(required, min(1, len(positional)))
    enough = filled >= at_least or any(p.kind == p.VAR_POSITIONAL for p in parameters)
    if required > len(names) or not enough:
        ways = " or ".join(f"lambda {', '.join(names[-n:])}: ..." for n in range(at_least, len(names) + 1))
        defaults = ", without those that have a default" if len(positional) > required else ""
        raise TopologyError(f"{step}: the function takes {_count(required)}{defaults}; write {ways}")


def _count(arguments: int) -> str:
    return {0: "no argument", 1: "1 argument"}.get(arguments, f"{arguments} arguments")


def _kind(thing: Any) -> str:
    return "nothing (None)" if thing is None else f"a {type(thing).__name__}"
