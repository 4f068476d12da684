"""The stores that the tests of the live view look at."""

import json
import struct
from collections.abc import Callable
from typing import Any

from streamskit.api.windows import TimeWindows
from streamskit.queries import KeyValue, LocalKeyValueStore, LocalWindowStore
from streamskit.serdes import Serdes
from streamskit.state.stores import Store

NINE = 1_704_186_000_000
"""2024-01-02 09:00:00 UTC."""

MICROSECONDS = 1_700_000_000_000_000
"""A time in microseconds where milliseconds are due: no calendar has the year 55840."""


class CountingStore(LocalKeyValueStore):
    """Counts how often its rows are read."""

    reads = 0

    def peek(self, rows: int, predicate: Callable[[Any], bool] | None = None, beginning: str = "") -> list[KeyValue]:
        self.reads += 1
        return super().peek(rows, predicate, beginning)


def trades() -> LocalWindowStore:
    windows = TimeWindows.of_size_with_no_grace("5 seconds").advance_by("1 second")
    value = Serdes.json("count bigint, price double, note string")
    return LocalWindowStore(Store("trades", "window", Serdes.string(), value, windows, 86_400_000))


def put(store: LocalWindowStore, key: str, second: int, **fields: Any) -> None:
    start = NINE + second * 1000
    store.apply(key.encode() + struct.pack(">qi", start, 0), json.dumps(fields).encode(), start)


def counts(**values: int) -> CountingStore:
    store = CountingStore(Store("counts", "key-value", Serdes.string(), Serdes.long()))
    for key, value in values.items():
        count(store, key, value)
    return store


def count(store: LocalKeyValueStore, key: str, value: int) -> None:
    store.apply(key.encode(), struct.pack(">q", value), 0)
