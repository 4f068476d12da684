"""Records as Spark sees them: the columns of a row, and the bytes they are read from and written as."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamskit import columns
from streamskit.serdes import Serde, Serdes
from streamskit.topology import Node, Source, Store

TIMESTAMP_HEADER = "streamskit-timestamp"
"""The header in which a record's timestamp travels to the producer, as Spark's Kafka sink has no column for it."""


@dataclass(frozen=True)
class Record:
    """One record, as Columns over a row. `kept` is false for a record that a filter has dropped."""

    key: Column
    value: Column
    timestamp: Column
    headers: Column
    kept: Column | None = None

    def call(self, node: Node, function: Callable[..., object], key: Serde, value: Serde) -> Column:
        """Return what a learner's function makes of this record's key and value, whose serdes are given."""
        dressed = [columns.typed(self.key, key.data_type, "k"), columns.typed(self.value, value.data_type, "v")]
        return columns.call(function, dressed, f"{node.name} at {node.written_at}")

    def where(self, condition: Column) -> "Record":
        """Return the record, dropped unless `condition` is true."""
        return replace(self, kept=condition if self.kept is None else self.kept & condition)


def columns_of(frame: DataFrame) -> Record:
    """Return the record in each row of a frame with the columns key, value, timestamp and headers."""
    return Record(frame["key"], frame["value"], frame["timestamp"], frame["headers"])


def to_frame(frame: DataFrame, record: Record) -> DataFrame:
    """Return a frame with the kept records of `record`, one in each row."""
    kept = frame if record.kept is None else frame.where(record.kept)
    return kept.select(
        record.key.alias("key"),
        record.value.alias("value"),
        record.timestamp.alias("timestamp"),
        record.headers.alias("headers"),
    )


def decode(raw: DataFrame, source: Source) -> DataFrame:
    """Read the bytes of a topic's records with the serdes of the source."""
    decoded = raw.select(
        source.key.from_bytes(raw["key"]).alias("key"),
        source.value.from_bytes(raw["value"]).alias("value"),
        raw["timestamp"],
        raw["headers"],
        F.spark_partition_id().alias("task"),
    )
    # Spark would move a later filter below the decoding, and so decode every record twice. It never moves one past a
    # column that might differ from call to call, and `task` counts as such.
    return decoded.where("task >= 0").drop("task")


def output(record: Record, topic: str, key: Column, value: Column) -> Column:
    """Return the row of Spark's Kafka sink that writes bytes to a topic at the record's timestamp."""
    stamp = F.struct(
        F.lit(TIMESTAMP_HEADER).alias("key"),
        F.unix_millis(record.timestamp).cast("string").cast("binary").alias("value"),
    )
    row = F.struct(
        F.lit(topic).alias("topic"),
        key.alias("key"),
        value.alias("value"),
        F.concat(F.coalesce(record.headers, F.array().cast(HEADERS)), F.array(stamp)).alias("headers"),
    )
    return row if record.kept is None else F.when(record.kept, row)


def changelog_key(record: Record, store: Store) -> Column:
    """Return the key of a store's row in its changelog: for a window store the key, the window's start and a number.

    The number (always 0) is where Kafka's `WindowKeySchema` tells duplicates apart.
    """
    if store.windows is None:
        return store.key.to_bytes(record.key)
    return F.concat(Serdes.time_windowed(store.key, store.windows.size).to_bytes(record.key), F.lit(bytes(4)))


HEADERS = "array<struct<key: string, value: binary>>"
