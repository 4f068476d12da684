"""The local stores that queries read."""

import struct
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from streamskit import Serdes, SlidingWindows, TimeWindows, Windowed
from streamskit.queries import (
    LocalKeyValueStore,
    LocalSessionStore,
    LocalStore,
    LocalVersionedStore,
    LocalWindowStore,
    local_store,
)
from streamskit.serdes import RegistryError, Serde, SerdeError
from streamskit.state.stores import Store, ValueAndTimestamp


def window_store(retention: int = 10_000) -> LocalWindowStore:
    windows = TimeWindows.of_size_with_no_grace(5000).advance_by(1000)
    return LocalWindowStore(Store("trades", "window", Serdes.string(), Serdes.long(), windows, retention))


def put(store: LocalWindowStore, key: str, start: int, value: int, partition: int = 0) -> None:
    store.apply(key.encode() + struct.pack(">qi", start, 0), struct.pack(">q", value), start, partition)


def test_a_key_value_store_keeps_the_latest_value_and_forgets_a_deleted_key() -> None:
    store = LocalKeyValueStore(Store("counts", "key-value", Serdes.string(), Serdes.long()))
    for key, value in ((b"b", 1), (b"a", 2), (b"b", 3), (b"c", 4)):
        store.apply(key, struct.pack(">q", value), 0)
    store.apply(b"c", None, 0)
    assert store.get("b") == 3
    assert store.get("c") is None
    assert dict(store.all()) == {"a": 2, "b": 3}
    assert [key for key, _ in store.range("a", "b")] == ["a", "b"]
    assert len(store) == 2


def global_store(key: Serde) -> LocalKeyValueStore:
    return LocalKeyValueStore(Store("rows", "key-value", key, Serdes.string()), is_global=True)


def test_a_row_of_a_global_store_is_found_whatever_bytes_its_key_was_written_with() -> None:
    store = global_store(Serdes.json("id long"))
    store.apply(b'{"id": 1}', b"one", 0)
    store.apply(b"no JSON", b"unread", 0)
    store.apply(b" null", b"no key", 0)
    assert store.get({"id": 1}) == "one"
    assert (store.all(), store.unreadable) == ([({"id": 1}, "one")], 1)
    store.apply(b'{  "id":1}', None, 0)
    assert (store.get({"id": 1}), store.all()) == (None, [])


class Registered(Serde):
    """A serde that asks a registry, which is away."""

    def serialize(self, value: Any) -> bytes:
        return b""

    def deserialize(self, data: bytes | None) -> Any:
        raise RegistryError("The schema registry does not answer.")


def test_a_registry_that_does_not_answer_is_no_record_s_fault() -> None:
    with pytest.raises(RegistryError, match="does not answer"):
        global_store(Registered()).apply(b"k", b"one", 0)


@pytest.mark.parametrize(
    ("serde", "spelled", "key"),
    [(Serdes.string(), [b"k", b"k"], "k"), (Serdes.json("id long"), [b'{"id":1}', b'{"id": 1}'], {"id": 1})],
    ids=["of a producer with a partitioner", "of two producers"],
)
def test_equal_keys_from_several_partitions_are_one_row_of_a_global_store(
    serde: Serde, spelled: list[bytes], key: Any
) -> None:
    store = global_store(serde)
    store.apply(spelled[0], b"older", 0, partition=0)
    store.apply(spelled[1], b"newer", 1, partition=3)
    assert (store.get(key), store.all(), len(store)) == ("newer", [(key, "newer")], 1)
    store.apply(spelled[0], None, 2, partition=1)
    assert (store.get(key), store.all()) == (None, [])


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
    store = LocalKeyValueStore(Store("people", "key-value", Serdes.string(), Serdes.json("age int, town string")))
    store.apply(b"ann", b'{"age":7,"town":"Ulm"}', 42)
    assert store.to_pandas().to_dict("records") == [{"key": "ann", "age": 7, "town": "Ulm", "timestamp": 42}]


def test_a_key_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="no row with the key None"):
        window_store().fetch(None, 0)


def test_a_peek_at_a_key_value_store_returns_the_first_keys_of_all_partitions() -> None:
    store = LocalKeyValueStore(Store("counts", "key-value", Serdes.string(), Serdes.long()))
    for number, key in enumerate((b"d", b"a", b"c", b"b")):
        store.apply(key, struct.pack(">q", number), 0, partition=number % 2)
    assert store.peek(3) == [("a", 1), ("b", 3), ("c", 2)]
    assert store.peek(2, lambda key: key > "b") == [("c", 2), ("d", 0)]


def test_a_peek_at_a_window_store_returns_the_newest_windows_however_far_back() -> None:
    store = window_store(retention=86_400_000)
    for key, start, partition in (("KO", 0, 0), ("IBM", 80_000_000, 1), ("KO", 80_001_000, 0), ("AAPL", 80_001_000, 1)):
        put(store, key, start, start, partition)
    windows = [(row.key.key, row.key.start) for row in store.peek(3)]
    assert windows == [("AAPL", 80_001_000), ("KO", 80_001_000), ("IBM", 80_000_000)]
    assert [row.key.start for row in store.peek(5, lambda key: key == "KO")] == [80_001_000, 0]


@pytest.mark.parametrize("kind", ["key-value", "window", "versioned"])
def test_a_peek_at_keys_that_begin_so_looks_at_no_others(kind: str) -> None:
    if kind == "window":
        store: LocalStore = window_store(retention=86_400_000)
        rows = [(key.encode() + struct.pack(">qi", 1000, 0), 1000) for key in ("b", "ka", "k", "k\0a", "l", "é")]
    else:
        retention = 1000 if kind == "versioned" else None
        store = local_store(Store("counts", kind, Serdes.string(), Serdes.long(), retention=retention))
        rows = [(key.encode(), 1000) for key in ("b", "ka", "k", "k\0a", "l", "é")]
    for row, time in rows:
        store.apply(row, struct.pack(">q", 1), time)
    looked_at: list[str] = []

    def begins(beginning: str, key: str) -> bool:
        looked_at.append(key)
        return key.startswith(beginning)

    for beginning, expected in (("k", {"k", "ka", "k\0a"}), ("k\0", {"k\0a"}), ("é", {"é"}), ("x", set())):
        looked_at.clear()
        found = store.peek(9, partial(begins, beginning), beginning)
        assert {getattr(row.key, "key", row.key) for row in found} == expected
        assert set(looked_at) == expected


def test_a_peek_sees_no_window_that_is_gone() -> None:
    store = window_store(retention=10_000)
    for start in (0, 5_000, 10_000):
        put(store, "KO", start, start)
    assert [row.key.start for row in store.peek(9)] == [10_000, 5_000]


def test_a_peek_decodes_only_what_it_returns() -> None:
    store = LocalKeyValueStore(Store("counts", "key-value", Serdes.string(), Serdes.long()))
    store.apply(b"a", struct.pack(">q", 1), 0)
    store.apply(b"b", b"not a long", 0)
    assert store.peek(1) == [("a", 1)]


def test_a_peek_at_windows_without_length_comes_to_an_end() -> None:
    windows = SlidingWindows.of_time_difference_with_no_grace(0)
    store = LocalWindowStore(Store("trades", "window", Serdes.string(), Serdes.long(), windows, 10_000))
    put(store, "KO", 0, 1)
    assert [row.key for row in store.peek(9)] == [Windowed("KO", 0, 0)]


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        ("key-value", LocalKeyValueStore),
        ("window", LocalWindowStore),
        ("session", LocalSessionStore),
        ("versioned", LocalVersionedStore),
    ],
)
def test_each_kind_of_store_has_its_local_copy(kind: str, made: type) -> None:
    windows = TimeWindows.of_size_with_no_grace(5000) if kind == "window" else None
    store = local_store(Store("any", kind, Serdes.string(), Serdes.long(), windows, 10_000))
    assert type(store) is made
    assert store.kind == kind


@pytest.mark.parametrize("kind", ["window", "session"])
def test_a_store_of_windows_without_a_retention_is_refused(kind: str) -> None:
    windows = TimeWindows.of_size_with_no_grace(5000) if kind == "window" else None
    with pytest.raises(ValueError, match="Store 'any' has no retention"):
        local_store(Store("any", kind, Serdes.string(), Serdes.long(), windows))


def test_a_list_leaves_out_the_rows_that_cannot_be_read_and_counts_them(caplog: pytest.LogCaptureFixture) -> None:
    store = LocalKeyValueStore(Store("counts", "key-value", Serdes.string(), Serdes.long()))
    for key, value in ((b"a", struct.pack(">q", 1)), (b"b", b"short"), (b"c", struct.pack(">q", 3)), (b"\xff", b"")):
        store.apply(key, value, 0)
    assert store.all() == [("a", 1), ("c", 3)]
    assert store.unreadable == 2
    assert "Store 'counts': a list leaves out 2 of its rows, which its serdes cannot read, such as " in caplog.text
    assert store.peek(3, lambda key: key < "c") == [("a", 1)]
    assert list(store.to_pandas()["key"]) == ["a", "c"]
    with pytest.raises(SerdeError):
        store.get("b")
    assert store.range("c") == [("c", 3)]


def test_a_view_with_timestamps_has_what_its_store_takes_in_later() -> None:
    store = LocalKeyValueStore(Store("counts", "key-value", Serdes.string(), Serdes.long()))
    timed = store.with_timestamps()
    store.apply(b"a", struct.pack(">q", 1), 10)
    store.apply(b"b", struct.pack(">q", 2), 20, partition=1)
    assert timed.get("a") == ValueAndTimestamp(1, 10)
    assert timed.all() == [("a", (1, 10)), ("b", (2, 20))]
    assert (timed.updates, timed.stopped) == (2, "")
    store.drop(1)
    store.stopped = "The application is closed."
    assert timed.all() == [("a", (1, 10))]
    assert timed.stopped == "The application is closed."
    assert store.get("a") == 1


def test_some_partitions_of_a_store_stay_as_they_were_when_they_were_taken() -> None:
    store = LocalKeyValueStore(Store("counts", "key-value", Serdes.string(), Serdes.long()))
    store.apply(b"a", struct.pack(">q", 1), 10)
    view = store.only([0, 1])
    store.apply(b"b", struct.pack(">q", 2), 20, partition=1)
    store.drop(0)
    assert view.partitions == {0}
    assert (view.get("a"), view.get("b"), view.updates) == (1, None, 1)


def test_one_partition_that_is_followed_has_what_its_store_takes_in_later_and_learns_when_it_ends() -> None:
    store = LocalKeyValueStore(Store("counts", "key-value", Serdes.string(), Serdes.long()))
    view = store.following(1)
    store.apply(b"a", struct.pack(">q", 1), 10)
    store.apply(b"b", struct.pack(">q", 2), 20, partition=1)
    assert (view.all(), view.get("a"), view.partitions, len(view)) == ([("b", 2)], None, {1}, 1)
    assert view.with_timestamps().all() == [("b", (2, 20))]
    store.stopped = "The test driver is closed."
    assert (view.updates, view.stopped) == (2, "The test driver is closed.")


def test_a_data_frame_keeps_the_fields_of_a_value_that_are_named_as_its_own_columns() -> None:
    trades = Serdes.json("struct<key: string, start: bigint, timestamp: bigint, price: double>")
    store = local_store(Store("trades", "key-value", Serdes.string(), trades))
    store.apply(b"KO", b'{"key":"other","start":1,"timestamp":111,"price":2.5}', 999)
    assert store.to_pandas().to_dict("records") == [
        {"key": "KO", "value.key": "other", "start": 1, "value.timestamp": 111, "price": 2.5, "timestamp": 999}
    ]
    spans = Serdes.json("struct<start: bigint, end: bigint>")
    windows = TimeWindows.of_size_with_no_grace(5000)
    store = local_store(Store("spans", "window", Serdes.string(), spans, windows, 10_000))
    store.apply(b"KO" + struct.pack(">qi", 1000, 0), b'{"start":1,"end":2}', 999)
    assert store.to_pandas().to_dict("records") == [
        {"key": "KO", "start": 1000, "end": 6000, "value.start": 1, "value.end": 2, "timestamp": 999}
    ]
