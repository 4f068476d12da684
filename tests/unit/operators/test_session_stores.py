"""The local stores of sessions and of versioned tables."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from streamskit import Serdes, SessionWindows, Windowed
from streamskit.queries import LocalSessionStore, LocalVersionedStore, VersionedRecord
from streamskit.state.stores import Store

TEXT, LONG = Serdes.string(), Serdes.long()


def session_store(retention: int = 10_000) -> LocalSessionStore:
    windows = SessionWindows.of_inactivity_gap_with_no_grace("1 second")
    return LocalSessionStore(Store("visits", "session", TEXT, LONG, windows, retention))


def put(store: LocalSessionStore, key: str, start: int, end: int, value: int | None, partition: int = 0) -> None:
    data = None if value is None else struct.pack(">q", value)
    store.apply(key.encode() + struct.pack(">qq", end, start), data, end, partition)


def prices() -> LocalVersionedStore:
    return LocalVersionedStore(Store("prices", "versioned", TEXT, LONG, retention=60_000))


def update(store: LocalVersionedStore, key: str, value: int | None, timestamp: int, partition: int = 0) -> None:
    store.apply(key.encode(), None if value is None else struct.pack(">q", value), timestamp, partition)


# Sessions.


def test_the_sessions_of_a_key_are_fetched_the_earliest_first() -> None:
    store = session_store()
    put(store, "ann", 5000, 5900, 2)
    put(store, "ann", 0, 900, 3)
    put(store, "anna", 100, 100, 1)
    assert store.fetch("ann") == [(Windowed("ann", 0, 900), 3), (Windowed("ann", 5000, 5900), 2)]
    assert store.fetch("bob") == []


def test_a_session_that_was_merged_into_another_is_gone() -> None:
    store = session_store()
    put(store, "ann", 0, 900, 3)
    put(store, "ann", 0, 900, None)
    put(store, "ann", 0, 1500, 4)
    assert store.fetch("ann") == [(Windowed("ann", 0, 1500), 4)]
    assert len(store) == 1


def test_a_session_is_gone_a_retention_after_it_ended_in_its_own_partition() -> None:
    store = session_store(retention=10_000)
    put(store, "ann", 0, 900, 1, partition=0)
    put(store, "bob", 0, 900, 1, partition=1)
    put(store, "cid", 5000, 10_900, 1, partition=0)
    assert [row.key.key for row in store.all()] == ["bob", "cid"]
    assert store.fetch("ann") == []
    assert len(store.fetch("bob")) == 1


def test_a_long_session_stays_while_its_end_is_recent() -> None:
    store = session_store(retention=10_000)
    put(store, "ann", 0, 50_000, 9)
    put(store, "bob", 59_000, 59_500, 1)
    assert [row.key for row in store.fetch("ann")] == [Windowed("ann", 0, 50_000)]


def test_old_sessions_do_not_stay_in_memory() -> None:
    store = session_store(retention=10_000)
    for start in range(0, 1_000_000, 1000):
        put(store, "ann", start, start, 1)
    assert len(store) < 100


def test_a_peek_at_sessions_returns_those_that_ended_last() -> None:
    store = session_store(retention=86_400_000)
    for key, start, end in (("ann", 0, 80_000_000), ("bob", 0, 900), ("cid", 79_000_000, 79_000_500)):
        put(store, key, start, end, 1)
    assert [row.key.key for row in store.peek(2)] == ["ann", "cid"]
    assert [row.key.key for row in store.peek(9, lambda key: key != "ann")] == ["cid", "bob"]


def test_sessions_become_a_data_frame_with_their_start_and_end() -> None:
    store = session_store()
    put(store, "ann", 0, 900, 3)
    assert store.to_pandas().to_dict("records") == [
        {"key": "ann", "start": 0, "end": 900, "value": 3, "timestamp": 900}
    ]


# Versions.


def test_an_update_that_comes_late_does_not_replace_a_later_version() -> None:
    store = prices()
    update(store, "KO", 75, 1000)
    update(store, "KO", 74, 500)
    assert store.get("KO") == VersionedRecord(75, 1000)
    update(store, "KO", 76, 1000)
    assert store.get("KO") == VersionedRecord(76, 1000), "of two updates of one time the second one counts"


def test_a_deletion_that_comes_late_deletes_nothing_and_a_late_value_revives_nothing() -> None:
    store = prices()
    update(store, "KO", 75, 1000)
    update(store, "KO", None, 500)
    assert store.get("KO") == VersionedRecord(75, 1000)
    update(store, "KO", None, 2000)
    update(store, "KO", 74, 1500)
    assert store.get("KO") is None
    update(store, "KO", 77, 2500)
    assert store.all() == [("KO", 77)]


def test_the_versions_of_one_key_in_two_partitions_have_nothing_to_do_with_each_other() -> None:
    store = prices()
    update(store, "KO", 75, 1000, partition=0)
    update(store, "KO", 74, 500, partition=1)
    assert sorted(store.all()) == [("KO", 74), ("KO", 75)]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.one_of(st.none(), st.integers(0, 99)), st.integers(0, 20))))
def test_whatever_the_order_the_row_is_the_last_update_of_the_latest_time(
    updates: list[tuple[str, int | None, int]],
) -> None:
    store = prices()
    for key, value, timestamp in updates:
        update(store, key, value, timestamp)
    for key in "ab":
        mine = [(timestamp, number, value) for number, (of, value, timestamp) in enumerate(updates) if of == key]
        timestamp, _, value = max(mine, default=(0, 0, None))
        assert store.get(key) == (None if value is None else VersionedRecord(value, timestamp))
