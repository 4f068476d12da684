"""Aggregations by key: of a grouped stream (`AggregateOperator`, `CountOperator`), and of a grouped table."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamskit.common.errors import StreamsError
from streamskit.operators.bytes_stores import BytesKeyValueStore, BytesVersionedStore, PutResult
from streamskit.operators.records import OUT_OF_ORDER, OperatorRecord
from streamskit.operators.stream_task import Operator, OperatorContext, ProcessRecord
from streamskit.serdes import Serde

Deserializer = Callable[[bytes | None], Any]
"""Decodes a value."""

Aggregator = Callable[[Any, Any, Any], Any]
"""Takes key, value and aggregate, and returns the new aggregate, or None to delete it."""

Update = Callable[[int, bytes, Any, bytes | None], tuple[bytes | None, bytes | None]]
"""Takes side, key, decoded value and aggregate; returns the aggregate before, as results report it, and the new one."""


Get = Callable[[bytes], tuple[bytes, int] | None]
"""Returns the aggregate of a key, with its time."""

Put = Callable[[bytes, bytes | None, int], PutResult]
"""Sets the aggregate of a key from a time on, and says whether it was kept."""

LATEST = PutResult(is_kept=True, is_latest=True)


@dataclass(frozen=True)
class AbstractStreamAggregate(Operator):
    """What all aggregations of a stream have in common: the serdes, initializer and aggregators.

    Args:
        name: the node's name.
        key: the serde of the keys.
        inputs: the serdes of the values, one for each side.
        result: the serde of the aggregates.
        initializer: makes the first aggregate; None is for a reduce, where it is the first value.
        aggregators: one for each side, called with key, value, aggregate.
    """

    name: str
    key: Serde
    inputs: tuple[Serde, ...]
    result: Serde
    initializer: Callable[[], Any] | None
    aggregators: tuple[Aggregator, ...]

    @property
    def is_cacheable(self) -> bool:
        return True

    def serdes_at(self, side: int) -> tuple[Serde, Serde]:
        return self.key, self.inputs[side]

    def deserializers(self) -> list[Deserializer]:
        """Return for each side the function that decodes a value."""
        return [serde.deserialize for serde in self.inputs]

    def update(self, is_cached: bool) -> Update:
        """Return the function that adds one value to one aggregate."""
        read_key, read, write = self.key.deserialize, self.result.deserialize, self.result.serialize
        initializer, aggregators = self.initializer, self.aggregators

        def update(side: int, key: bytes, value: Any, aggregate: bytes | None) -> tuple[bytes | None, bytes | None]:
            if aggregate is not None:
                return aggregate, write(aggregators[side](read_key(key), value, read(aggregate)))
            if initializer is None:
                return None, write(value)
            first = initializer()
            # Kafka Streams reports the initial aggregate as the old value of a new row; with a cache, it reports none.
            old = None if is_cached else write(first)
            return old, write(aggregators[side](read_key(key), value, first))

        return update


@dataclass(frozen=True)
class AggregateOperator(AbstractStreamAggregate):
    """Stream aggregation (aggregate, reduce, cogroup): one aggregate for each key.

    A record without key or value is dropped.
    Mirrors `org.apache.kafka.streams.kstream.internals.KStreamAggregate` and `KStreamReduce`; with several `inputs`
    `KStreamAggregate` in a cogroup.

    Args:
        history: how far back versions of an aggregate are kept, in milliseconds; None keeps the latest only. The
            preceding arguments are those of `AbstractStreamAggregate`.
    """

    history: int | None = None

    @property
    def is_cacheable(self) -> bool:
        return self.history is None

    def open(self, context: OperatorContext) -> ProcessRecord:
        return _aggregating(context, self.deserializers(), self.update(context.is_cached), self.history)


@dataclass(frozen=True)
class CountOperator(Operator):
    """Count of a stream: the number of records of each key, in 8 bytes, without a look at their values.

    Mirrors `org.apache.kafka.streams.kstream.internals.KStreamAggregate` as `KGroupedStream#count` sets it up.

    Args:
        name: the node's name.
        history: how far back versions of a count are kept, in milliseconds; None keeps the latest only.
    """

    name: str
    history: int | None = None

    @property
    def is_cacheable(self) -> bool:
        return self.history is None

    def open(self, context: OperatorContext) -> ProcessRecord:
        return _aggregating(context, None, count(context.is_cached), self.history)


def _aggregating(
    context: OperatorContext, deserializers: list[Deserializer] | None, update: Update, history: int | None
) -> ProcessRecord:
    """Return the function that aggregates by key; without deserializers values are left as bytes."""
    if history is not None:
        return _aggregating_versions(context, deserializers, update, history)
    changed_page, forward, drop = context.table(context.name).changed_page, context.forward, context.drop
    is_cached = context.is_cached

    def process(side: int, record: OperatorRecord) -> None:
        key, value, _, _, timestamp, headers = record
        if deserializers is not None and value is not None:
            value = deserializers[side](value)
        if key is None or value is None:
            return drop()
        rows = changed_page(key)
        aggregate, latest = rows.get(key) or (None, timestamp)
        old, new = update(side, key, value, aggregate)
        if latest < timestamp:
            latest = timestamp
        if new is None:
            rows.pop(key, None)
            latest = timestamp if is_cached else latest  # of a deleted row, a cache knows only the record's time
        else:
            rows[key] = (new, latest)
        return forward(key, new, latest, headers, old)

    return process


def _aggregating_versions(
    context: OperatorContext, deserializers: list[Deserializer] | None, update: Update, history: int
) -> ProcessRecord:
    """Return the function that aggregates by key and keeps versions; a record older than the history is dropped."""
    store, forward, drop = BytesVersionedStore(context, context.name, history), context.forward, context.drop

    def process(side: int, record: OperatorRecord) -> None:
        key, value, _, _, timestamp, headers = record
        if deserializers is not None and value is not None:
            value = deserializers[side](value)
        if key is None or value is None:
            return drop()
        time, aggregate = store.version(key) or (timestamp, None)
        old, new = update(side, key, value, aggregate)
        latest = timestamp if aggregate is None else max(time, timestamp)
        put = store.put(key, new, latest)
        if not put.is_kept:
            return drop()
        return forward(key, new, latest, headers, old, None if put.is_latest else OUT_OF_ORDER)

    return process


ONE = (1).to_bytes(8, "big")


def count(is_cached: bool) -> Update:
    """Return the update of a count, whose aggregate is a number of 8 bytes."""
    zero = None if is_cached else bytes(8)

    def update(side: int, key: bytes, value: Any, aggregate: bytes | None) -> tuple[bytes | None, bytes | None]:
        if aggregate is None:
            return zero, ONE
        return aggregate, (int.from_bytes(aggregate, "big") + 1).to_bytes(8, "big")

    return update


@dataclass(frozen=True)
class TableAggregateOperator(Operator):
    """Table aggregation: subtracts a row's old value from the aggregate of its group and adds its new one.

    `record.value` is the row to add, `record.old` the row to subtract; either may be None.
    Mirrors `org.apache.kafka.streams.kstream.internals.KTableAggregate` and `KTableReduce`.

    Args:
        name: the node's name.
        key: the serde of the grouped table's keys.
        value: the serde of its values.
        result: the serde of the aggregates.
        initializer: makes the first aggregate; None is for a reduce, where it is the first value.
        adder: called with key, value, aggregate.
        subtractor: likewise, to take a value out.
        counting: counts rows instead; the serdes and functions are then unused.
        history: how far back versions of an aggregate are kept, in milliseconds; None keeps the latest only.
    """

    name: str
    key: Serde
    value: Serde
    result: Serde
    initializer: Callable[[], Any] | None
    adder: Aggregator
    subtractor: Aggregator
    counting: bool = False
    history: int | None = None

    @property
    def is_cacheable(self) -> bool:
        return self.history is None

    def serdes_at(self, side: int) -> tuple[Serde, Serde]:
        return self.key, self.value

    def open(self, context: OperatorContext) -> ProcessRecord:
        get, put, forward, is_cached = *self._rows(context), context.forward, context.is_cached
        update = _count_rows if self.counting else self._update

        def process(side: int, record: OperatorRecord) -> None:
            key, added, removed, _, timestamp, headers = record
            if key is None:
                raise StreamsError(
                    f"{self.name}: a row of the grouped table has no key: group by something that is never null."
                )
            old, old_timestamp = get(key) or (None, timestamp)
            new, latest = update(key, old, added, removed), max(timestamp, old_timestamp)
            if new is None and is_cached:
                latest = timestamp
            put_result = put(key, new, latest)
            if not put_result.is_kept:
                return context.drop()
            return forward(key, new, latest, headers, old, None if put_result.is_latest else OUT_OF_ORDER)

        return process

    def _rows(self, context: OperatorContext) -> tuple[Get, Put]:
        """Return how to get and put an aggregate with its time."""
        if self.history is None:
            rows = BytesKeyValueStore(context.table(self.name))

            def put(key: bytes, value: bytes | None, time: int) -> PutResult:
                rows.put(key, None if value is None else (value, time))
                return LATEST

            return rows.get, put
        versions = BytesVersionedStore(context, self.name, self.history)

        def get(key: bytes) -> tuple[bytes, int] | None:
            time, value = versions.version(key) or (0, None)
            return None if value is None else (value, time)

        return get, versions.put

    def _update(self, key: bytes, old: bytes | None, added: bytes | None, removed: bytes | None) -> bytes | None:
        aggregate, plain_key = self.result.deserialize(old), self.key.deserialize(key)
        if removed is not None and aggregate is not None:
            aggregate = self.subtractor(plain_key, self.value.deserialize(removed), aggregate)
        if added is not None:
            value = self.value.deserialize(added)
            if aggregate is None and self.initializer is None:
                return self.result.serialize(value)
            if aggregate is None and self.initializer is not None:
                aggregate = self.initializer()
            aggregate = self.adder(plain_key, value, aggregate)
        return self.result.serialize(aggregate)


def _count_rows(key: bytes, old: bytes | None, added: bytes | None, removed: bytes | None) -> bytes | None:
    if old is None and added is None:
        return None
    rows = int.from_bytes(old or b"", "big", signed=True) + (added is not None)
    return (rows - (removed is not None and old is not None)).to_bytes(8, "big", signed=True)
