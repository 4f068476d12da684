"""What the view of a store can look at beside a local store, and choosing windows."""

from typing import Any, ClassVar

import pytest

from streamskit.api.windows import Windowed
from streamskit.common.errors import InvalidStateStorePartitionError
from streamskit.queries import KeyValue
from streamskit.views import store_view
from streamskit.views.controls import WindowPicker, parse_time
from streamskit.views.page import rate
from streamskit.views.store_snapshot import store_snapshot
from streamskit.widgets import StoreView
from tests.unit.views.widget_stores import MICROSECONDS, NINE, counts, put, trades


class Remote:
    """A store as a client sees it: no more than what a view needs."""

    name, kind, answered_by = "counts", "key-value", "localhost:8081"

    def __init__(self) -> None:
        self.rows = {"a": 1, "b": 2}

    def all(self) -> list[KeyValue]:
        return [KeyValue(*row) for row in self.rows.items()]


class RemoteWindows(Remote):
    kind = "window"

    def all(self) -> list[KeyValue]:
        return self.fetch_all(0, 2**62)

    def fetch(self, key: str, first: int, last: int) -> list[tuple[int, Any]]:
        return [(row.key.start, row.value) for row in self.fetch_all(first, last) if row.key.key == key]

    def fetch_all(self, first: int, last: int) -> list[KeyValue]:
        every = [KeyValue(Windowed("KO", start, start + 5), start) for start in (0, 5, 10)]
        return [row for row in every if first <= row.key.start <= last]


class HostedWindows(RemoteWindows):
    """The part of a store that is here; a question about a key of another part is refused."""

    def __init__(self, *here: str) -> None:
        self.here = here

    def fetch(self, key: str, first: int, last: int) -> list[tuple[int, Any]]:
        if key not in self.here:
            raise InvalidStateStorePartitionError(f"The key {key!r} is not here.")
        return super().fetch(key, first, last)

    def fetch_all(self, first: int, last: int) -> list[KeyValue]:
        rows = super().fetch_all(first, last)
        return [KeyValue(row.key._replace(key=key), row.value) for row in rows for key in self.here]


def test_a_remote_store_needs_only_its_name_kind_and_rows() -> None:
    store = Remote()
    first = store_snapshot(store)
    assert [(row.key, row.fields) for row in first.rows] == [("a", {"value": 1}), ("b", {"value": 2})]
    assert (first.total, first.updates, (rate(first.history) or 0)) == (None, None, 0.0)
    store.rows["b"] = 3
    second = store_snapshot(store, previous=first)
    assert [row.changed for row in second.rows] == [False, True]
    assert second.changed_at is not None


def test_the_header_says_who_answered_and_how_long_that_took() -> None:
    html = StoreView.PAGE.header(store_snapshot(Remote()), "live")
    assert "ms by localhost:8081" in html
    assert "updates" not in html
    assert "ms by this process" in StoreView.PAGE.header(store_snapshot(counts(a=1)), "live")
    assert "answered by localhost:8081" in StoreView.PAGE.header(store_snapshot(Remote()), "saved")


def test_a_store_that_can_search_is_asked_for_the_rows_alone() -> None:
    class Searching(Remote):
        asked: ClassVar[list[tuple[str, int]]] = []

        def all(self) -> list[KeyValue]:
            raise AssertionError("a view must not read all rows of such a store")

        def search(self, text: str, rows: int) -> list[KeyValue]:
            self.asked.append((text, rows))
            return [KeyValue("KO", 1)]

    assert [row.key for row in store_snapshot(Searching(), search="K").rows] == ["KO"]
    assert Searching.asked == [("K", 2000)]


def test_a_remote_window_store_has_its_newest_windows_first_and_a_chart() -> None:
    taken = store_snapshot(RemoteWindows(), rows=2)
    assert [row.window for row in taken.rows] == [(10, 15), (5, 10)]
    assert taken.chart.lines == {"KO": [(0, 0), (5, 5), (10, 10)]}


def test_a_key_whose_partition_has_moved_to_another_instance_is_no_longer_drawn() -> None:
    store = HostedWindows("IBM", "KO")
    first = store_snapshot(store)
    assert list(first.chart.lines) == ["IBM", "KO"]
    store.here = ("KO", "PEP")
    second = store_snapshot(store, previous=first)
    assert {row.key for row in second.rows} == {"KO", "PEP"}
    assert (list(second.chart.lines), list(second.chart.keys)) == (["KO", "PEP"], ["KO", "PEP"])
    store.here = ("PEP",)
    assert list(store_snapshot(store, previous=second).chart.lines) == ["PEP"]


@pytest.mark.parametrize("remote", [False, True])
def test_chosen_windows_are_those_that_start_in_a_span(remote: bool) -> None:
    store: Any = RemoteWindows()
    if not remote:
        store = trades()
        for second in range(9):
            put(store, "KO", second, count=second)
    span = (5, 10) if remote else (NINE + 3000, NINE + 4000)
    taken = store_snapshot(store, span=span)
    assert [row.window[0] for row in taken.rows if row.window] == [span[1], span[0]]
    assert "all 2 starting from" in store_view.table(taken)


def test_another_choice_of_windows_is_read_anew_though_nothing_has_changed() -> None:
    store = trades()
    for second in range(3):
        put(store, "KO", second, count=second)
    first = store_snapshot(store)
    one = store_snapshot(store, span=(NINE, NINE), previous=first)
    assert [row.window[0] for row in one.rows if row.window] == [NINE]
    assert "No window starting at 1970-01-01 00:00:00." in store_view.table(store_snapshot(store, span=(0, 0)))


def test_a_view_offers_the_windows_it_has_seen_and_shows_the_one_chosen() -> None:
    store = trades()
    for second in range(3):
        put(store, "KO", second, count=second)
    view = StoreView(store)
    view.refresh()
    assert view._windows._first.options[0] == "2024-01-02 09:00:02"
    view._windows._first.value = "2024-01-02 09:00:01"
    assert "09:00:01 – 09:00:06" in view._parts["table"].value
    assert "09:00:02 – 09:00:07" not in view._parts["table"].value
    view._windows._last.value = "2024-01-02 09:00:02"
    assert "09:00:02 – 09:00:07" in view._parts["table"].value
    view._windows._first.value = "yesterday"
    assert "&#x27;yesterday&#x27; is not a time. Choose a start from the list" in view._header.value


def test_a_window_whose_start_no_calendar_has_is_shown_and_can_be_chosen() -> None:
    store = trades()
    for second in (0, (MICROSECONDS - NINE) // 1000):
        put(store, "KO", second, count=second)
    view = StoreView(store)
    view.refresh()
    assert "● live" in view._header.value
    assert "1,700,000,000,000,000 ms – 1,700,000,000,005,000 ms" in view._parts["table"].value
    view._windows._first.value = view._windows._first.options[0]
    assert (view._windows.span, view._windows.trouble) == ((MICROSECONDS, MICROSECONDS), "")
    assert "all 1 starting at 1,700,000,000,000,000 ms" in view._parts["table"].value


def test_a_store_without_windows_has_none_to_choose() -> None:
    assert StoreView(counts(a=1))._windows not in StoreView(counts(a=1))._controls.children
    view = StoreView(trades())
    assert view._windows in view._controls.children


@pytest.mark.parametrize(
    ("text", "time"),
    [("", None), (" 250 ", 250), ("2024-01-02 09:00:00", NINE), ("2024-01-02T10:00:00.250+01:00", NINE + 250),
     ("1,700,000,000,000,000 ms", MICROSECONDS)],
)  # fmt: skip
def test_a_time_is_written_as_a_date_or_in_milliseconds(text: str, time: int | None) -> None:
    assert parse_time(text) == time


@pytest.mark.parametrize(
    ("first", "last", "sentence"),
    [
        ("", "5", "These windows have an end and no start"),
        ("9", "5", "The second time is before the first"),
        ("9 o'clock", "", "'9 o'clock' is not a time."),
    ],
)
def test_windows_that_make_no_sense_leave_those_chosen_before(first: str, last: str, sentence: str) -> None:
    picker, calls = WindowPicker(), list[int]()
    picker.when_chosen(lambda: calls.append(1))
    picker._first.value = "3"
    picker._first.value, picker._last.value = first, last
    assert sentence in picker.trouble
    assert calls
