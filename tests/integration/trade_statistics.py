"""The trade statistics of the course: the program, and the same by plain pandas."""

from typing import Any

import pandas as pd
from pyspark.sql import functions as F

from streamskit import Materialized, Serdes, StreamsBuilder, TimeWindows, Topology

WINDOW, ADVANCE = 5_000, 1_000


def trade_statistics(source: str, sink: str) -> Topology:
    """Return the topology: price statistics of each symbol in windows of 5 s by 1 s, and their average to a topic."""
    builder = StreamsBuilder()
    trade_statistics_of(builder, source, sink)
    return builder.build()


def trade_statistics_of(builder: StreamsBuilder, source: str, sink: str) -> None:
    """Write the program with a builder."""
    (
        builder.stream(source, value=Serdes.json("symbol string, price double, size int"))
        .filter(lambda v: v.price > 0)
        .group_by_key()
        .windowed_by(TimeWindows.of_size_with_no_grace(WINDOW).advance_by(ADVANCE))
        .aggregate(
            lambda v: F.struct(
                F.count("*").alias("count"), F.min(v.price).alias("min_price"), F.sum(v.price).alias("sum_price")
            ),
            Materialized("trade-aggregates", retention="30 days"),
        )
        .map_values(lambda v: v.sum_price / v["count"])
        .to_stream()
        .to(sink, value=Serdes.double())
    )


def expected_statistics(records: list[dict[str, Any]]) -> pd.DataFrame:
    """Return count, lowest and total price for each symbol and window start, computed by pandas alone."""
    rows = pd.DataFrame({"key": r["key"], "time": r["timestamp"], "price": r["value"]["price"]} for r in records)
    last = rows["time"] // ADVANCE * ADVANCE
    windows = pd.concat([rows.assign(start=last - back) for back in range(0, WINDOW, ADVANCE)])
    prices = windows[windows["start"] >= 0].groupby(["key", "start"])["price"]
    return pd.DataFrame({"count": prices.count(), "min_price": prices.min(), "sum_price": prices.sum()}).sort_index()
