"""The stores of a task, under Kafka Streams' names."""

import pytest

from streamskit.operators import (
    BytesKeyValueStore,
    BytesSessionStore,
    BytesVersionedStore,
    BytesWindowStore,
    OperatorContext,
)
from tests.unit.operators.operator_harness import Harness


@pytest.fixture
def task() -> OperatorContext:
    return OperatorContext(Harness([]).stage, 0, "test", lambda *_, **__: None, False)


def test_a_key_value_store_puts_gets_and_deletes(task: OperatorContext) -> None:
    store = BytesKeyValueStore(task.table("rows"))
    store.put(b"a", b"1")
    store.put(b"c", b"3")
    assert store.put_if_absent(b"a", b"9") == b"1"
    assert store.put_if_absent(b"b", b"2") is None
    assert store.delete(b"c") == b"3"
    assert store.get(b"c") is None
    store.put(b"b", None)
    assert list(store.all()) == [(b"a", b"1")]


def test_a_range_has_both_ends_and_is_in_order_of_bytes(task: OperatorContext) -> None:
    store = BytesKeyValueStore(task.table("rows"))
    for key in (b"d", b"b", b"a", b"c"):
        store.put(key, key)
    assert [key for key, _ in store.range(b"b", b"c")] == [b"b", b"c"]
    assert [key for key, _ in store.range(None, b"b")] == [b"a", b"b"]
    assert [key for key, _ in store.range(b"c", None)] == [b"c", b"d"]


def test_a_window_store_shows_a_window_until_one_starts_a_retention_later(task: OperatorContext) -> None:
    store = BytesWindowStore(task, "windows", 100)
    store.put(b"a", b"1", 0)
    store.put(b"b", b"2", 99)
    assert store.fetch(b"a", 0) == b"1"
    assert store.fetch_all(0, 200) == [(b"a", 0, b"1"), (b"b", 99, b"2")]
    store.put(b"b", b"3", 100)
    assert store.fetch(b"a", 0) is None
    assert store.fetch_range(b"b", 0, 200) == [(99, b"2"), (100, b"3")]


def test_only_a_window_store_by_time_knows_what_has_closed(task: OperatorContext) -> None:
    with pytest.raises(ValueError, match="by_time=True"):
        list(BytesWindowStore(task, "windows", 100).take_closed(5))


def test_sessions_are_found_by_where_they_end_and_begin(task: OperatorContext) -> None:
    store = BytesSessionStore(task, "sessions", 1000)
    for start, end in ((0, 10), (30, 40), (60, 60)):
        store.put(b"a", start, end, b"x")
    assert [session[:2] for session in store.find_sessions(b"a", 10, 30)] == [(10, 0), (40, 30)]
    store.remove(b"a", 30, 40)
    assert [session[:2] for session in store.find_sessions(b"a", 0, 100)] == [(10, 0), (60, 60)]
    store.put(b"a", 0, 10, None)
    assert [session[:2] for session in store.find_sessions(b"a", 0, 100)] == [(60, 60)]


def test_the_latest_version_never_goes_away(task: OperatorContext) -> None:
    store = BytesVersionedStore(task, "versions", 100)
    store.put(b"a", b"old", 0)
    store.put(b"b", b"tick", 1000)
    assert store.get(b"a") == b"old"
    assert store.get(b"a", as_of=10) == b"old"
    assert store.put(b"a", b"late", 899) == (False, False, None)
