"""Scala classes that Spark's Java runs, and the Columns made of them."""

from typing import Any

from pyspark import SparkContext

PACKAGE = "org.apache.spark.sql.streamskit"


def java_class(name: str) -> Any:
    """Return a class of Spark's Java; py4j, told part by part, would search all jars for a class named like each part.

    Args:
        name: its full name; one without a dot stands in our own package.
    """
    jvm: Any = SparkContext._jvm
    return getattr(jvm, name if "." in name else f"{PACKAGE}.{name}")
