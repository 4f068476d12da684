"""One program of everything that keeps state, and what has to come of its records.

A record of `numbers` is its own id; what is made of it names the id, so that each result tells what was lost or
doubled.
"""

import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

from streamskit import (
    JoinWindows,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    Serdes,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
)
from tests.integration.tallies import Noting

LONG, STRING, BYTES = Serdes.long(), Serdes.string(), Serdes.byte_array()

PARTITIONS = 2
ACCOUNTS = 20_000
"""How many rows the table has with which numbers are joined: several micro-batches, at MOST_RECORDS a batch."""

MOST_RECORDS = 5_000
SIZE, APART = 10 * 60_000, 30 * 60_000
"""A window's size, and how far apart an order and its payment may be, in milliseconds of event time."""

INPUTS = ("accounts", "numbers", "orders", "payments", "blobs")
OUTPUTS = ("copies", "costs", "closed", "paid", "settled", "digests", "dead")


class Settling(Processor):
    """Collects ids by key in two stores, and passes on what they hold: one by stream time, one by wall clock.

    Each result says in which life of the processor it was made and as which, which only its fields know.
    """

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.life, self.turns = uuid.uuid4().hex, 0
        context.schedule("5 minutes", PunctuationType.STREAM_TIME, lambda now: self.settle("by-stream-time", now))
        context.schedule("2 seconds", PunctuationType.WALL_CLOCK_TIME, lambda now: self.settle("by-clock", now))

    def process(self, record: Record) -> None:
        store = self.context.state_store("by-clock" if record.value % 2 else "by-stream-time")
        store.put(record.key, ",".join(filter(None, (store.get(record.key), str(record.value)))))

    def settle(self, name: str, now: int) -> None:
        store = self.context.state_store(name)
        for key, ids in list(store.all()):
            self.turns += 1
            store.delete(key)
            self.context.forward(Record(key, f"{self.life}:{self.turns}:{ids}", self.context.current_stream_time_ms()))


class Digest(Processor):
    """Says how long a large value is, and keeps the last of each of its twenty keys."""

    def process(self, record: Record) -> None:
        self.context.state_store("large").put(record.key, record.value)
        self.context.forward(record.with_value(f"{record.value[:12].decode()}:{len(record.value)}"))


def everything(calls: Path) -> Topology:
    """Return the program.

    Args:
        calls: the file where its `foreach` writes ids.
    """
    builder = StreamsBuilder()
    accounts = builder.table("accounts", value=LONG, materialized="accounts")
    numbers = builder.stream("numbers", value=LONG)
    numbers.to("copies", value=LONG)
    numbers.foreach(Noting(calls))
    numbers.join(accounts, lambda number, rate: number * 10 + rate).to("costs", value=LONG)
    stores = [Stores.persistent_key_value_store(name, STRING, STRING) for name in ("by-stream-time", "by-clock")]
    numbers.process(Settling, stores=stores, value=STRING).to("settled", value=STRING)
    grouped = numbers.group_by_key()
    grouped.aggregate(
        lambda v: F.struct(F.min(v).alias("least"), F.max(v).alias("most"), F.count("*").alias("n")),
        materialized="tallies",
    )
    grouped.reduce(lambda total, number: total + number, "totals")
    numbers.group_by(lambda k, v: (v % 10).cast("string"), name="digit").count("digits")
    windows = grouped.windowed_by(TimeWindows.of_size_and_grace(SIZE, 0)).count("windowed")
    windows.suppress(Suppressed.until_window_closes()).to_stream().to("closed")
    orders, payments = (builder.stream(topic, value=LONG) for topic in ("orders", "payments"))
    near = JoinWindows.of_time_difference_and_grace(APART, 0)
    orders.join(payments, lambda order, payment: order * 10 + payment, near).to("paid", value=LONG)
    large = Stores.persistent_key_value_store("large", STRING, BYTES)
    builder.stream("blobs", value=BYTES).process(Digest, stores=[large], value=STRING).to("digests", value=STRING)
    return builder.build()


def program(calls: Path) -> Callable[[], Topology]:
    """Return a function that makes the program, in another process."""
    return partial(everything, calls)


def rate(account: int) -> int:
    """Return the rate of an account, the value of its row."""
    return account % 5 + 1


def settled_ids(values: list[str]) -> list[int]:
    """Return the ids in results of `Settling`, or in the rows of its stores."""
    return [int(number) for value in values for number in value.rpartition(":")[2].split(",")]


def lives_and_turns(values: list[Any]) -> list[str]:
    """Return what says of each result of `Settling` which it is."""
    return [value.rpartition(":")[0] for value in values]
