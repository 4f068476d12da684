"""Tasks whose operators run in Python, as `streamskit/jvm/PythonTask.scala` starts them."""

import inspect
import pickle
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame

from streamskit.common.call_site import file_label
from streamskit.common.errors import TopologyError
from streamskit.jvm import java_class


def run_by_row(frame: DataFrame, processor: Any) -> DataFrame:
    """Return what Python workers make of rows; each worker gets those of one `task`, one by one.

    Args:
        frame: with the columns of `row_format.SCHEMA`, in that order, as the one that is returned.
        processor: a `task_processor.TaskProcessor`, which a worker runs.
    """
    return _run("byRow", frame, processor)


def run_by_batch(frame: DataFrame, processor: Any) -> DataFrame:
    """Return what Python workers make of packed rows; each worker gets those of one `task`.

    Args:
        frame: with the columns task and records, as `functions.packed` makes them; what is returned has records.
        processor: a `task_processor.TaskProcessor`, which a worker runs.
    """
    return _run("byBatch", frame, processor)


def _run(how: str, frame: DataFrame, processor: Any) -> DataFrame:
    context = frame.sparkSession.sparkContext
    command = pickled(processor)
    variables = {**context.environment, "SPARK_REUSE_WORKER": "1"}  # after its task it takes another one
    includes = list(context._python_includes or ())
    run = getattr(java_class("PythonTask"), how)
    return DataFrame(run(frame._jdf, bytearray(command), context.pythonExec, variables, includes), frame.sparkSession)


def pickled(processor: Any) -> bytes:
    """Return a processor as it is sent to the Python workers.

    Args:
        processor: a `task_processor.TaskProcessor`.

    Raises:
        TopologyError: a function in it holds what cannot be sent; the sentence names the step, and the function and
            variable where they can be found.
    """
    try:
        return _dumped(processor)
    except Exception as failure:
        refused = [each for each in getattr(processor, "operators", ()) if not _can_be_sent(each)]
        if not refused:
            raise
        names, why = ", ".join(each.name for each in refused), _held(refused[0]) or str(failure).rstrip(".")
        raise TopologyError(
            f"What '{names}' calls cannot be sent to Spark's Python workers, which are other processes: {why}. A lock, "
            "an open file, a connection or a SparkSession stays where it was made. Make it inside the function, or in "
            "the init() of a processor."
        ) from failure


def _can_be_sent(operator: Any) -> bool:
    try:
        _dumped(operator)
    except Exception:
        return False
    return True


def _held(thing: Any, depth: int = 8) -> str | None:
    """Say which function within an operator uses what cannot be sent, and by which name; None if it is not found."""
    for name, part in _parts(thing) if depth else ():
        if _can_be_sent(part):
            continue
        if (found := _held(part, depth - 1)) is not None:
            return found
        if isinstance(thing, FunctionType):
            place = f"{file_label(thing.__code__.co_filename)} line {thing.__code__.co_firstlineno}"
            function = "a lambda" if thing.__name__ == "<lambda>" else f"'{thing.__name__}'"
            return f"{function} ({place}) uses '{name}' from outside of it, an object of type {type(part).__qualname__}"
    return None


def _parts(thing: Any) -> list[tuple[str, Any]]:
    """Return what an operator or a function holds, by name, as far as functions of the user's may be in it."""
    if isinstance(thing, FunctionType):
        try:
            used = inspect.getclosurevars(thing)
        except ValueError:  # a variable has no value yet
            return []
        return [*used.nonlocals.items(), *used.globals.items()]
    if isinstance(thing, partial | MethodType):
        return [("", thing.func if isinstance(thing, partial) else thing.__func__)]
    if isinstance(thing, dict | list | tuple):
        return [("", each) for each in (thing.values() if isinstance(thing, dict) else thing)]
    is_own = type(thing).__module__.startswith("streamskit.")
    return list(vars(thing).items()) if is_own and hasattr(thing, "__dict__") else []


def _dumped(thing: Any) -> bytes:
    packed: bytes = cloudpickle.dumps(thing, pickle.HIGHEST_PROTOCOL)  # type: ignore[no-untyped-call]
    return packed
