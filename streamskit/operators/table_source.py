"""Tables: the one that a topic's records make, and the aggregate of a table's rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamskit.common.errors import StreamsError
from streamskit.operators.aggregate import Aggregator
from streamskit.operators.records import OUT_OF_ORDER, OperatorRecord
from streamskit.operators.stores import BytesKeyValueStore
from streamskit.operators.stream_task import Operator, OperatorContext, Process
from streamskit.operators.versioned_store import BytesVersionedStore
from streamskit.serdes import Serde


@dataclass(frozen=True)
class LatestValueOperator(Operator):
    """Takes each record for the new value of its key's row, and passes on the value before with it.

    A record without a key is dropped. With a history a late record does not replace the latest value, but is passed on
    all the same, marked with `OUT_OF_ORDER` in `other`; one older than the history is dropped. Mirrors `KTableSource`.

    Args:
        name: the node's name.
        history: how far back versions are kept, in milliseconds; None keeps the latest value only.
    """

    name: str
    history: int | None = None

    @property
    def folds(self) -> bool:
        return self.history is None

    def open(self, task: OperatorContext) -> Process:
        return self._open_latest(task) if self.history is None else self._open_versioned(task, self.history)

    def _open_latest(self, task: OperatorContext) -> Process:
        table, forward, drop = task.table(self.name), task.forward, task.drop

        def process(side: int, record: OperatorRecord) -> None:
            key, value, _, _, timestamp, headers = record
            if key is None:
                return drop()
            rows = table.change(key)
            old = rows.pop(key, None) if value is None else rows.get(key)
            if value is not None:
                rows[key] = value
            return forward(key, value, timestamp, headers, old)

        return process

    def _open_versioned(self, task: OperatorContext, history: int) -> Process:
        store, forward, drop = BytesVersionedStore(task, self.name, history), task.forward, task.drop

        def process(side: int, record: OperatorRecord) -> None:
            key, value, _, _, timestamp, headers = record
            if key is None:
                return drop()
            old = store.get(key)
            put = store.put(key, value, timestamp)
            if not put.is_kept:
                return drop()
            return forward(key, value, timestamp, headers, old, None if put.is_latest else OUT_OF_ORDER)

        return process


@dataclass(frozen=True)
class TableAggregateOperator(Operator):
    """Folds the rows of a grouped table: takes a row's old value out of the aggregate and its new one in.

    `record.value` is the row to add, `record.old` the row to take out; either may be None. Mirrors `KTableAggregate`
    and `KTableReduce`.

    Args:
        name: the node's name.
        key: the serde of the grouped table's keys.
        value: the serde of its values.
        result: the serde of the aggregates.
        initializer: makes the first aggregate; None is for a reduce, where the first value is.
        adder: called with key, value, aggregate.
        subtractor: likewise, to take a value out.
        counting: counts rows instead; the serdes and functions are not used then.
    """

    name: str
    key: Serde
    value: Serde
    result: Serde
    initializer: Callable[[], Any] | None
    adder: Aggregator
    subtractor: Aggregator
    counting: bool = False

    @property
    def folds(self) -> bool:
        return True

    def open(self, task: OperatorContext) -> Process:
        store, forward = BytesKeyValueStore(task.table(self.name)), task.forward
        change = _count if self.counting else self._change

        def process(side: int, record: OperatorRecord) -> None:
            key, added, removed, _, timestamp, headers = record
            if key is None:
                raise StreamsError(
                    f"{self.name}: a row of the grouped table has no key: group by something that is never null."
                )
            old, old_timestamp = store.get(key) or (None, timestamp)
            new, latest = change(key, old, added, removed), max(timestamp, old_timestamp)
            store.put(key, None if new is None else (new, latest))
            forward(key, new, latest, headers, old)

        return process

    def _change(self, key: bytes, old: bytes | None, added: bytes | None, removed: bytes | None) -> bytes | None:
        initializer, adder = self.initializer, self.adder
        aggregate, plain_key = self.result.deserialize(old), self.key.deserialize(key)
        if removed is not None and aggregate is not None:
            aggregate = self.subtractor(plain_key, self.value.deserialize(removed), aggregate)
        if added is not None:
            value = self.value.deserialize(added)
            if aggregate is None:
                aggregate = value if initializer is None else adder(plain_key, value, initializer())
            else:
                aggregate = adder(plain_key, value, aggregate)
        return self.result.serialize(aggregate)


def _count(key: bytes, old: bytes | None, added: bytes | None, removed: bytes | None) -> bytes | None:
    if old is None and added is None:
        return None
    count = int.from_bytes(old or b"", "big", signed=True) + (added is not None)
    return (count - (removed is not None and old is not None)).to_bytes(8, "big", signed=True)
