"""How a query reports how many records its nodes drop: in Spark's report of a batch, or directly to a test driver."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamskit.jvm.functions import driver_told
from streamskit.planning.options import QueryOptions

SAID = "streamskit said"
"""The prefix of the name under which a query quotes, by node, what was wrong with one of the records it dropped."""

SKIPPED = "skipped records"
"""The prefix of the name under which a query reports, by node, how many records it dropped."""


def tell_dropped(frame: DataFrame, where: str, times: Mapping[str, Column], options: QueryOptions) -> DataFrame:
    """Return a frame that reports how many dropped records its rows stand for.

    Args:
        frame: with any columns; they stay as they are.
        where: in which part of the query, to tell its reports apart.
        times: by the name of the node, how many dropped records a row stands for; null for none.
        options: how the query runs. For a test driver whose batch stays open, each row is reported.
    """
    counts = {name: each.cast("bigint") for name, each in times.items()}
    if options.driver:
        return frame.where(driver_told(_named(counts), options.driver))
    return frame.observe(f"{SKIPPED} {where}", *(F.sum(each).alias(name) for name, each in counts.items()))


def tell_quotes(frame: DataFrame, where: str, quotes: Mapping[str, Column], options: QueryOptions) -> DataFrame:
    """Return a frame that quotes, for each node, what was wrong with one of the records that it dropped.

    Args:
        frame: with any columns; they stay as they are.
        where: in which part of the query, to tell its reports apart.
        quotes: by the name of the node, a text; null in rows without one.
        options: how the query runs.
    """
    if options.driver:
        return frame.where(driver_told(_named(quotes), options.driver))
    return frame.observe(f"{SAID} {where}", *(F.max(each).alias(name) for name, each in quotes.items()))


def _named(columns: Mapping[str, Column]) -> Column:
    return F.struct(*(each.alias(name) for name, each in columns.items()))


def once(condition: Column) -> Column:
    """Return how many dropped records a row stands for: one where a condition holds, otherwise null."""
    return F.when(condition, 1)
