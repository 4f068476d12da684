"""What an `F.udf` raises, for one record: as a Column that `attempt` catches, and not as the end of the whole batch."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from streamskit.api.error_handlers import exception_name
from streamskit.jvm.functions import attempt, value_or_failure

BY_RECORD = (PythonEvalType.SQL_BATCHED_UDF, PythonEvalType.SQL_ARROW_BATCHED_UDF)
"""The kinds of Python functions that are called for each record. The others are called for batches, and fail so."""

LONGEST_ERROR = 1000
"""How many characters of an error travel with a record."""


def let_udfs_fail_by_record(is_catching: Callable[[], bool]) -> None:
    """Make Columns of `F.udf` fail like those of Spark's own functions, wherever somebody catches that.

    PySpark has no place to ask for this: a Python function that raises ends Spark's task. So the class of all such
    functions asks, from now on, whether its calls are to be caught.

    Args:
        is_catching: says whether the Column that is being made will be within an `attempt`.
    """
    call = UserDefinedFunction.__call__

    @wraps(call)
    def call_or_catch(self: UserDefinedFunction, *arguments: Any, **named: Any) -> Column:
        if not is_catching() or self.evalType not in BY_RECORD:
            return call(self, *arguments, **named)
        tried = [attempt(each) for each in (*arguments, *named.values()) if isinstance(each, Column)]
        values = iter([each["value"] for each in tried])
        given = [next(values) if isinstance(each, Column) else each for each in arguments]
        given_by_name = {name: next(values) if isinstance(each, Column) else each for name, each in named.items()}
        failed = F.coalesce(*(each["error"] for each in tried), F.lit(None).cast("string"))
        result = T.StructType([T.StructField("value", self.returnType), T.StructField("error", T.StringType())])
        caught = UserDefinedFunction(caught_by_record(self.func), result, self._name, self.evalType, self.deterministic)
        return value_or_failure(call(caught, failed, *given, **given_by_name))

    UserDefinedFunction.__call__ = call_or_catch  # type: ignore[method-assign]


def caught_by_record(function: Callable[..., Any]) -> Callable[..., tuple[Any, str | None]]:
    """Return a function that returns what another one makes, or what it raises; first comes what failed before it."""

    def call(failed: str | None, *arguments: Any, **named: Any) -> tuple[Any, str | None]:
        if failed is not None:
            return None, failed
        try:
            return function(*arguments, **named), None
        except Exception as failure:
            return None, f"{exception_name(failure)}: {failure}"[:LONGEST_ERROR]

    return call
