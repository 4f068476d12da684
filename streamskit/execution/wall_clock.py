"""The wall clock of a query: rows that say what time it is, for processors that punctuate by it."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import SourceProgress

from streamskit.planning.plan import CLOCK_TOPIC

OFTEN = 10
"""How many such records a second there are at most: a micro-batch takes longer than the time between them."""


def with_clock(frame: DataFrame, interval: int) -> DataFrame:
    """Return raw records with one of the clock's among them at least every `interval` milliseconds."""
    spark = frame.sparkSession
    often = max(1, min(OFTEN, round(1000 / interval)))
    ticks = spark.readStream.format("rate").option("rowsPerSecond", often).option("numPartitions", 1).load()
    given = {"topic": F.lit(CLOCK_TOPIC), "partition": F.lit(-1), "offset": F.lit(-1), "timestamp": ticks["timestamp"]}
    columns = [given.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name) for field in frame.schema]
    return frame.unionByName(ticks.select(*columns))


def is_clock(source: SourceProgress) -> bool:
    """Return whether a source of a query is the one that `with_clock` adds."""
    return source.description.startswith("RateStream")
