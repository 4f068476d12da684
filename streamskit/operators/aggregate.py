"""Aggregation of a stream by key: each record is folded into the aggregate of its key."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamskit.operators.records import OperatorRecord
from streamskit.operators.stream_task import Operator, OperatorContext, Process
from streamskit.serdes import Serde

Reader = Callable[[bytes | None], Any]
"""Decodes a value."""

Aggregator = Callable[[Any, Any, Any], Any]
"""Takes key, value and aggregate, and returns the new aggregate, or None to delete it."""

Step = Callable[[int, bytes, Any, bytes | None], tuple[bytes | None, bytes | None]]
"""Takes side, key, decoded value and aggregate; returns what the aggregate is said to have been, and what it is."""


@dataclass(frozen=True)
class Folding(Operator):
    """What all folds have in common: the serdes, and the functions that fold a value into an aggregate.

    Args:
        name: the node's name.
        key: the serde of the keys.
        inputs: the serdes of the values, one for each side.
        result: the serde of the aggregates.
        initializer: makes the first aggregate; None is for a reduce, where the first value is.
        aggregators: one for each side, called with key, value, aggregate.
    """

    name: str
    key: Serde
    inputs: tuple[Serde, ...]
    result: Serde
    initializer: Callable[[], Any] | None
    aggregators: tuple[Aggregator, ...]

    @property
    def folds(self) -> bool:
        return True

    def readers(self) -> list[Reader]:
        """Return for each side the function that decodes a value."""
        return [serde.deserialize for serde in self.inputs]

    def step(self, is_cached: bool) -> Step:
        """Return the function that folds one value into one aggregate."""
        read_key, read, write = self.key.deserialize, self.result.deserialize, self.result.serialize
        initializer, aggregators = self.initializer, self.aggregators

        def step(side: int, key: bytes, value: Any, aggregate: bytes | None) -> tuple[bytes | None, bytes | None]:
            if aggregate is not None:
                return aggregate, write(aggregators[side](read_key(key), value, read(aggregate)))
            if initializer is None:
                return None, write(value)
            first = initializer()
            # Kafka Streams says of a new row that it was the initial aggregate before; with a cache, that it was not.
            old = None if is_cached else write(first)
            return old, write(aggregators[side](read_key(key), value, first))

        return step


@dataclass(frozen=True)
class AggregateOperator(Folding):
    """Folds records into one aggregate for each key.

    A record without key or value is dropped. Mirrors `KStreamAggregate` and `KStreamReduce`; with several `inputs`
    `KStreamAggregate` in a cogroup. The arguments are those of `Folding`.
    """

    def open(self, task: OperatorContext) -> Process:
        change, forward, drop = task.table(self.name).change, task.forward, task.drop
        readers, step = self.readers(), self.step(task.is_cached)

        def process(side: int, record: OperatorRecord) -> None:
            key, data, _, _, timestamp, headers = record
            value = None if data is None else readers[side](data)
            if key is None or value is None:
                return drop()
            rows = change(key)
            aggregate, latest = rows.get(key) or (None, timestamp)
            old, new = step(side, key, value, aggregate)
            if latest < timestamp:
                latest = timestamp
            if new is None:
                rows.pop(key, None)
            else:
                rows[key] = (new, latest)
            return forward(key, new, latest, headers, old)

        return process


@dataclass(frozen=True)
class CountOperator(Operator):
    """Counts the records of each key, without a look at their values; the result is 8 bytes.

    Mirrors `KStreamAggregate` as `KGroupedStream#count` sets it up.
    """

    name: str

    @property
    def folds(self) -> bool:
        return True

    def open(self, task: OperatorContext) -> Process:
        change, forward, drop = task.table(self.name).change, task.forward, task.drop
        step = counting(task.is_cached)

        def process(side: int, record: OperatorRecord) -> None:
            key, value, _, _, timestamp, headers = record
            if key is None or value is None:
                return drop()
            rows = change(key)
            count, latest = rows.get(key) or (None, timestamp)
            old, new = step(side, key, value, count)
            if latest < timestamp:
                latest = timestamp
            rows[key] = (new, latest)
            return forward(key, new, latest, headers, old)

        return process


def counting(is_cached: bool) -> Step:
    """Return the step of a count, whose aggregate is a number of 8 bytes."""
    zero = None if is_cached else bytes(8)

    def step(side: int, key: bytes, value: Any, aggregate: bytes | None) -> tuple[bytes | None, bytes | None]:
        if aggregate is None:
            return zero, ONE
        return aggregate, (int.from_bytes(aggregate, "big") + 1).to_bytes(8, "big")

    return step


ONE = (1).to_bytes(8, "big")
