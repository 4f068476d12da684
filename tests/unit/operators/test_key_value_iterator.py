"""What a processor's store lists: closed by `with`, and with a key to peek at."""

from typing import Any

import pytest

from streamskit import Stores, StreamsError
from tests.unit.operators.processor_harness import LONG, STRING, OneStore, key_value


def rows() -> OneStore:
    store = OneStore(key_value())
    store.do("put_all", [("a", "1"), ("b", "2"), ("c", "3")])
    return store


@pytest.mark.parametrize(
    ("method", "arguments", "keys"),
    [
        ("all", (), "abc"),
        ("reverse_all", (), "cba"),
        ("range", ("b", None), "bc"),
        ("reverse_range", (None, "b"), "ba"),
        ("prefix_scan", ("a",), "a"),
    ],
)
def test_rows_can_be_read_in_a_with_block(method: str, arguments: tuple[str | None, ...], keys: str) -> None:
    def read(store: Any) -> list[str]:
        with getattr(store, method)(*arguments) as listed:
            return [row.key for row in listed]

    assert rows().call(read) == [*keys]


def test_a_key_that_was_peeked_at_comes_next_and_after_the_last_row_there_is_none() -> None:
    def read(store: Any) -> list[Any]:
        listed = store.all()
        seen: list[Any] = [listed.peek_next_key(), listed.peek_next_key(), next(listed).key]
        for row in listed:
            seen += [row.key, listed.peek_next_key()]
        return seen

    assert rows().call(read) == ["a", "a", "a", "b", "c", "c", None]


def test_the_rows_of_a_window_and_of_a_session_store_can_be_peeked_at_and_closed() -> None:
    windows = OneStore(Stores.persistent_window_store("windows", "1 hour", 10, STRING, STRING))
    windows.do("put", "a", "first", 0)
    windows.do("put", "a", "second", 20)
    assert windows.call(lambda store: [store.fetch("a", 0, 20).peek_next_key()]) == [0]
    assert windows.call(lambda store: [store.backward_fetch("a", 0, 20).peek_next_key()]) == [20]
    assert windows.call(lambda store: [store.backward_all().peek_next_key().start]) == [20]
    sessions = OneStore(Stores.persistent_session_store("sessions", "1 hour", STRING, LONG))
    with pytest.raises(StreamsError, match="Store 'sessions': these rows are closed"):
        sessions.call(lambda store: _closed(store.fetch("a")))


@pytest.mark.parametrize("ask", [next, list, lambda listed: listed.peek_next_key()])
def test_closed_rows_are_refused_with_a_sentence_even_after_a_peek(ask: Any) -> None:
    def read(store: Any) -> Any:
        listed = store.all()
        listed.peek_next_key()
        return ask(_closed(listed))

    with pytest.raises(StreamsError, match="these rows are closed, so no more can be read: read them inside"):
        rows().call(read)


def _closed(listed: Any) -> Any:
    listed.close()
    listed.close()
    return listed
