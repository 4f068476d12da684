"""What the live view takes from a store: its rows, what has changed, and what is charted."""

import struct
from decimal import Decimal
from typing import Any

from streamskit.api.windows import Windowed
from streamskit.queries import KeyValue, LocalKeyValueStore
from streamskit.serdes import Serdes
from streamskit.state.stores import Store, ValueAndTimestamp
from streamskit.views import store_view
from streamskit.views.page import rate
from streamskit.views.store_snapshot import READ_AT_MOST, store_snapshot
from tests.unit.views.widget_stores import NINE, count, counts, put, trades

# What a snapshot takes.


def test_the_newest_windows_come_first_and_no_more_than_asked_for() -> None:
    store = trades()
    for second in (0, 2, 1):
        put(store, "KO", second, count=second)
    put(store, "AAPL", 2, count=9)
    taken = store_snapshot(store, rows=3)
    assert [(row.key, row.window and row.window[0] - NINE) for row in taken.rows] == [
        ("AAPL", 2000),
        ("KO", 2000),
        ("KO", 1000),
    ]
    assert taken.total == 4


def test_a_store_of_ones_own_may_return_pairs() -> None:
    class Own:
        name, kind = "own", "key-value"

        def all(self) -> Any:
            return [("a", 1), ("b", 2)]

    assert [row.key for row in store_snapshot(Own()).rows] == ["a", "b"]


def test_windows_that_have_expired_are_not_counted() -> None:
    store = trades()
    put(store, "KO", 0, count=1)
    put(store, "KO", 86_400 + 60, count=2)
    assert len(store) == 2, "the store deletes many at once, later"
    whole, cut = store_snapshot(store), store_snapshot(store, rows=1)
    assert "1 row" in store_view.facts(whole, is_saved=False)
    assert "about 2 rows" in store_view.facts(cut, is_saved=False)


def test_the_rows_of_a_key_value_store_come_in_the_order_of_their_keys() -> None:
    taken = store_snapshot(counts(b=1, a=2, c=3), rows=2)
    assert [(row.key, row.window, row.fields) for row in taken.rows] == [
        ("a", None, {"value": 2}),
        ("b", None, {"value": 1}),
    ]


def test_a_search_finds_the_keys_that_begin_so_and_in_quotes_the_very_key() -> None:
    store = counts(KO=1, KOX=2, IBM=3)
    assert [row.key for row in store_snapshot(store, search="KO").rows] == ["KO", "KOX"]
    assert [row.key for row in store_snapshot(store, search='"KO"').rows] == ["KO"]
    assert store_snapshot(store, search="ko").rows == []


def test_numbers_as_keys_are_searched_as_they_are_written() -> None:
    store = LocalKeyValueStore(Store("by-id", "key-value", Serdes.long(), Serdes.string()))
    for key in (7, 70, 8):
        store.apply(struct.pack(">q", key), b"x", 0)
    assert [row.key for row in store_snapshot(store, search="7").rows] == ["7", "70"]


def test_rows_that_are_new_or_have_another_value_are_marked_until_the_next_look() -> None:
    store = counts(a=1, b=1)
    first = store_snapshot(store)
    assert not any(row.changed for row in first.rows)
    count(store, "b", 2)
    count(store, "c", 1)
    second = store_snapshot(store, previous=first)
    assert [(row.key, row.changed) for row in second.rows] == [("a", False), ("b", True), ("c", True)]
    assert not any(row.changed for row in store_snapshot(store, previous=second).rows)


def test_rows_that_only_another_search_brings_are_not_marked() -> None:
    store = counts(a=1, b=1)
    assert not any(row.changed for row in store_snapshot(store, previous=store_snapshot(store, search="a")).rows)


def test_a_store_without_updates_is_not_read_again() -> None:
    store = counts(a=1)
    first = store_snapshot(store)
    store_snapshot(store, previous=first)
    assert store.reads == 1
    store_snapshot(store, search="a", previous=first)
    assert store.reads == 2


def test_the_rate_counts_the_updates_of_the_last_seconds() -> None:
    store, clock = counts(), iter(range(100))
    taken = store_snapshot(store, clock=lambda: next(clock))
    for _ in range(20):
        for _ in range(30):
            count(store, "a", 1)
        taken = store_snapshot(store, previous=taken, clock=lambda: next(clock))
    assert (rate(taken.history) or 0) == 30
    for _ in range(8):
        taken = store_snapshot(store, previous=taken, clock=lambda: next(clock))
    assert (rate(taken.history) or 0) == 0


def test_the_time_of_the_last_change_is_when_it_was_seen() -> None:
    store, clock = counts(a=1), iter((100.0, 110.0, 120.0))
    taken = store_snapshot(store, clock=lambda: next(clock))
    assert taken.changed_at is None
    count(store, "a", 2)
    taken = store_snapshot(store, previous=taken, clock=lambda: next(clock))
    assert store_snapshot(store, previous=taken, clock=lambda: next(clock)).changed_at == 110


# What is charted.


def test_a_window_stores_chart_has_a_line_for_each_key_over_the_windows_starts() -> None:
    store = trades()
    for second in range(3):
        put(store, "KO", second, count=second, price=60.5)
        put(store, "IBM", second, count=second * 2, price=200.0)
    chart = store_snapshot(store).chart
    assert chart.title == "count by window start (UTC)"
    assert chart.lines == {
        "IBM": [(NINE, 0), (NINE + 1000, 2), (NINE + 2000, 4)],
        "KO": [(NINE, 0), (NINE + 1000, 1), (NINE + 2000, 2)],
    }
    assert store_snapshot(store, value="price").chart.lines["KO"][0] == (NINE, 60.5)


def test_a_chart_has_five_lines_at_most_and_keeps_to_its_keys() -> None:
    store = trades()
    for key in "ABCDEFG":
        put(store, key, 0, count=1)
    taken = store_snapshot(store)
    assert list(taken.chart.lines) == list("ABCDE")
    put(store, "G", 1, count=1)
    assert list(store_snapshot(store, rows=1, previous=store_snapshot(store, rows=1)).chart.lines) == ["G"]
    assert list(store_snapshot(store, previous=taken).chart.lines) == list("ABCDE")


def test_a_chart_shows_the_last_sixty_windows() -> None:
    store = trades()
    for second in range(100):
        put(store, "KO", second, count=second)
    points = store_snapshot(store).chart.lines["KO"]
    assert [value for _, value in points] == list(range(40, 100))


def test_a_key_value_stores_chart_has_its_largest_rows() -> None:
    store = counts(**{f"key{number:02d}": number for number in range(20)})
    chart = store_snapshot(store, rows=3).chart
    assert chart.bars[:2] == [("key19", 19), ("key18", 18)]
    assert (len(chart.bars), chart.title) == (10, "value: the largest of 20 keys")


def test_a_chart_of_the_first_rows_alone_says_so() -> None:
    most = READ_AT_MOST
    store = counts(**{f"key{number:05d}": number for number in range(most + 1)})
    assert store_snapshot(store).chart.title == "value: the largest of the first 2,000 keys"
    assert store_snapshot(store, search="key00").chart.title == "value: the largest of 1,000 keys"


def test_a_partition_that_has_moved_away_is_shown_no_longer() -> None:
    store = counts(a=1)
    first = store_snapshot(store)
    store.drop(0)
    assert store_snapshot(store, previous=first).rows == []


def test_a_store_that_starts_over_is_read_again_though_no_record_has_come() -> None:
    store = counts(a=1)
    first = store_snapshot(store)
    store.clear(0)
    assert store_snapshot(store, previous=first).rows == []


def test_a_number_too_large_to_draw_is_in_the_rows_and_not_in_the_chart() -> None:
    taken = store_snapshot(Rows("key-value", ("a", 10**400), ("b", Decimal("sNaN")), ("c", 2)))
    assert [row.fields["value"] for row in taken.rows][::2] == [10**400, 2]
    assert taken.chart.bars == [("c", 2)]


def test_a_value_that_is_not_a_number_is_marked_only_when_it_has_changed() -> None:
    first = store_snapshot(Rows("key-value", ("a", float("nan"))))
    same = store_snapshot(Rows("key-value", ("a", float("nan"))), previous=first)
    other = store_snapshot(Rows("key-value", ("a", 1.0)), previous=first)
    assert [taken.rows[0].changed for taken in (same, other)] == [False, True]


class Rows:
    """A store of the given rows."""

    name = "rows"

    def __init__(self, kind: str, *rows: tuple[Any, Any]) -> None:
        self.kind, self._rows = kind, rows

    def all(self) -> list[KeyValue]:
        return [KeyValue(*row) for row in self._rows]


def test_a_chart_of_sessions_counts_sessions() -> None:
    store = Rows("session", (Windowed("a", 0, 5), 1), (Windowed("a", 9, 10), 2), (Windowed("b", 0, 5), 3))
    assert store_snapshot(store).chart.title == "value: the largest of 3 sessions"


def test_values_with_timestamps_are_charted_and_their_times_can_be_read() -> None:
    plain, fields = ValueAndTimestamp(3, NINE), ValueAndTimestamp({"n": 4}, NINE)
    taken = store_snapshot(Rows("key-value", ("a", plain), ("b", fields)))
    when = {"timestamp (UTC)": "2024-01-02 09:00:00"}
    assert [row.fields for row in taken.rows] == [{"value": 3, **when}, {"n": 4, **when}]
    assert taken.chart.bars == [("a", 3)]


def test_names_of_fields_that_are_no_text_are_written_as_text() -> None:
    taken = store_snapshot(Rows("key-value", ("a", {1: "x", (2, 3): "y"})))
    assert taken.rows[0].fields == {"1": "x", "(2, 3)": "y"}
    assert ">(2, 3)</th>" in store_view.table(taken)


def test_the_bars_of_the_largest_rows_are_in_order_though_some_are_not_a_number() -> None:
    store = LocalKeyValueStore(Store("prices", "key-value", Serdes.string(), Serdes.double()))
    nan, numbers = float("nan"), (1.0, 9.0, 2.0, 7.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 11.0)
    for number, price in enumerate(each for pair in zip(numbers, [nan] * 11, strict=True) for each in pair):
        store.apply(f"key{number}".encode(), struct.pack(">d", price), 0)
    chart = store_snapshot(store).chart
    assert [value for _, value in chart.bars] == [11, 10, 9, 8, 7, 6, 5, 4, 3, 2]
    assert chart.title == "value: the largest of 11 keys"


def test_a_field_that_is_not_there_is_answered_with_those_that_are() -> None:
    store = trades()
    put(store, "KO", 0, count=1, price=2.0, note="x")
    chart = store_snapshot(store, value="prize").chart
    assert chart.title == "No field 'prize' with numbers; there are count, price"
    assert not chart.lines
