"""Where local stores keep their rows: both ways do the same."""

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamskit import Serdes, StreamsError, TimeWindows
from streamskit.environment.processes import wait_until
from streamskit.queries import LocalKeyValueStore, LocalVersionedStore, LocalWindowStore, VersionedRecord
from streamskit.state.rocksdb import RocksStorage
from streamskit.state.rows import after_prefix, keyed, time_at, time_bytes, unkeyed
from streamskit.state.state_folder import StateFolder
from streamskit.state.storage import CHUNK, ChangelogMark, MemoryStorage, RowChange, Storage
from streamskit.state.stores import Store

KEYS = st.binary(max_size=3)


@pytest.fixture(params=["memory", "RocksDB"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    made: Storage = MemoryStorage() if request.param == "memory" else RocksStorage(tmp_path / "rows")
    yield made
    made.close()


def test_a_scan_gives_the_rows_of_its_segment_in_order_and_backwards(storage: Storage) -> None:
    rows = [RowChange(segment, row, row) for segment in (0, 1, 258) for row in (b"b", b"", b"ab", b"a\0", b"a")]
    storage.write(rows, ChangelogMark(5, 9))
    assert [row for row, _ in storage.scan(1, None, None, False)] == [b"", b"a", b"a\0", b"ab", b"b"]
    assert [row for row, _ in storage.scan(1, b"a", b"b", False)] == [b"a", b"a\0", b"ab"]
    assert [row for row, _ in storage.scan(1, b"a", b"b", True)] == [b"ab", b"a\0", b"a"]
    assert [row for row, _ in storage.scan(258, None, None, True)] == [b"b", b"ab", b"a\0", b"a", b""]
    assert list(storage.scan(7, None, None, False)) == []
    assert storage.segments() == [0, 1, 258]
    assert storage.mark() == ChangelogMark(5, 9)


def test_a_deleted_row_and_a_dropped_segment_are_gone(storage: Storage) -> None:
    storage.write([RowChange(segment, row, b"x") for segment in (0, 1) for row in (b"a", b"b")], ChangelogMark())
    list(storage.scan(0, None, None, False))
    storage.write([RowChange(0, b"a", None), RowChange(0, b"c", b"y")], ChangelogMark(2))
    storage.drop(1)
    assert list(storage.scan(0, None, None, False)) == [(b"b", b"x"), (b"c", b"y")]
    assert storage.get(0, b"a") is None
    assert storage.get(1, b"a") is None
    storage.clear()
    assert (storage.segments(), storage.mark(), storage.get(0, b"b")) == ([], ChangelogMark(), None)


def test_a_scan_goes_on_while_others_write(storage: Storage) -> None:
    rows = [f"{number:05}".encode() for number in range(3 * CHUNK)]
    storage.write([RowChange(0, row, b"") for row in rows], ChangelogMark())
    found = []
    for row, _ in storage.scan(0, None, None, False):
        found.append(row)
        storage.write([RowChange(0, b"00000 new", b""), RowChange(0, b"99999", None)], ChangelogMark())
    assert found == rows


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=2))), st.none() | KEYS, st.none() | KEYS, st.booleans())
def test_both_storages_do_what_a_sorted_dict_does(
    tmp_path_factory: pytest.TempPathFactory,
    changes: list[tuple[bytes, bytes | None]],
    begin: bytes | None,
    end: bytes | None,
    reverse: bool,
) -> None:
    model: dict[bytes, bytes] = {}
    on_disk = RocksStorage(tmp_path_factory.mktemp("rocks") / "rows")
    in_memory = MemoryStorage()
    for row, packed in changes:
        model.pop(row, None)
        if packed is not None:
            model[row] = packed
        for each in (on_disk, in_memory):
            each.write([RowChange(0, row, packed)], ChangelogMark())
    wanted = [row for row in sorted(model, reverse=reverse)
              if (begin is None or row >= begin) and (end is None or row < end)]  # fmt: skip
    for each in (on_disk, in_memory):
        assert list(each.scan(0, begin, end, reverse)) == [(row, model[row]) for row in wanted]
    on_disk.destroy()


def test_a_storage_on_the_disk_is_as_it_was_when_it_is_opened_again(tmp_path: Path) -> None:
    first = RocksStorage(tmp_path / "rows")
    first.write([RowChange(3, b"a", b"1"), RowChange(7, b"b", b"2")], ChangelogMark(42, 1000))
    first.close()
    again = RocksStorage(tmp_path / "rows")
    assert (again.mark(), again.segments(), again.get(3, b"a")) == (ChangelogMark(42, 1000), [3, 7], b"1")
    with pytest.raises(StreamsError, match="state-dir"):
        RocksStorage(tmp_path / "rows")
    again.close()


# Rows.


@given(st.binary(max_size=4), st.integers(0, 2**62), st.binary(max_size=4), st.integers(0, 2**62))
def test_rows_sort_by_key_and_then_by_time(one: bytes, time: int, other: bytes, other_time: int) -> None:
    rows = keyed(one) + time_bytes(time), keyed(other) + time_bytes(other_time)
    assert (rows[0] < rows[1]) == ((one, time) < (other, other_time))
    assert (unkeyed(rows[0], 1), time_at(rows[0], len(rows[0]) - 8)) == (one, time)


@given(st.binary(max_size=3), st.binary(max_size=5))
def test_what_comes_after_a_prefix_is_after_all_that_begin_with_it(prefix: bytes, other: bytes) -> None:
    end = after_prefix(prefix)
    assert other.startswith(prefix) == (prefix <= other and (end is None or other < end))


# Stores on them.


def key_value() -> LocalKeyValueStore:
    store = LocalKeyValueStore(Store("counts", "key-value", Serdes.string(), Serdes.long()))
    for number, key in enumerate(["b", "a", "ä", "B", "a/1", "a/2"]):
        store.apply(key.encode(), struct.pack(">q", number), 10 * number, partition=number % 3)
    return store


def test_a_range_may_be_open_and_is_empty_from_a_key_to_one_before_it() -> None:
    store = key_value()
    assert [key for key, _ in store.range(None, "a")] == ["B", "a"]
    assert [key for key, _ in store.reverse_range("a", None)] == ["ä", "b", "a/2", "a/1", "a"]
    assert store.range("b", "a") == []
    assert [key for key, _ in store.prefix_scan("a/")] == ["a/1", "a/2"]
    assert store.reverse_all() == store.all()[::-1]


@given(st.integers(1, 4), st.booleans())
def test_pages_of_a_list_are_the_list(size: int, reverse: bool) -> None:
    store = key_value()
    for partition in range(3):  # a processor's store may have a key in several partitions
        store.apply(b"same", struct.pack(">q", partition), 0, partition=partition)
    found, after = [], None
    while page := store.entries(store.everything(reverse), limit=size, after=after):
        found += page
        after = page[-1].cursor
    assert found == store.entries(store.everything(reverse))
    assert len(found) == 9


def test_a_view_has_some_partitions_and_one_with_timestamps_tells_when_a_value_was_set() -> None:
    store = key_value()
    assert [key for key, _ in store.only({1, 2}).all()] == ["a", "a/1", "a/2", "ä"]
    assert store.only({0}).get("a") is None
    assert store.with_timestamps().get("a") == (1, 10)
    assert store.get("a") == 1


def versions(history: int = 1000) -> LocalVersionedStore:
    return LocalVersionedStore(Store("prices", "versioned", Serdes.string(), Serdes.long(), retention=history))


def put(store: LocalVersionedStore, key: str, value: int | None, timestamp: int) -> None:
    store.apply(key.encode(), None if value is None else struct.pack(">q", value), timestamp)


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.none() | st.integers(0, 9), st.integers(0, 30)), max_size=30),
    st.integers(0, 35),
)
def test_a_version_is_what_was_last_set_before_a_time(updates: list[tuple[str, int | None, int]], as_of: int) -> None:
    store, known = versions(), dict[tuple[str, int], int | None]()
    for key, value, timestamp in updates:
        put(store, key, value, timestamp)
        known[key, timestamp] = value
    for key in "ab":
        times = [time for of, time in known if of == key and time <= as_of]
        value = known[key, max(times)] if times else None
        assert store.get(key, as_of) == (None if value is None else VersionedRecord(value, max(times)))


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.none() | st.integers(0, 9), st.integers(0, 30)), max_size=30),
    st.none() | st.integers(0, 35),
    st.none() | st.integers(0, 35),
)
def test_the_versions_between_two_times_are_those_that_were_valid_at_one_of_them(
    updates: list[tuple[str, int | None, int]], first: int | None, last: int | None
) -> None:
    store, known = versions(), dict[tuple[str, int], int | None]()
    for key, value, timestamp in updates:
        put(store, key, value, timestamp)
        known[key, timestamp] = value
    begin, end = 0 if first is None else first, 99 if last is None else last
    if begin > end:
        return
    for key in "ab":
        valid = [store.get(key, time) for time in range(begin, end + 1)]
        found = store.versions(key, first, last)
        expected = list(dict.fromkeys(version for version in valid if version is not None))
        assert [each._replace(valid_to=None) for each in found] == expected
        ends = [
            min((time for of, time in known if of == key and time > each.timestamp), default=None) for each in found
        ]
        assert [each.valid_to for each in found] == ends
        assert store.backward_versions(key, first, last) == found[::-1]


def test_versions_from_a_time_to_an_earlier_one_are_a_mistake() -> None:
    with pytest.raises(ValueError, match=r"Store 'prices': from 2 to 1 is backwards; give the earlier time first\."):
        versions().versions("a", 2, 1)


def test_versions_that_were_over_before_the_history_are_forgotten() -> None:
    store = versions(history=100)
    for time in range(0, 100_000, 50):
        put(store, "a", time, time)
    rows = store._partitions[0].storage.count()
    assert rows <= 4
    assert store.get("a", 99_900) == VersionedRecord(99_900, 99_900)
    assert store.get("a", 500) is None


def test_windows_are_found_by_ranges_of_keys_and_backwards() -> None:
    windows = TimeWindows.of_size_with_no_grace(10)
    store = LocalWindowStore(Store("counts", "window", Serdes.string(), Serdes.long(), windows, 1_000_000))
    for number, (key, start) in enumerate([("a", 0), ("a", 200_000), ("b", 100_000), ("c", 0), ("a", 700_000)]):
        store.apply(key.encode() + struct.pack(">qi", start, 0), struct.pack(">q", number), start, number % 2)
    found = [(row.key.key, row.key.start) for row in store.fetch_range("a", "b", 0, 300_000)]
    assert found == [("a", 0), ("a", 200_000), ("b", 100_000)]
    assert store.backward_fetch("a", 0, 800_000) == store.fetch("a", 0, 800_000)[::-1]
    assert store.backward_fetch_all(0, 10**6) == store.all()[::-1]


# The folder of an instance.


def opened(folder: Path, **topics: str) -> StateFolder:
    state = StateFolder(folder)
    state.open(topics)
    return state


def test_a_folder_tells_how_far_its_copies_are(tmp_path: Path) -> None:
    state = opened(tmp_path / "state", counts="id-1")
    state.storage("counts", 2).write([], ChangelogMark(42))
    state.close()
    again = opened(tmp_path / "state", counts="id-1")
    assert again.positions({"counts": "app-counts-changelog"}) == {("app-counts-changelog", 2): 42}
    again.close()


@pytest.mark.parametrize("spoil", ["another topic", "no checkpoint", "too long away"])
def test_copies_of_a_changelog_that_is_another_one_now_are_deleted(
    tmp_path: Path, spoil: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = opened(tmp_path / "state", counts="id-1")
    state.storage("counts", 2).write([], ChangelogMark(42))
    state.close()
    if spoil == "no checkpoint":
        (tmp_path / "state/counts/checkpoint.json").unlink()
    if spoil == "too long away":
        clock: Callable[[], Any] = __import__("time").time
        monkeypatch.setattr("streamskit.state.state_folder.time.time", lambda: clock() + 86_400)
    again = opened(tmp_path / "state", counts="id-2" if spoil == "another topic" else "id-1")
    assert again.positions({"counts": "topic"}) == {}
    again.close()


def test_a_partition_that_was_elsewhere_for_a_day_is_read_anew_though_its_store_was_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_000_000.0]
    monkeypatch.setattr("streamskit.state.state_folder.time.time", lambda: now[0])
    monkeypatch.setattr("streamskit.state.state_folder.CLOSE_AFTER", 0.0)
    state = opened(tmp_path / "state", counts="id-1")
    for partition in (0, 1):
        state.storage("counts", partition).write([RowChange(0, b"a", b"1")], ChangelogMark(42))
    state.release("counts", 1)
    wait_until(lambda: ("counts", 1) not in state._open, "the close of the storage")
    now[0] += 86_400
    state.note([("counts", 0)])
    assert state.storage("counts", 1).mark() == ChangelogMark()  # a deletion may be gone that it has not read
    state.close()
    now[0] += 60
    again = opened(tmp_path / "state", counts="id-1")
    assert again.positions({"counts": "topic"}) == {("topic", 0): 42, ("topic", 1): 0}
    again.close()


def test_copies_of_an_earlier_version_are_read_anew(tmp_path: Path) -> None:
    state = opened(tmp_path / "state", counts="id-1")
    state.storage("counts", 0).write([], ChangelogMark(42))
    state.close()
    note = tmp_path / "state/counts/checkpoint.json"
    said = json.loads(note.read_text())
    note.write_text(json.dumps(said | {"seen": said["seen"]["0"]}))  # one time for all partitions
    again = opened(tmp_path / "state", counts="id-1")
    assert again.positions({"counts": "topic"}) == {}
    again.close()


def test_two_instances_cannot_have_one_folder(tmp_path: Path) -> None:
    state = opened(tmp_path / "state")
    with pytest.raises(StreamsError, match="folder of its own"):
        opened(tmp_path / "state")
    state.close()


@pytest.mark.parametrize("other", ["papers/thesis.docx", "models/checkpoint.json/epoch-1", "thesis.docx"])
def test_a_folder_that_holds_something_else_is_left_as_it_is(other: str, tmp_path: Path) -> None:
    file = tmp_path / "mine" / other
    file.parent.mkdir(parents=True)
    file.write_text("years of work")
    (tmp_path / "mine" / "models").mkdir(exist_ok=True)
    (tmp_path / "mine" / "models" / "weights.bin").write_text("")
    with pytest.raises(StreamsError, match="holds something else, such as"):
        opened(tmp_path / "mine", counts="id-1")
    assert file.read_text() == "years of work"
    StateFolder(tmp_path / "mine")._lock.acquire(timeout=0)


def test_a_storage_that_was_released_and_is_asked_for_again_stays_open(tmp_path: Path) -> None:
    state = opened(tmp_path / "state", counts="id-1")
    storage = state.storage("counts", 0)
    state.release("counts", 0)
    assert state.storage("counts", 0) is storage
    storage.write([RowChange(0, b"a", b"1")], ChangelogMark(1))
    state.close()
