"""The key-value stores of processors, with all state saved and loaded between any two calls."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamskit import KeyValue, Serdes, Stores, StreamsError, TopologyError, ValueAndTimestamp
from streamskit.operators import OperatorRecord
from streamskit.state.stores import Store
from tests.unit.operators.processor_harness import LONG, STRING, OneStore, Task, key_value
from tests.unit.operators.test_processor_routing import Peek

unhurried = settings(deadline=None, max_examples=60)
"""A busy machine is no failure."""


@pytest.fixture
def rows() -> OneStore:
    return OneStore(key_value())


def test_a_value_is_put_and_found_and_deleted(rows: OneStore) -> None:
    assert rows.call(lambda store: store.get("a")) is None
    rows.call(lambda store: store.put("a", "1"))
    assert rows.call(lambda store: store.get("a")) == "1"
    assert rows.call(lambda store: store.delete("a")) == "1"
    assert rows.call(lambda store: store.delete("a")) is None
    assert rows.call(lambda store: store.approximate_num_entries()) == 0


def test_putting_none_deletes(rows: OneStore) -> None:
    rows.call(lambda store: store.put("a", "1"))
    rows.call(lambda store: store.put("a", None))
    assert rows.call(lambda store: store.all()) == []


def test_put_if_absent_leaves_a_value_alone_and_returns_it(rows: OneStore) -> None:
    assert rows.call(lambda store: store.put_if_absent("a", "1")) is None
    assert rows.call(lambda store: store.put_if_absent("a", "2")) == "1"
    assert rows.call(lambda store: store.get("a")) == "1"


def test_put_all_takes_pairs_and_rows_of_another_store(rows: OneStore) -> None:
    rows.call(lambda store: store.put_all([("a", "1"), ("b", "2"), ("a", None)]))
    rows.call(lambda store: store.put_all([KeyValue("c", "3")]))
    assert rows.call(lambda store: store.all()) == [("b", "2"), ("c", "3")]
    assert rows.call(lambda store: store.approximate_num_entries()) == 2


@pytest.mark.parametrize(
    "act",
    [
        lambda store: store.get(None),
        lambda store: store.put(None, "1"),
        lambda store: store.put_if_absent(None, "1"),
        lambda store: store.put_all([(None, "1")]),
        lambda store: store.delete(None),
    ],
)
def test_the_key_none_is_refused(act: Any, rows: OneStore) -> None:
    with pytest.raises(StreamsError, match="Store 'rows': a row cannot have the key None"):
        rows.call(act)


def test_an_empty_key_is_a_key(rows: OneStore) -> None:
    rows.call(lambda store: store.put("", "1"))
    assert rows.call(lambda store: store.get("")) == "1"


KEYS = ["z", "a", "ä", "Ω", "日本", "😀", "aa", "Z"]
IN_ORDER = ["Z", "a", "aa", "z", "ä", "Ω", "日本", "😀"]
"""The order of the UTF-8 bytes: as in Java, and of no dictionary."""


@pytest.fixture
def words(rows: OneStore) -> OneStore:
    rows.call(lambda store: store.put_all([(key, key.upper()) for key in KEYS]))
    return rows


def keys(found: Any) -> list[Any]:
    return [row.key for row in found]


def test_rows_are_in_the_order_of_their_keys_bytes(words: OneStore) -> None:
    assert keys(words.call(lambda store: store.all())) == IN_ORDER
    assert keys(words.call(lambda store: store.reverse_all())) == IN_ORDER[::-1]


def test_a_range_includes_both_ends_and_may_be_open(words: OneStore) -> None:
    assert keys(words.call(lambda store: store.range("a", "ä"))) == ["a", "aa", "z", "ä"]
    assert keys(words.call(lambda store: store.range(None, "a"))) == ["Z", "a"]
    assert keys(words.call(lambda store: store.range("日", None))) == ["日本", "😀"]
    assert keys(words.call(lambda store: store.range("z", "a"))) == []
    assert keys(words.call(lambda store: store.reverse_range("a", "ä"))) == ["ä", "z", "aa", "a"]


def test_numbers_are_in_the_order_of_their_bytes_so_that_negative_ones_come_last() -> None:
    store = OneStore(Stores.in_memory_key_value_store("numbers", LONG, LONG))
    store.call(lambda store: store.put_all([(number, number) for number in (3, -1, 0, 256, -300)]))
    assert keys(store.call(lambda store: store.all())) == [0, 3, 256, -300, -1]


def test_a_prefix_is_one_of_bytes_and_may_have_its_own_serde(words: OneStore) -> None:
    assert keys(words.call(lambda store: store.prefix_scan("a"))) == ["a", "aa"]
    assert keys(words.call(lambda store: store.prefix_scan("日"))) == ["日本"]
    first_byte_of_both = "ä".encode()[:1]
    assert keys(words.call(lambda store: store.prefix_scan(first_byte_of_both, Serdes.byte_array()))) == ["ä"]
    assert keys(words.call(lambda store: store.prefix_scan("x"))) == []


def test_rows_can_be_deleted_while_they_are_read(words: OneStore) -> None:
    words.call(lambda store: [store.delete(row.key) for row in store.all()])
    assert words.call(lambda store: store.all()) == []


@pytest.mark.parametrize(
    ("make", "seen"),
    [
        (Stores.persistent_key_value_store, [("a", 1), ("b", 2), ("c", 3)]),
        (Stores.in_memory_key_value_store, [("a", 1), ("c", -3)]),
    ],
)
def test_a_loop_over_a_store_in_memory_sees_what_has_become_of_its_rows_and_no_other_does(
    make: Callable[..., Store], seen: list[tuple[str, int]]
) -> None:
    rows = OneStore(make("rows", STRING, LONG))

    def loop(store: Any) -> list[tuple[str, int]]:
        store.put_all([("a", 1), ("b", 2), ("c", 3)])
        found = []
        for row in store.all():
            found.append(tuple(row))
            store.put_all([("b", None), ("c", -3), ("d", 4)])
        return found

    assert rows.call(loop) == seen


PLAIN = st.text(st.sampled_from("abäΩ😀"), max_size=3)
STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "delete", "put_if_absent"]), PLAIN, st.none() | st.integers(-9, 9)),
    max_size=50,
)


@unhurried
@given(STEPS, PLAIN, PLAIN)
def test_a_store_is_a_dict_whose_keys_are_sorted_by_their_bytes(steps: Any, low: str, high: str) -> None:
    rows, model = OneStore(Stores.persistent_key_value_store("rows", STRING, LONG)), dict[str, int]()
    for what, key, value in steps:
        if what == "put":
            rows.do("put", key, value)
            model.pop(key, None)
            model |= {} if value is None else {key: value}
        elif what == "delete":
            assert rows.do("delete", key) == model.pop(key, None)
        elif what == "put_if_absent":
            had = model.get(key)
            assert rows.do("put_if_absent", key, value) == had
            model |= {} if value is None or had is not None else {key: value}
    in_order = sorted(model.items(), key=lambda row: row[0].encode())
    between = [row for row in in_order if low.encode() <= row[0].encode() <= high.encode()]
    assert rows.call(lambda store: store.all()) == in_order
    assert rows.call(lambda store: store.range(low, high)) == between
    assert rows.call(lambda store: store.reverse_range(low, high)) == between[::-1]
    assert rows.call(lambda store: store.prefix_scan(low)) == [row for row in in_order if row[0].startswith(low)]
    assert rows.call(lambda store: store.approximate_num_entries()) == len(model)


# ---- with a time beside each value -----------------------------------------------------------------------------------


@pytest.fixture
def timed() -> OneStore:
    return OneStore(Stores.persistent_timestamped_key_value_store("timed", STRING, STRING))


def test_a_timestamped_store_keeps_a_time_beside_each_value(timed: OneStore) -> None:
    timed.call(lambda store: store.put("a", ValueAndTimestamp("1", 5)))
    timed.call(lambda store: store.put("b", ("2", 7)))
    assert timed.call(lambda store: store.get("a")) == ValueAndTimestamp("1", 5)
    assert timed.call(lambda store: store.get("b")).timestamp == 7
    timed.call(lambda store: store.put("a", None))
    assert timed.call(lambda store: store.all()) == [KeyValue("b", ValueAndTimestamp("2", 7))]


def test_a_value_of_none_has_no_time_to_keep(timed: OneStore) -> None:
    timed.call(lambda store: store.put("a", ValueAndTimestamp(None, 5)))
    assert timed.call(lambda store: store.get("a")) is None


@pytest.mark.parametrize("value", ["ab", "1", 5])
def test_a_value_without_its_time_is_refused_by_a_timestamped_store(value: Any, timed: OneStore) -> None:
    with pytest.raises(StreamsError, match=r"'timed' keeps a time beside each value: put ValueAndTimestamp\("):
        timed.call(lambda store: store.put("a", value))


# ---- of a few keys ---------------------------------------------------------------------------------------------------


def test_a_store_of_a_few_keys_forgets_the_one_used_longest_ago() -> None:
    few = OneStore(Stores.lru_map("few", 2, STRING, STRING))
    few.call(lambda store: store.put_all([("a", "1"), ("b", "2")]))
    few.call(lambda store: store.get("a"))
    few.call(lambda store: store.put("c", "3"))
    assert few.call(lambda store: store.all()) == [("a", "1"), ("c", "3")]
    few.call(lambda store: store.delete("a"))
    assert few.call(lambda store: store.reverse_all()) == [("c", "3")]
    assert few.call(lambda store: store.prefix_scan("c")) == [("c", "3")]
    assert few.call(lambda store: store.range("a", "b")) == []


def test_what_a_store_of_a_few_keys_forgets_leaves_its_changelog_too() -> None:
    few = OneStore(Stores.lru_map("few", 1, STRING, STRING))
    few.call(lambda store: store.put("a", "1"))
    few.call(lambda store: store.put("b", "2"), timestamp=9)
    assert few.log == [(b"a", b"1", 0), (b"b", b"2", 9), (b"a", None, 9)]


def test_a_store_of_no_keys_is_refused() -> None:
    with pytest.raises(TopologyError, match="max_entries is 0; a store holds at least one key"):
        Stores.lru_map("few", 0, STRING, STRING)


@pytest.mark.parametrize("given", ["3", 2.5, True, STRING])
def test_a_store_holds_a_whole_number_of_keys(given: Any) -> None:
    with pytest.raises(TopologyError, match="give how many keys it holds as a whole number"):
        Stores.lru_map("few", given, STRING, STRING)


@unhurried
@given(st.lists(st.tuples(st.sampled_from(["put", "get", "delete"]), st.sampled_from("abcde")), max_size=40))
def test_a_store_of_three_keys_holds_the_three_used_last(steps: Any) -> None:
    few, model = OneStore(Stores.lru_map("few", 3, STRING, LONG)), OrderedDict[str, int]()
    for number, (what, key) in enumerate(steps):
        if what == "put":
            few.do("put", key, number)
            model[key] = number
            model.move_to_end(key)
        elif what == "get":
            assert few.do("get", key) == model.get(key)
            if key in model:
                model.move_to_end(key)
        else:
            assert few.do("delete", key) == model.pop(key, None)
        if len(model) > 3:
            model.popitem(last=False)
    assert few.call(lambda store: store.all()) == sorted(model.items())
    assert few.call(lambda store: store.approximate_num_entries()) == len(model)


# ---- of a table ------------------------------------------------------------------------------------------------------


def test_a_processor_reads_a_tables_rows_with_their_times() -> None:
    task = Task(lambda: Peek("users"), tables=[Stores.persistent_timestamped_key_value_store("users", STRING, STRING)])
    assert task.values(("ann", "", 1)) == ["None"]
    task.put_into_table(1, OperatorRecord(b"ann", b"Anna", None, None, 5, None))
    assert task.values(("ann", "", 2)) == ["ValueAndTimestamp(value='Anna', timestamp=5)"]
    task.put_into_table(1, OperatorRecord(b"ann", None, None, None, 6, None))
    assert task.values(("ann", "", 3)) == ["None"]


@pytest.mark.parametrize("name", ["put", "delete", "put_if_absent"])
def test_a_processor_cannot_change_a_table(name: str) -> None:
    table = Stores.persistent_timestamped_key_value_store("users", STRING, STRING)
    task = Task(lambda: Peek("users", name), tables=[table])
    with pytest.raises(StreamsError, match="'users': it is a copy"):
        task.run(("ann", "", 1))
