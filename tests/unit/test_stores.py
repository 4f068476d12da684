"""The local stores that queries read."""

import struct
from datetime import UTC, datetime

import pytest

from streamskit import Serdes, TimeWindows, Windowed
from streamskit.interactive import KeyValueStore, WindowStore
from streamskit.topology import Store


def window_store(retention: int = 10_000) -> WindowStore:
    windows = TimeWindows.of_size_with_no_grace(5000).advance_by(1000)
    return WindowStore(Store("trades", "window", Serdes.string(), Serdes.long(), windows, retention))


def put(store: WindowStore, key: str, start: int, value: int, partition: int = 0) -> None:
    store.apply(key.encode() + struct.pack(">qi", start, 0), struct.pack(">q", value), start, partition)


def test_a_key_value_store_keeps_the_latest_value_and_forgets_a_deleted_key() -> None:
    store = KeyValueStore(Store("counts", "key-value", Serdes.string(), Serdes.long()))
    for key, value in ((b"b", 1), (b"a", 2), (b"b", 3), (b"c", 4)):
        store.apply(key, struct.pack(">q", value), 0)
    store.apply(b"c", None, 0)
    assert store.get("b") == 3
    assert store.get("c") is None
    assert dict(store.all()) == {"a": 2, "b": 3}
    assert [key for key, _ in store.range("a", "b")] == ["a", "b"]
    assert len(store) == 2


def test_a_window_store_is_fetched_by_key_and_time() -> None:
    store = window_store()
    for start in (0, 1000, 2000):
        put(store, "KO", start, start + 1)
    put(store, "K", 1000, 7)
    assert store.fetch("KO", 0, 1000) == [(0, 1), (1000, 1001)]
    assert store.fetch("KO", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), datetime(1970, 1, 1, 0, 0, 2)) == [
        (1000, 1001),
        (2000, 2001),
    ]
    assert store.fetch("KO", 1000) == 1001
    assert store.fetch("KO", 1500) is None
    assert [row.key for row in store.fetch_all(1000, 1000)] == [Windowed("K", 1000, 6000), Windowed("KO", 1000, 6000)]


def test_a_window_is_gone_a_retention_after_it_started_in_its_own_partition() -> None:
    store = window_store(retention=10_000)
    put(store, "a", 0, 1, partition=0)
    put(store, "b", 0, 2, partition=1)
    put(store, "a", 10_000, 3, partition=0)
    assert [row.key.key for row in store.all()] == ["a", "b"]
    assert store.fetch("a", 0) is None
    assert store.fetch("b", 0) == 2


def test_old_windows_do_not_stay_in_memory() -> None:
    store = window_store(retention=10_000)
    for start in range(0, 1_000_000, 1000):
        put(store, "a", start, 1)
    assert len(store) < 100


def test_a_store_becomes_a_data_frame_with_a_column_for_each_field() -> None:
    store = KeyValueStore(Store("people", "key-value", Serdes.string(), Serdes.json("age int, town string")))
    store.apply(b"ann", b'{"age":7,"town":"Ulm"}', 42)
    assert store.to_pandas().to_dict("records") == [{"key": "ann", "age": 7, "town": "Ulm", "timestamp": 42}]


def test_a_key_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="no row with the key None"):
        window_store().fetch(None, 0)
