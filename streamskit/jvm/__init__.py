"""Scala classes that Spark's Java runs, and the Columns made of them."""

from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

PACKAGE = "org.apache.spark.sql.streamskit"


def java_class(name: str) -> Any:
    """Return a class of Spark's Java; py4j, told part by part, would search all jars for a class named like each part.

    Args:
        name: its full name; one without a dot stands in our own package.
    """
    jvm: Any = SparkContext._jvm
    return getattr(jvm, name if "." in name else f"{PACKAGE}.{name}")


def scala_object(name: str) -> Any:
    """Return an object of Scala's, such as the one beside a class, by its full name."""
    return java_class(f"{name}$").__getattr__("MODULE$")


def with_time_of_each_record(frame: DataFrame) -> DataFrame:
    """Return the same DataFrame, where functions of the time of day look at the clock for each record.

    Spark takes the time once for a batch, and a batch in real-time mode lasts for minutes.

    Args:
        frame: the DataFrame, with any columns; they stay.
    """
    return ClassicDataFrame(java_class("PresentTime").forEachRecord(frame._jdf), frame.sparkSession)


def plan_contains(frame: DataFrame, pattern: str) -> bool:
    """Return whether the analyzed plan of a DataFrame contains what one of Spark's tree patterns stands for.

    Args:
        frame: the DataFrame, with any columns.
        pattern: the pattern's name, such as `PYTHON_UDF`.
    """
    patterns = java_class("org.apache.spark.sql.catalyst.trees.TreePattern")
    found: bool = frame._jdf.queryExecution().analyzed().containsPattern(getattr(patterns, pattern)())
    return found
