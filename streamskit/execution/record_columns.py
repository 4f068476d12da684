"""Records as Spark sees them: Columns over a row, and the bytes they are read from and written as."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamskit.columns import user_functions
from streamskit.serdes import LONG, Serde, SessionWindowedSerde, StringSerde
from streamskit.state.stores import Store
from streamskit.topology.nodes import Node

LARGEST_TIME = (2**63 - 1) // 1000
"""The largest timestamp that Spark's Kafka source can read: it counts in microseconds."""

WRITE_ORDER = ("writer", "time", "place")
"""The columns that say which task of Spark writes a row, and in which order (`streamskit/jvm/WriteOrder.scala`)."""


@dataclass(frozen=True)
class Datum:
    """A key or a value, as a typed Column; and its bytes as they were read, as long as nothing has changed them."""

    typed: Column
    raw: Column | None = None
    serde: Serde | None = None
    is_sure: bool = False
    """Whether the bytes are known to be readable, and so need no check before they are passed on."""

    def to_bytes(self, serde: Serde, condition: Column | None = None) -> Column:
        """Return the bytes that `serde` writes; those that were read are written again as they are.

        Args:
            serde: says how.
            condition: for which records they are wanted, if not for all.
        """
        if self.raw is None or serde != self.serde:
            return serde.to_bytes(self.given_to(serde, condition))
        # Bytes that the serde cannot read have to fail here as well, although nothing uses the value.
        return self.raw if self.is_sure or isinstance(serde, StringSerde) else F.when(self.typed.isNotNull(), self.raw)

    def given_to(self, serde: Serde, condition: Column | None) -> Column:
        """Return what a serde is given to write: for a dropped record nothing, if the serde is a Python function.

        Spark calls such functions for each row, also within a `F.when` that does not hold.
        """
        return self.typed if condition is None or not serde.runs_in_python else F.when(condition, self.typed)


def sure(raw: Column, serde: Serde) -> Datum:
    """Return what a serde reads from bytes that it has itself written."""
    return Datum(serde.from_bytes(raw), raw, serde, is_sure=True)


@dataclass(frozen=True)
class RecordColumns:
    """One record, as Columns over a row; `timestamp` in milliseconds.

    `old` is a table row's previous value, where it is known. `condition` is false for a record that a step has dropped.
    `note` is what a table's operator adds to an update besides its value: that it came out of order, or the time of its
    row.
    """

    key: Datum
    value: Datum
    timestamp: Column
    headers: Column
    condition: Column | None = None
    old: Datum | None = None
    note: Column | None = None

    def dressed(self, parent: Node, value: Column | None = None) -> list[Column]:
        """Return key and value (or another value in its place) dressed for a user's function.

        Args:
            parent: the node that passes the record on, which says the types.
            value: a value to give instead of the record's.
        """
        value = self.value.typed if value is None else value
        return [
            user_functions.typed_column(self.key.typed, parent.key.data_type, "k"),
            user_functions.typed_column(value, parent.value.data_type, "v"),
        ]

    def call(self, node: Node, function: Callable[..., object], parent: Node, value: Column | None = None) -> Column:
        """Return what a user's function of `node` makes of the record that `parent` passes on.

        With a `value` other than the record's it is called only where that is not null.
        """
        given = None if value is None else value.isNotNull()
        with self.asking_udfs(given):
            dressed = self.dressed(parent, value)
            return user_functions.apply(function, dressed, f"{node.name} at {node.call_site}", given)

    def asking_udfs(self, given: Column | None = None) -> AbstractContextManager[None]:
        """Within a `with`, have an `F.udf` in users' functions called only if the record is kept, and `given` holds."""
        both = [condition for condition in (self.condition, given) if condition is not None]
        return user_functions.asked_only_for(reduce(and_, both) if both else None)

    def key_bytes(self, serde: Serde) -> Column:
        """Return the bytes of the key, if the record is kept."""
        return self.key.to_bytes(serde, self.condition)

    def value_bytes(self, serde: Serde) -> Column:
        """Return the bytes of the value, if the record is kept."""
        return self.value.to_bytes(serde, self.condition)

    def old_bytes(self, serde: Serde) -> Column | None:
        """Return the bytes of the old value, if it is known and the record is kept."""
        return None if self.old is None else self.old.to_bytes(serde, self.condition)

    def where(self, condition: Column) -> "RecordColumns":
        """Return the record, dropped unless `condition` is true."""
        return replace(self, condition=condition if self.condition is None else self.condition & condition)

    def where_if(self, condition: Column | None) -> "RecordColumns":
        """Return the record, dropped unless `condition` is true, if there is one."""
        return self if condition is None else self.where(condition)


def to_sink(frame: DataFrame) -> DataFrame:
    """Return a frame of finished rows as the sink wants them (`streamskit/jvm/ProducerRecords.scala`).

    Where a row has a partition it goes there, otherwise the producer chooses by the key.

    Args:
        frame: with the columns topic, key, value, timestamp and headers, and perhaps partition and `WRITE_ORDER`. The
            result has the same columns, and fails where a timestamp is invalid.
    """
    time = frame["timestamp"]
    message = F.format_string(
        "A record for topic %s has the timestamp %s, which is no time: give it milliseconds since 1970.",
        frame["topic"], F.coalesce(time.cast("string"), F.lit("null")),
    )  # fmt: skip
    time = F.when((time >= 0) & (time <= LARGEST_TIME), time).otherwise(F.raise_error(message).cast("bigint"))
    more = [name for name in ("partition", *WRITE_ORDER) if name in frame.columns]
    return frame.select("topic", "key", "value", time.alias("timestamp"), "headers", *more)


def changelog_key(record: RecordColumns, store: Store, key: Serde) -> Column:
    """Return the key of a store's row in its changelog: for a window store the windowed key and a number.

    By the number (always 0 here) Kafka's `WindowKeySchema` distinguishes duplicates.
    """
    written = record.key_bytes(key)
    if store.kind != "window" or isinstance(key, SessionWindowedSerde):
        return written
    return F.concat(written, F.lit(bytes(4)))


def without_row_time(data: Column) -> tuple[Column, Column]:
    """Return what `operators.records.with_row_time` put after the time of a row, and that time as it was written."""
    return F.when(F.octet_length(data) > 8, F.substring(data, F.lit(10), F.octet_length(data))), F.substring(data, 1, 8)


def change_to_bytes(new: Column, old: Column) -> Column:
    """Return the new and the old value of a table's row as one value of a repartition topic; either may be null.

    The first byte says which of the two are present (1 the new, 2 the old); if both are, the length of the new one
    follows in 8 bytes.
    """

    def written(change: Column) -> Column:
        new, old = change["new"], change["old"]
        length = LONG.to_bytes(F.octet_length(new).cast("bigint"))
        return (
            F.when(new.isNotNull() & old.isNotNull(), F.concat(F.lit(b"\x03"), length, new, old))
            .when(new.isNotNull(), F.concat(F.lit(b"\x01"), new))
            .when(old.isNotNull(), F.concat(F.lit(b"\x02"), old))
        )

    # A function over an array can use its argument repeatedly; written out, the generated Java code would be too long
    # for Java to compile.
    return F.transform(F.array(F.struct(new.alias("new"), old.alias("old"))), written)[0]


def change_from_bytes(data: Column) -> tuple[Column, Column]:
    """Return the new and the old value that `change_to_bytes` wrote."""
    kind, both = F.substring(data, 1, 1), F.substring(data, 1, 1) == F.lit(b"\x03")
    length = F.when(both, LONG.from_bytes(F.substring(data, 2, 8)).cast("int"))
    rest = F.substring(data, F.lit(2), F.octet_length(data))
    new = F.when(both, F.substring(data, F.lit(10), length)).when(kind == F.lit(b"\x01"), rest)
    old = F.when(both, F.substring(data, length + 10, F.octet_length(data))).when(kind == F.lit(b"\x02"), rest)
    return new, old
