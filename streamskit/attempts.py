"""`attempt`: a Column that fails for one record without failing the query."""

from typing import Any

from pyspark import SparkContext
from pyspark.sql import Column
from pyspark.sql.classic.column import Column as ClassicColumn


def attempt(column: Column) -> Column:
    """Return a Column of structs: `value`, and `error`, which says what went wrong where there is no value.

    Args:
        column: made of Spark's own functions. What a Python function in it raises is not caught here.

    >>> attempt(F.lit("one").cast("bigint"))["error"]
    """
    context: Any = SparkContext._active_spark_context
    return ClassicColumn(context._jvm.org.apache.spark.sql.streamskit.Attempt.of(column._jc))
