"""What is measured: each case is a program of streamskit and the same written by hand in PySpark."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from streamskit import (
    FixedKeyProcessor,
    FixedKeyRecord,
    JoinWindows,
    KStream,
    ProcessorContext,
    Serdes,
    SessionWindows,
    Stores,
    StreamsBuilder,
)
from tests.integration.trade_statistics import trade_statistics_of

ORDER = "user string, amount int"
Sources = dict[str, DataFrame]
"""Streaming DataFrames by topic, as Spark's Kafka source gives them."""


@dataclass(frozen=True)
class Case:
    """One comparison.

    Args:
        name: what to call it.
        program: takes a builder and writes to the topic "out".
        by_hand: the same in PySpark.
        topics: what it reads.
        keys: how many keys the orders have.
        mode: the output mode by hand.
        slow_by_hand: how many records to give it by hand where all would take too long.
    """

    name: str
    program: Callable[[StreamsBuilder], None]
    by_hand: Callable[[Sources], DataFrame]
    topics: tuple[str, ...] = ("orders",)
    keys: int = 500
    mode: str = "append"
    slow_by_hand: int | None = None


def orders(builder: StreamsBuilder, topic: str = "orders") -> KStream:
    return builder.stream(topic, value=Serdes.json(ORDER))


def parsed(frame: DataFrame) -> DataFrame:
    """Return key, value and time of a topic's orders, as one writes it by hand."""
    value = F.from_json(F.col("value").cast("string"), ORDER)
    return frame.select(F.col("key").cast("string").alias("key"), value.alias("v"), "timestamp")


def row(key: Column, value: Column) -> list[Column]:
    return [F.lit("out").alias("topic"), key.cast("binary").alias("key"), value.cast("binary").alias("value")]


def filter_and_map(builder: StreamsBuilder) -> None:
    large = orders(builder).filter(lambda v: v.amount > 500)
    large.map_values(lambda v: F.struct(v.user, (v.amount * 2).alias("twice"))).to("out")


def filter_and_map_by_hand(sources: Sources) -> DataFrame:
    large = parsed(sources["orders"]).where("v.amount > 500")
    twice = F.struct(F.col("v.user"), (F.col("v.amount") * 2).alias("twice"))
    return large.select(*row(F.col("key"), F.to_json(twice)))


def count(builder: StreamsBuilder) -> None:
    orders(builder).group_by_key().count("counts").to_stream().to("out")


def count_by_hand(sources: Sources) -> DataFrame:
    counts = parsed(sources["orders"]).where("v is not null").groupBy("key").count()
    return twice(counts, F.col("key"), F.col("count").cast("string"))


def hopping(builder: StreamsBuilder) -> None:
    trade_statistics_of(builder, "trades", "out")


def hopping_by_hand(sources: Sources) -> DataFrame:
    value = F.from_json(F.col("value").cast("string"), "symbol string, price double, size int")
    trades = sources["trades"].select(F.col("key").cast("string").alias("key"), value.alias("v"), "timestamp")
    statistics = (
        trades.where("v.price > 0")
        .withWatermark("timestamp", "0 seconds")
        .groupBy("key", F.window("timestamp", "5 seconds", "1 second"))
        .agg(F.count("*").alias("count"), F.min("v.price").alias("min_price"), F.sum("v.price").alias("sum_price"))
    )
    windowed = F.concat("key", F.lit("@"), F.col("window.start").cast("string")).cast("binary")
    average = (F.col("sum_price") / F.col("count")).cast("string").cast("binary")
    aggregates = F.to_json(F.struct("count", "min_price", "sum_price")).cast("binary")
    both = F.array(
        F.struct(F.lit("out").alias("topic"), windowed.alias("key"), average.alias("value")),
        F.struct(F.lit("store").alias("topic"), windowed.alias("key"), aggregates.alias("value")),
    )
    return statistics.select(F.explode(both).alias("row")).select("row.*")


def twice(frame: DataFrame, key: Column, value: Column) -> DataFrame:
    """Return each row for the result's topic and for the topic that keeps the store, as streamskit writes it."""
    both = [F.struct(F.lit(topic).alias("topic"), key.cast("binary").alias("key"), value.cast("binary").alias("value"))
            for topic in ("out", "store")]  # fmt: skip
    return frame.select(F.explode(F.array(*both)).alias("row")).select("row.*")


def stream_stream(builder: StreamsBuilder) -> None:
    window = JoinWindows.of_time_difference_with_no_grace("100 ms")
    joined = orders(builder).join(orders(builder, "payments"), lambda o, p: o.amount + p.amount, window)
    joined.to("out")


def stream_stream_by_hand(sources: Sources) -> DataFrame:
    left, right = (parsed(sources[topic]).withWatermark("timestamp", "0 seconds") for topic in ("orders", "payments"))
    near = F.expr("l.key = r.key and r.timestamp between l.timestamp - interval 100 milliseconds "
                  "and l.timestamp + interval 100 milliseconds")  # fmt: skip
    joined = left.alias("l").join(right.alias("r"), near)
    return joined.select(*row(F.col("l.key"), (F.col("l.v.amount") + F.col("r.v.amount")).cast("string")))


def stream_table(builder: StreamsBuilder) -> None:
    users = builder.table("users")
    orders(builder).join(users, lambda o, name: F.struct(o.amount, name.alias("name"))).to("out")


def stream_table_by_hand(sources: Sources) -> DataFrame:
    """Join with the table as it is at the start of each micro-batch, the nearest that plain Spark has."""
    users = sources["users"].select(
        F.col("key").cast("string").alias("user"), F.col("value").cast("string").alias("name")
    )
    latest = users.dropDuplicates(["user"])
    joined = parsed(sources["orders"]).join(F.broadcast(latest), F.col("key") == F.col("user"))
    return joined.select(*row(F.col("key"), F.to_json(F.struct("v.amount", "name"))))


def session(builder: StreamsBuilder) -> None:
    windows = SessionWindows.of_inactivity_gap_with_no_grace("200 ms")
    orders(builder).group_by_key().windowed_by(windows).count("sessions").to_stream().to("out")


def session_by_hand(sources: Sources) -> DataFrame:
    """Count in Spark's session windows, which speak only when they close."""
    counted = (
        parsed(sources["orders"])
        .withWatermark("timestamp", "0 seconds")
        .groupBy("key", F.session_window("timestamp", "200 milliseconds").alias("window"))
        .count()
    )
    windowed = F.concat("key", F.lit("@"), F.col("window.start").cast("string"))
    return twice(counted, windowed, F.col("count").cast("string"))


def reducer(builder: StreamsBuilder) -> None:
    amounts = orders(builder).map_values(lambda v: v.amount.cast("bigint"))
    amounts.group_by_key().reduce(lambda total, amount: total + amount, materialized="totals").to_stream().to("out")


def reducer_by_hand(sources: Sources) -> DataFrame:
    totals = parsed(sources["orders"]).groupBy("key").agg(F.sum("v.amount").alias("total"))
    return twice(totals, F.col("key"), F.col("total").cast("string"))


class RunningTotal(FixedKeyProcessor):
    """Adds up the amounts of each key in a store."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.totals = context.state_store("totals")

    def process(self, record: FixedKeyRecord) -> None:
        total = (self.totals.get(record.key) or 0) + record.value
        self.totals.put(record.key, total)
        self.context.forward(record.with_value(total))


def processor(builder: StreamsBuilder) -> None:
    totals = Stores.persistent_key_value_store("totals", Serdes.string(), Serdes.long())
    amounts = orders(builder).map_values(lambda v: v.amount.cast("bigint"))
    amounts.process_values(RunningTotal, stores=[totals]).to("out")


class TotalByHand(StatefulProcessor):
    """The same for one key, as one writes it for Spark."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.total = handle.getValueState("total", "total bigint")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        before = self.total.get()
        total = before[0] if before is not None else 0
        for frame in rows:
            running = frame["amount"].cumsum() + total
            total = int(running.iloc[-1])
            yield pd.DataFrame({"key": key[0], "total": running})
        self.total.update((total,))

    def close(self) -> None:
        """Nothing to close."""


def processor_by_hand(sources: Sources) -> DataFrame:
    amounts = parsed(sources["orders"]).select("key", F.col("v.amount").cast("bigint").alias("amount"))
    totals = amounts.groupBy("key").transformWithStateInPandas(
        TotalByHand(), "key string, total bigint", "Update", "None"
    )
    return twice(totals, F.col("key"), F.col("total").cast("string"))


CASES = [
    Case("filter and map", filter_and_map, filter_and_map_by_hand),
    Case("table count", count, count_by_hand, keys=20_000, mode="update"),
    Case("hopping window", hopping, hopping_by_hand, topics=("trades",), mode="update"),
    Case("stream-stream join", stream_stream, stream_stream_by_hand, topics=("orders", "payments"),
         slow_by_hand=100_000),
    Case("stream-stream join, 20,000 keys", stream_stream, stream_stream_by_hand,
         topics=("orders", "payments"), keys=20_000),
    Case("stream-table join", stream_table, stream_table_by_hand, topics=("orders", "users")),
    Case("stream-table join, 20,000 keys", stream_table, stream_table_by_hand,
         topics=("orders", "users"), keys=20_000),
    Case("session window", session, session_by_hand),
    Case("session window, 20,000 keys", session, session_by_hand, keys=20_000),
    Case("reducer in Python", reducer, reducer_by_hand, mode="update"),
    Case("reducer in Python, 20,000 keys", reducer, reducer_by_hand, keys=20_000, mode="update"),
    Case("processor", processor, processor_by_hand, mode="update"),
    Case("processor, 20,000 keys", processor, processor_by_hand, keys=20_000, mode="update"),
    Case("processor, 1,000,000 keys", processor, processor_by_hand, keys=1_000_000, mode="update",
         slow_by_hand=100_000),
]  # fmt: skip
