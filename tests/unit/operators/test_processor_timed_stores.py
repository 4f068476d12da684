"""The window and session stores of processors, with all state saved and loaded between any two calls."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamskit import Stores, StreamsError, TopologyError, ValueAndTimestamp, Windowed
from streamskit.state.stores import Store
from tests.unit.operators.processor_harness import LONG, STRING, OneStore

unhurried = settings(deadline=None, max_examples=60)
"""A busy machine is no failure."""


@pytest.fixture
def windows() -> OneStore:
    return OneStore(Stores.persistent_window_store("windows", 100, 10, STRING, STRING))


def test_a_window_is_known_by_its_key_and_its_start(windows: OneStore) -> None:
    windows.call(lambda store: store.put("a", "1", 0))
    windows.call(lambda store: store.put("a", "2", 10))
    windows.call(lambda store: store.put("b", "3", 10))
    assert windows.call(lambda store: store.fetch("a", 10)) == "2"
    assert windows.call(lambda store: store.fetch("a", 5)) is None
    assert windows.call(lambda store: store.fetch("c", 0)) is None


def test_the_windows_of_a_key_between_two_times_come_in_order_or_backward(windows: OneStore) -> None:
    for start in (20, 0, 30, 10):
        windows.do("put", "a", str(start), start)
    assert windows.call(lambda store: store.fetch("a", 10, 20)) == [(10, "10"), (20, "20")]
    assert windows.call(lambda store: store.backward_fetch("a", 10, 30)) == [(30, "30"), (20, "20"), (10, "10")]


def test_a_persistent_store_goes_by_the_bytes_of_key_and_time_together_as_kafka_streams_does() -> None:
    """The zero bytes of a short key's time come after those that a longer key begins with."""
    windows = OneStore(Stores.persistent_window_store("windows", 100_000, 10, STRING, STRING))
    sessions = OneStore(Stores.persistent_session_store("sessions", 100_000, STRING, STRING))
    for key, time in (("a", 99), ("a\0", 100), ("ab", 5)):
        windows.do("put", key, "v", time)
        sessions.do("put", Windowed(key, time, time), "v")
    expected = [("a\0", 100), ("a", 99), ("ab", 5)]
    for found in (windows.call(lambda store: store.all()), sessions.call(lambda store: store.fetch_range(None, None))):
        assert [(row.key.key, row.key.start) for row in found] == expected


MANY_WINDOWS = (("z", 0), ("a", 10), ("ä", 0), ("z", 10), ("b", 70_000))
BY_KEY = [("a", 10), ("z", 0), ("z", 10), ("ä", 0), ("b", 70_000)]
BY_START = [("z", 0), ("ä", 0), ("a", 10), ("z", 10), ("b", 70_000)]


@pytest.mark.parametrize(
    ("make", "order"), [(Stores.persistent_window_store, BY_KEY), (Stores.in_memory_window_store, BY_START)]
)
def test_the_windows_of_many_keys_come_in_the_order_of_kafka_streams_stores(
    make: Callable[..., Store], order: list[tuple[str, int]]
) -> None:
    """A persistent one has segments of a minute, and keys in each; one in memory goes by time."""
    windows = OneStore(make("windows", 100_000, 10, STRING, STRING))
    for key, start in MANY_WINDOWS:
        windows.do("put", key, "v", start)

    def rows(method: str, *arguments: Any) -> list[tuple[str, int]]:
        found = windows.call(lambda store: getattr(store, method)(*arguments))
        assert {(row.key.end - row.key.start, row.value) for row in found} <= {(10, "v")}
        return [(row.key.key, row.key.start) for row in found]

    assert rows("all") == order
    assert rows("backward_all") == order[::-1]
    assert rows("fetch_all", 0, 10) == order[:4]
    assert rows("backward_fetch_all", 10, 70_000) == [row for row in order[::-1] if row[1] >= 10]
    assert rows("fetch_range", "b", "z", 0, 70_000) == [row for row in order if row[0] in "bz"]
    assert rows("fetch_range", None, "b", 0, 10) == [("a", 10)]
    assert rows("backward_fetch_range", "z", None, 0, 10) == [row for row in order[::-1] if row[0] in "zä"]


def test_none_deletes_a_window(windows: OneStore) -> None:
    windows.call(lambda store: store.put("a", "1", 0))
    windows.call(lambda store: store.put("a", None, 0))
    windows.call(lambda store: store.put("never there", None, 0))
    assert windows.call(lambda store: store.all()) == []


def test_a_window_is_gone_when_another_key_has_one_a_retention_later(windows: OneStore) -> None:
    windows.call(lambda store: store.put("a", "1", 0))
    windows.call(lambda store: store.put("b", "2", 99))
    assert windows.call(lambda store: store.fetch("a", 0)) == "1"
    windows.call(lambda store: store.put("b", "3", 100))
    assert windows.call(lambda store: store.fetch("a", 0)) is None
    assert [row.key.key for row in windows.call(lambda store: store.all())] == ["b", "b"]


def test_a_window_that_comes_too_late_is_not_kept(windows: OneStore) -> None:
    windows.call(lambda store: store.put("a", "1", 500))
    windows.call(lambda store: store.put("a", "late", 400))
    assert windows.call(lambda store: store.fetch("a", 400)) is None


def test_old_windows_give_their_memory_back(windows: OneStore) -> None:
    for start in range(0, 20_000, 10):
        windows.do("put", "a", "v" * 100, start)
    assert sum(map(len, windows.pages.values())) < 3_000


def test_a_window_store_may_keep_a_time_beside_each_value() -> None:
    timed = OneStore(Stores.in_memory_window_store("timed", 100, 10, STRING, STRING, timestamped=True))
    timed.call(lambda store: store.put("a", ValueAndTimestamp("1", 7), 0))
    assert timed.call(lambda store: store.fetch("a", 0)) == ValueAndTimestamp("1", 7)
    with pytest.raises(StreamsError, match="keeps a time beside each value"):
        timed.call(lambda store: store.put("a", "1", 0))


def test_a_retention_shorter_than_a_window_is_refused() -> None:
    with pytest.raises(TopologyError, match="a retention of 5000 ms is shorter than a window of 10000 ms"):
        Stores.persistent_window_store("windows", "5 seconds", "10 seconds", STRING, STRING)


def test_a_window_has_a_key(windows: OneStore) -> None:
    with pytest.raises(StreamsError, match="'windows': a row cannot have the key None"):
        windows.call(lambda store: store.put(None, "1", 0))


PUTS = st.lists(
    st.tuples(st.sampled_from("aäb"), st.integers(0, 300), st.none() | st.integers(0, 9)), min_size=1, max_size=40
)


@unhurried
@given(PUTS, st.integers(10, 120))
def test_a_window_store_is_a_dict_of_those_that_began_less_than_a_retention_ago(puts: Any, retention: int) -> None:
    store, model, latest = OneStore(Stores.persistent_window_store("w", retention, 10, STRING, LONG)), {}, -1
    for key, start, value in puts:
        store.do("put", key, value, start)
        latest = max(latest, start)
        model[start, key.encode()] = value
    seen = {row: value for row, value in model.items() if value is not None and row[0] > latest - retention}
    found = store.call(lambda opened: opened.all())
    assert [(row.key.start, row.key.key.encode(), row.value) for row in found] == [
        (start, key, value) for (start, key), value in sorted(seen.items(), key=lambda row: row[0][::-1])
    ]
    for key in "aäb":
        mine = [(start, value) for (start, name), value in sorted(seen.items()) if name == key.encode()]
        assert store.do("fetch", key, 0, 300) == mine


# ---- sessions --------------------------------------------------------------------------------------------------------


@pytest.fixture
def sessions() -> OneStore:
    return OneStore(Stores.persistent_session_store("sessions", 1_000, STRING, LONG))


def test_a_session_is_known_by_its_key_start_and_end(sessions: OneStore) -> None:
    sessions.call(lambda store: store.put(Windowed("a", 0, 10), 1))
    sessions.call(lambda store: store.put(Windowed("a", 30, 40), 2))
    assert sessions.call(lambda store: store.fetch_session("a", 30, 40)) == 2
    assert sessions.call(lambda store: store.fetch_session("a", 30, 41)) is None
    assert sessions.call(lambda store: store.fetch_session("b", 30, 40)) is None


def test_a_key_alone_is_no_session(sessions: OneStore) -> None:
    said = r"keeps sessions, each known by its key, start and end: .* a Windowed\(key, start, end\), and not 'a'"
    with pytest.raises(StreamsError, match=said):
        sessions.call(lambda store: store.put("a", 1))
    with pytest.raises(StreamsError, match=said):
        sessions.call(lambda store: store.remove("a"))


def test_the_sessions_of_a_key_are_found_by_where_they_end_and_begin(sessions: OneStore) -> None:
    for start, end in ((60, 60), (0, 10), (30, 40)):
        sessions.do("put", Windowed("a", start, end), end)
    assert sessions.call(lambda store: store.find_sessions("a", 10, 30)) == [
        (Windowed("a", 0, 10), 10),
        (Windowed("a", 30, 40), 40),
    ]
    assert [row.value for row in sessions.call(lambda store: store.fetch("a"))] == [10, 40, 60]


@pytest.mark.parametrize(
    ("make", "order"),
    [
        (Stores.persistent_session_store, ["a 0-20", "a 10-20", "b 0-5", "c 0-20", "b 0-70000"]),
        (Stores.in_memory_session_store, ["b 0-5", "a 10-20", "a 0-20", "c 0-20", "b 0-70000"]),
    ],
)
def test_the_sessions_of_many_keys_come_in_the_order_of_kafka_streams_stores(
    make: Callable[..., Store], order: list[str]
) -> None:
    sessions = OneStore(make("sessions", 100_000, STRING, STRING))
    for key, start, end in (("c", 0, 20), ("a", 0, 20), ("b", 0, 70_000), ("a", 10, 20), ("b", 0, 5)):
        sessions.do("put", Windowed(key, start, end), "v")

    def rows(method: str, *arguments: Any) -> list[str]:
        found = sessions.call(lambda store: getattr(store, method)(*arguments))
        return [f"{row.key.key} {row.key.start}-{row.key.end}" for row in found]

    assert rows("fetch_range", None, None) == order
    assert rows("fetch_range", "a", "b") == [row for row in order if row[0] != "c"]
    assert rows("find_sessions_range", "b", "c", 20, 0) == ["c 0-20", "b 0-70000"]
    assert rows("find_sessions", "a", 0, 100) == [row for row in order if row[0] == "a"]


def test_a_session_is_removed(sessions: OneStore) -> None:
    sessions.call(lambda store: store.put(Windowed("a", 0, 10), 1))
    sessions.call(lambda store: store.put(Windowed("a", 20, 30), 2))
    sessions.call(lambda store: store.remove(Windowed("a", 0, 10)))
    sessions.call(lambda store: store.put(Windowed("a", 20, 30), None))
    sessions.call(lambda store: store.remove(Windowed("never there", 0, 10)))
    assert sessions.call(lambda store: store.fetch("a")) == []


def test_a_session_is_gone_when_another_key_has_one_that_ended_a_retention_later(sessions: OneStore) -> None:
    sessions.call(lambda store: store.put(Windowed("a", 0, 10), 1))
    sessions.call(lambda store: store.put(Windowed("b", 0, 1_009), 1))
    assert len(sessions.call(lambda store: store.fetch("a"))) == 1
    sessions.call(lambda store: store.put(Windowed("b", 0, 1_010), 1))
    assert sessions.call(lambda store: store.fetch("a")) == []
    assert sessions.call(lambda store: store.fetch_session("a", 0, 10)) is None


SESSIONS = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 200), st.integers(0, 30), st.none() | st.integers(0, 9)),
    min_size=1,
    max_size=40,
)


@unhurried
@given(SESSIONS, st.integers(0, 230), st.integers(0, 230))
def test_a_session_store_is_a_dict_of_sessions(puts: Any, earliest_end: int, latest_start: int) -> None:
    store, model = OneStore(Stores.in_memory_session_store("s", "1 hour", STRING, LONG)), dict[Any, int]()
    for key, start, length, value in puts:
        session = Windowed(key, start, start + length)
        store.do("put", session, value)
        model.pop(session, None)
        model |= {} if value is None else {session: value}
    for key in "ab":
        ended = [(one.end, one.start, value) for one, value in model.items() if one.key == key]
        mine = sorted(ended, key=lambda each: (each[0], -each[1]))  # in memory the one that began last comes first
        wanted = [each for each in mine if each[0] >= earliest_end and each[1] <= latest_start]
        found = store.do("find_sessions", key, earliest_end, latest_start)
        assert [(row.key.end, row.key.start, row.value) for row in found] == wanted
        assert len(store.do("fetch", key)) == len(mine)


WHEN_EXPIRED = [
    (Stores.persistent_window_store, 120_000, 1),  # in a segment of a minute that is not over
    (Stores.persistent_window_store, 119_999, 2),
    (Stores.in_memory_window_store, 129_001, 1),
    (Stores.in_memory_window_store, 129_000, 2),
]


@pytest.mark.parametrize(("make", "start", "dropped"), WHEN_EXPIRED)
def test_a_window_put_after_a_store_has_given_up_its_time_is_counted_as_dropped(
    make: Callable[..., Store], start: int, dropped: int
) -> None:
    windows = OneStore(make("windows", 1000, 10, STRING, STRING))
    windows.do("put", "a", "1", 130_000)
    windows.do("put", "a", "2", 1)
    assert windows.dropped == 1
    windows.do("put", "a", "3", start)
    assert windows.dropped == dropped


def test_a_session_put_after_a_store_has_given_up_its_time_is_counted_as_dropped_and_one_removed_is_not() -> None:
    for make, last in ((Stores.persistent_session_store, 120_000), (Stores.in_memory_session_store, 129_001)):
        sessions = OneStore(make("sessions", 1000, STRING, STRING))
        sessions.do("put", Windowed("a", 0, 130_000), "1")
        sessions.do("put", Windowed("a", 0, last), "2")
        sessions.do("remove", Windowed("a", 0, last - 1))
        assert sessions.dropped == 0
        sessions.do("put", Windowed("a", 0, last - 1), "3")
        assert sessions.dropped == 1


def test_a_session_that_is_removed_moves_the_time_of_a_persistent_store_only() -> None:
    for make, left in ((Stores.persistent_session_store, []), (Stores.in_memory_session_store, ["1"])):
        sessions = OneStore(make("sessions", 1000, STRING, STRING))
        sessions.do("put", Windowed("a", 0, 10), "1")
        sessions.do("remove", Windowed("b", 0, 5000))
        assert [row.value for row in sessions.do("fetch", "a")] == left
