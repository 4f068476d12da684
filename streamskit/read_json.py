"""`read_json`: a Column of what bytes of JSON say."""

from typing import Any

from pyspark import SparkContext
from pyspark.sql import Column
from pyspark.sql import types as T
from pyspark.sql.classic.column import Column as ClassicColumn


def read_json(data: Column, data_type: T.DataType, serde: str) -> Column:
    """Return a Column of the values in bytes, each of which has to be one JSON value of a type.

    Args:
        data: the bytes; a null, or the JSON value null, is a null.
        data_type: what the values are. Fields that it does not name are passed over, those not there are null.
        serde: the name that the error of other bytes speaks of.

    Spark's `from_json` reads text only, takes an empty one for null and stops after the first value.
    """
    context: Any = SparkContext._active_spark_context
    # The zone of times without one, as streamskit's own sessions have it.
    made = context._jvm.org.apache.spark.sql.streamskit.ReadJson.of(data._jc, data_type.json(), serde, "UTC")
    return ClassicColumn(made)
