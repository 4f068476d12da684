"""Scala classes that Spark's Java runs, and the Columns made of them."""

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage
from pyspark import SparkContext
from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

PACKAGE = "org.apache.spark.sql.streamskit"

OFTEN_CALLED = {
    "org.apache.spark.sql.functions": "org.apache.spark.sql.functions",
    "functions": "org.apache.spark.sql.functions",
    "PythonUtils": "org.apache.spark.api.python.PythonUtils",
}
"""By the name under which PySpark asks for it: a class whose methods it calls for each Column."""


def java_class(name: str) -> Any:
    """Return a class of Spark's Java; given the name part by part, py4j would search all jars for a class of each part.

    Args:
        name: its full name; one without a dot is in our own package.
    """
    jvm: Any = SparkContext._jvm
    return getattr(jvm, name if "." in name else f"{PACKAGE}.{name}")


def has_own_classes() -> bool:
    """Return whether Spark's Java has the classes of this package; one that was started by others need not."""
    return not isinstance(java_class("PresentTime"), JavaPackage)


def scala_object(name: str) -> Any:
    """Return an object of Scala's, such as the one beside a class, by its full name."""
    return java_class(f"{name}$").__getattr__("MODULE$")


class RememberingClass(JavaClass):
    """A class of Spark's Java whose methods are looked up once each, where py4j asks Java for one at each call."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            self.__dict__[name] = found
        return found


def remember_functions() -> None:
    """Look up the functions that make Columns only once in a session: a query makes hundreds of such calls."""
    jvm: Any = SparkContext._jvm
    for name, java_name in OFTEN_CALLED.items():
        vars(jvm)[name] = RememberingClass(java_name, jvm._gateway_client)


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
