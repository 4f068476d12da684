"""What a query of a local store cannot mean is refused, and never answered with rows that nobody asked for."""

import struct
from typing import Any

import pytest

from streamskit import Serdes, SessionWindows
from streamskit.queries import LocalSessionStore
from streamskit.state.local import LocalKeyValueStore
from streamskit.state.stores import Store

TEXT, LONG = Serdes.string(), Serdes.long()


def counts() -> LocalKeyValueStore:
    store = LocalKeyValueStore(Store("counts", "key-value", TEXT, LONG))
    store.apply(b"a", struct.pack(">q", 1), 0)
    return store


def visits() -> LocalSessionStore:
    windows = SessionWindows.of_inactivity_gap_with_no_grace("1 second")
    store = LocalSessionStore(Store("visits", "session", TEXT, LONG, windows, 10_000))
    store.apply(b"ann" + struct.pack(">qq", 900, 0), struct.pack(">q", 3), 900)
    return store


def test_a_prefix_of_none_is_refused_and_not_every_row() -> None:
    with pytest.raises(ValueError, match=r"Store 'counts': prefix_scan\(\) needs a prefix; for all rows write all\(\)"):
        counts().prefix_scan(None)
    assert counts().prefix_scan("") == [("a", 1)]


@pytest.mark.parametrize("method", ["fetch", "backward_fetch"])
def test_the_sessions_of_no_key_are_refused_and_not_those_of_all(method: str) -> None:
    with pytest.raises(ValueError, match="Store 'visits' has no row with the key None: name a key"):
        getattr(visits(), method)(None)
    with pytest.raises(ValueError, match="no row with the key None"):
        visits().find_sessions(None, 0, 1000)
    assert [row.value for row in visits().fetch_range(None, None)] == [3]


@pytest.mark.parametrize("time", [None, "noon", [5]])
def test_what_is_no_time_is_a_sentence(time: Any) -> None:
    with pytest.raises(ValueError, match="is no time: give milliseconds since 1970, or a datetime"):
        visits().find_sessions("ann", time, 1000)


def test_a_method_of_another_kind_of_store_is_answered_with_those_that_there_are() -> None:
    told = "Store 'visits' is a session store, which has no 'get'; it has: all, .*fetch, .*find_sessions, "
    with pytest.raises(AttributeError, match=told):
        visits().get("ann")  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"is a key-value store, .* 'fetch'; it has: all, .*get, .*reverse_range"):
        counts().with_timestamps().fetch("a", 0)  # type: ignore[attr-defined]
    assert not hasattr(counts(), "fetch")
