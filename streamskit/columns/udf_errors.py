"""`F.udf` record by record: it is called only for records that are kept, and its errors are caught for each alone.

One that chance plays a part in is given a name by which `execution.optimization_barrier` has it called once for each.
"""

from collections.abc import Callable
from functools import wraps
from itertools import count
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from streamskit.api.error_handlers import exception_name
from streamskit.jvm.functions import attempt, value_or_failure

BY_RECORD = (PythonEvalType.SQL_BATCHED_UDF, PythonEvalType.SQL_ARROW_BATCHED_UDF)
"""The kinds of Python functions that are called for each record. The others are called, and fail, for whole batches."""

NOT_ASKED = "it was not called for this record"
"""The placeholder for the error of a record for which nothing was called; it is never reported."""

LONGEST_ERROR = 1000
"""How many characters of an error travel with a record."""


BY_CHANCE = "by_chance_"
"""What the name of a function begins with that was declared with `asNondeterministic()`; a number follows."""

_numbers = count()


def let_udfs_fail_by_record(
    is_catching: Callable[[], bool], asked_for: Callable[[], Column | None], is_for_records: Callable[[], bool]
) -> None:
    """Make Columns of `F.udf` fail like those of Spark's own functions, wherever such failures are caught.

    PySpark has no option for this: a Python function that raises ends Spark's task, and it is also called for rows
    that are not wanted. So from now on the class of all such functions checks whether its calls are to be caught, and
    for which records to make them.

    Args:
        is_catching: says whether the Column that is being made will be within an `attempt`.
        asked_for: returns the condition on which the Column that is being made will be wanted; None for always.
        is_for_records: says whether a function of a step is being called, and not one of Spark's own.
    """
    call = UserDefinedFunction.__call__

    @wraps(call)
    def call_or_catch(self: UserDefinedFunction, *arguments: Any, **named: Any) -> Column:
        condition = asked_for()
        self = self if self.deterministic or not is_for_records() else marked(self)
        if self.evalType not in BY_RECORD or not (is_catching() or condition is not None):
            return call(self, *arguments, **named)
        is_asked = F.lit(True) if condition is None else F.coalesce(condition, F.lit(False))
        if not is_catching():
            asked = UserDefinedFunction(
                called_if(self.func), self.returnType, self._name, self.evalType, self.deterministic
            )
            return call(asked, is_asked, *arguments, **named)
        tried = [attempt(each) for each in (*arguments, *named.values()) if isinstance(each, Column)]
        values = iter([each["value"] for each in tried])
        given = [next(values) if isinstance(each, Column) else each for each in arguments]
        given_by_name = {name: next(values) if isinstance(each, Column) else each for name, each in named.items()}
        failed = F.coalesce(*(each["error"] for each in tried), F.when(~is_asked, F.lit(NOT_ASKED)))
        result = T.StructType([T.StructField("value", self.returnType), T.StructField("error", T.StringType())])
        caught = UserDefinedFunction(caught_by_record(self.func), result, self._name, self.evalType, self.deterministic)
        return value_or_failure(call(caught, failed, *given, **given_by_name))

    UserDefinedFunction.__call__ = call_or_catch  # type: ignore[method-assign]


def marked(function: UserDefinedFunction) -> UserDefinedFunction:
    """Return a function that chance plays a part in, known by its name, as one that Spark may move and plan anew.

    Spark refuses a plan that it has once optimized with the function in it; and no call has the name of another, since
    Spark makes one of equal calls.
    """
    name = f"{BY_CHANCE}{next(_numbers)}_{function._name}"
    return UserDefinedFunction(function.func, function.returnType, name, function.evalType, deterministic=True)


def called_if(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls another one if its first argument is true, and otherwise returns None."""

    def call(is_asked: bool, *arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named) if is_asked else None

    return call


def caught_by_record(function: Callable[..., Any]) -> Callable[..., tuple[Any, str | None]]:
    """Return a function that returns another one's result or error; its first argument is an earlier error, if any."""

    def call(failed: str | None, *arguments: Any, **named: Any) -> tuple[Any, str | None]:
        if failed is not None:
            return None, failed
        try:
            return function(*arguments, **named), None
        except Exception as failure:
            return None, f"{exception_name(failure)}: {failure}"[:LONGEST_ERROR]

    return call
