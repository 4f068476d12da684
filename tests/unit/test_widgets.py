"""The live view of a store: what it looks at, what it writes, and when it stops looking."""

import json
import re
import struct
import threading
import time
from base64 import b64decode
from collections.abc import Callable
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from streamskit.interactive import KeyValue, KeyValueStore, WindowStore
from streamskit.serdes import Serdes
from streamskit.topology import Store
from streamskit.widgets import StoreView, page
from streamskit.widgets.chart import bar_chart, line_chart, spelled, ticks
from streamskit.widgets.pulse import Pulse
from streamskit.widgets.snapshot import Snapshot, take
from streamskit.windows import TimeWindows

NINE = 1_704_186_000_000
"""2024-01-02 09:00:00 UTC."""

WIDGET = "application/vnd.jupyter.widget-view+json"


class CountingStore(KeyValueStore):
    """Counts how often its rows are read."""

    reads = 0

    def peek(self, rows: int, wanted: Callable[[Any], bool] | None = None) -> list[KeyValue]:
        self.reads += 1
        return super().peek(rows, wanted)


def trades() -> WindowStore:
    windows = TimeWindows.of_size_with_no_grace("5 seconds").advance_by("1 second")
    value = Serdes.json("count bigint, price double, note string")
    return WindowStore(Store("trades", "window", Serdes.string(), value, windows, 86_400_000))


def put(store: WindowStore, key: str, second: int, **fields: Any) -> None:
    start = NINE + second * 1000
    store.apply(key.encode() + struct.pack(">qi", start, 0), json.dumps(fields).encode(), start)


def counts(**values: int) -> CountingStore:
    store = CountingStore(Store("counts", "key-value", Serdes.string(), Serdes.long()))
    for key, value in values.items():
        count(store, key, value)
    return store


def count(store: KeyValueStore, key: str, value: int) -> None:
    store.apply(key.encode(), struct.pack(">q", value), 0)


def eventually(condition: Callable[[], Any], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.01)


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "streamskit-view"]


def is_looking(view: StoreView) -> bool:
    return view._pulse.is_beating


@pytest.fixture
def shown() -> Any:
    """Return a function that shows a view as a page would, and takes it off the page after the test."""
    views: list[StoreView] = []

    def show(view: StoreView) -> StoreView:
        view._view_count = 1
        views.append(view)
        return view

    yield show
    for view in views:
        view._view_count = 0
    eventually(lambda: not threads())


# What a snapshot takes.


def test_the_newest_windows_come_first_and_no_more_than_asked_for() -> None:
    store = trades()
    for second in (0, 2, 1):
        put(store, "KO", second, count=second)
    put(store, "AAPL", 2, count=9)
    taken = take(store, rows=3)
    assert [(row.key, row.window and row.window[0] - NINE) for row in taken.rows] == [
        ("AAPL", 2000),
        ("KO", 2000),
        ("KO", 1000),
    ]
    assert taken.total == 4


def test_the_rows_of_a_key_value_store_come_in_the_order_of_their_keys() -> None:
    taken = take(counts(b=1, a=2, c=3), rows=2)
    assert [(row.key, row.window, row.fields) for row in taken.rows] == [
        ("a", None, {"value": 2}),
        ("b", None, {"value": 1}),
    ]


def test_a_search_finds_the_keys_that_begin_so_and_in_quotes_the_very_key() -> None:
    store = counts(KO=1, KOX=2, IBM=3)
    assert [row.key for row in take(store, search="KO").rows] == ["KO", "KOX"]
    assert [row.key for row in take(store, search='"KO"').rows] == ["KO"]
    assert take(store, search="ko").rows == []


def test_numbers_as_keys_are_searched_as_they_are_written() -> None:
    store = KeyValueStore(Store("by-id", "key-value", Serdes.long(), Serdes.string()))
    for key in (7, 70, 8):
        store.apply(struct.pack(">q", key), b"x", 0)
    assert [row.key for row in take(store, search="7").rows] == ["7", "70"]


def test_rows_that_are_new_or_have_another_value_are_marked_until_the_next_look() -> None:
    store = counts(a=1, b=1)
    first = take(store)
    assert not any(row.changed for row in first.rows)
    count(store, "b", 2)
    count(store, "c", 1)
    second = take(store, previous=first)
    assert [(row.key, row.changed) for row in second.rows] == [("a", False), ("b", True), ("c", True)]
    assert not any(row.changed for row in take(store, previous=second).rows)


def test_rows_that_only_another_search_brings_are_not_marked() -> None:
    store = counts(a=1, b=1)
    assert not any(row.changed for row in take(store, previous=take(store, search="a")).rows)


def test_a_store_without_updates_is_not_read_again() -> None:
    store = counts(a=1)
    first = take(store)
    take(store, previous=first)
    assert store.reads == 1
    take(store, search="a", previous=first)
    assert store.reads == 2


def test_the_rate_counts_the_updates_of_the_last_seconds() -> None:
    store, clock = counts(), iter(range(100))
    taken = take(store, clock=lambda: next(clock))
    for _ in range(20):
        for _ in range(30):
            count(store, "a", 1)
        taken = take(store, previous=taken, clock=lambda: next(clock))
    assert taken.rate == 30
    for _ in range(8):
        taken = take(store, previous=taken, clock=lambda: next(clock))
    assert taken.rate == 0


def test_the_time_of_the_last_change_is_when_it_was_seen() -> None:
    store, clock = counts(a=1), iter((100.0, 110.0, 120.0))
    taken = take(store, clock=lambda: next(clock))
    assert taken.changed_at is None
    count(store, "a", 2)
    taken = take(store, previous=taken, clock=lambda: next(clock))
    assert take(store, previous=taken, clock=lambda: next(clock)).changed_at == 110


# What is charted.


def test_a_window_stores_chart_has_a_line_for_each_key_over_the_windows_starts() -> None:
    store = trades()
    for second in range(3):
        put(store, "KO", second, count=second, price=60.5)
        put(store, "IBM", second, count=second * 2, price=200.0)
    chart = take(store).chart
    assert chart.title == "count by window start (UTC)"
    assert chart.lines == {
        "IBM": [(NINE, 0), (NINE + 1000, 2), (NINE + 2000, 4)],
        "KO": [(NINE, 0), (NINE + 1000, 1), (NINE + 2000, 2)],
    }
    assert take(store, value="price").chart.lines["KO"][0] == (NINE, 60.5)


def test_a_chart_has_five_lines_at_most_and_keeps_to_its_keys() -> None:
    store = trades()
    for key in "ABCDEFG":
        put(store, key, 0, count=1)
    taken = take(store)
    assert list(taken.chart.lines) == list("ABCDE")
    put(store, "G", 1, count=1)
    assert list(take(store, rows=1, previous=take(store, rows=1)).chart.lines) == ["G"]
    assert list(take(store, previous=taken).chart.lines) == list("ABCDE")


def test_a_chart_shows_the_last_sixty_windows() -> None:
    store = trades()
    for second in range(100):
        put(store, "KO", second, count=second)
    points = take(store).chart.lines["KO"]
    assert [value for _, value in points] == list(range(40, 100))


def test_a_key_value_stores_chart_has_its_largest_rows() -> None:
    store = counts(**{f"key{number:02d}": number for number in range(20)})
    chart = take(store, rows=3).chart
    assert chart.bars[:2] == [("key19", 19), ("key18", 18)]
    assert (len(chart.bars), chart.title) == (10, "value: the largest of 20 keys")


def test_a_field_that_is_not_there_is_answered_with_those_that_are() -> None:
    store = trades()
    put(store, "KO", 0, count=1, price=2.0, note="x")
    chart = take(store, value="prize").chart
    assert chart.title == "No field 'prize' with numbers; there are count, price"
    assert not chart.lines


# What is written.


def test_a_page_shows_the_store_its_rows_and_its_windows_as_times() -> None:
    store = trades()
    put(store, "KO", 3, count=1234, price=60.5, note=None)
    html = page.render(take(store, clock=lambda: NINE / 1000 + 60))
    assert "<b>trades</b>" in html
    assert "▤ saved" in html
    assert "window store</span> · <span>1 row</span> · <span>1 update</span>" in html
    assert "as of 2024-01-02 09:01:00 UTC" in html
    assert "2024-01-02 09:00:03 – 09:00:08" in html
    for cell in ("KO", "1,234", "60.5", "null"):
        assert f">{cell}</td>" in html


def test_a_window_over_midnight_names_both_days() -> None:
    store = trades()
    put(store, "KO", 15 * 3600 - 2, count=1)
    assert "2024-01-02 23:59:58 – 2024-01-03 00:00:03" in page.render(take(store))


def test_keys_values_and_searches_with_signs_of_html_are_text() -> None:
    store = trades()
    put(store, "<img src=x onerror=alert(1)>", 0, count=1, note="<script>alert('&')</script>")
    for html in (page.render(take(store)), page.table(take(store, search="<script>")), page.notice("<script>")):
        assert "<script" not in html
        assert "<img src=x" not in html
    assert "&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt;" in page.render(take(store))


def test_a_changed_row_has_a_dot_beside_its_colour() -> None:
    store = counts(a=1, b=1)
    first = take(store)
    count(store, "b", 2)
    rows = page.table(take(store, previous=first)).split("<tr")
    assert ["●" in row for row in rows if ">a<" in row or ">b<" in row] == [False, True]


def test_a_saved_page_marks_no_changes_and_has_no_controls_or_scripts() -> None:
    store = counts(a=1)
    first = take(store)
    count(store, "a", 2)
    html = page.render(take(store, previous=first))
    assert "●" not in html
    assert not re.search(r"<(script|input|button|select|svg)", html)


def test_a_saved_pages_chart_is_an_image_that_says_what_it_shows() -> None:
    image = re.search(
        r'<img alt="Chart: value: the largest of 1 key" src="data:image/svg\+xml;base64,(.*?)">',
        page.render(take(counts(a=1))),
    )
    assert image is not None
    svg = b64decode(image[1]).decode()
    ElementTree.fromstring(svg)
    assert "currentColor" not in svg


def test_a_table_keeps_its_columns_and_height_whatever_the_values() -> None:
    one, many = counts(a=1), counts(**{f"k{n}": 10**n for n in range(8)})
    short, long = (page.table(take(store), height_of=8) for store in (one, many))
    for pattern in (r"<colgroup>.*</colgroup>", r"min-height:\d+px", r"<table style=\S+>"):
        assert re.findall(pattern, short) == re.findall(pattern, long) != []


def test_the_numbers_of_a_column_have_the_same_decimals() -> None:
    store = trades()
    for second, price in enumerate((1.0, 2.25, 3.123456)):
        put(store, "KO", second, price=price)
    cells = re.findall(r">([\d.]+)</td>", page.table(take(store)))
    assert cells == ["3.1235", "2.2500", "1.0000"]


def test_an_empty_store_and_a_search_without_rows_say_so() -> None:
    assert "The store is empty." in page.table(take(counts()))
    assert "No key begins with zzz." in page.table(take(counts(a=1), search="zzz"))


def test_the_line_over_the_table_says_which_rows_these_are() -> None:
    store = counts(a=1, b=2, ab=3)
    assert "all 3" in page.table(take(store))
    assert "the first 2 by key" in page.table(take(store, rows=2))
    assert "all 2 whose key begins with a" in page.table(take(store, search="a"))


# Charts.


def numbers_of(svg: str) -> str:
    return " ".join(text.text or "" for text in ElementTree.fromstring(svg).iter() if text.tag.endswith("text"))


def test_axis_marks_are_round_numbers_around_the_values() -> None:
    assert ticks(95, 178) == [80, 100, 120, 140, 160, 180]
    assert ticks(0, 1) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert ticks(5, 5)[0] < 5 < ticks(5, 5)[-1]


def test_lines_differ_in_more_than_colour() -> None:
    svg = line_chart("five", {name: [(0, n), (1000, n)] for n, name in enumerate("abcde")})
    lines = re.findall(r"<polyline[^>]*>", svg)
    assert len({re.sub(r'stroke="[^"]*"|points="[^"]*"', "", line) for line in lines}) == 5
    assert len(set(re.findall(r'<path d="(M-?\d[^"]*)" transform', svg))) == 5
    assert all(f">{name}</text>" in svg for name in "abcde")


def test_values_that_are_no_numbers_are_left_out_of_a_chart() -> None:
    svg = line_chart(
        "gaps", {"a": [(0, 1.0), (1000, float("nan")), (2000, float("inf")), (3000, 2.0)], "b": [(0, float("nan"))]}
    )
    assert re.findall(r'points="([^"]*)"', svg)[0].count(",") == 2
    assert svg.count("<polyline") == 1
    assert "No numbers to draw." in line_chart("none", {"b": [(0, float("nan"))]})


def test_the_time_axis_has_round_times() -> None:
    svg = line_chart("minute", {"a": [(NINE + second * 1000, 1.0) for second in range(3, 58)]})
    assert re.findall(r"09:00:\d\d", svg) == ["09:00:10", "09:00:20", "09:00:30", "09:00:40", "09:00:50"]


def test_bars_are_as_long_as_their_values_and_negative_ones_go_left() -> None:
    svg = bar_chart("balance", [("plus", 100.0), ("half", 50.0), ("minus", -50.0)])
    bars = [(float(x), float(width)) for x, width in re.findall(r'<rect x="(\S+)" y="\S+" width="(\S+)"', svg)]
    (plus, plus_width), (half, half_width), (minus, minus_width) = bars
    assert half_width == minus_width == pytest.approx(plus_width / 2, abs=0.2)
    assert plus == half == pytest.approx(minus + minus_width, abs=0.2)
    assert ">-50</text>" in svg


def test_huge_and_tiny_numbers_are_written_with_powers_of_ten() -> None:
    assert spelled(1234567.0, 0) == "1,234,567"
    assert spelled(1.5e15, 2) == "1.5e+15"
    assert spelled(0.00000123, 4) == "1.23e-06"
    assert spelled(0, 2) == "0.00"


# The view.


def test_a_view_follows_its_store_while_a_page_shows_it_and_no_longer(shown: Any) -> None:
    store = counts(a=1)
    view = shown(StoreView(store, refresh="50 ms"))
    count(store, "a", 42)
    eventually(lambda: ">42</td>" in view._table.value)
    view._view_count = 0
    eventually(lambda: not is_looking(view))
    assert threads() == []
    view._view_count = 1
    count(store, "a", 43)
    eventually(lambda: ">43</td>" in view._table.value)


def test_a_view_that_no_page_shows_does_not_look() -> None:
    view = StoreView(counts(a=1))
    assert not is_looking(view)


def test_a_paused_view_stands_still_and_goes_on_when_resumed(shown: Any) -> None:
    store = counts(a=1)
    view = shown(StoreView(store, refresh="50 ms"))
    view._pause.value = True
    eventually(lambda: not is_looking(view))
    assert "❚❚ paused" in view._header.value
    assert view._pause.description == "Resume"
    count(store, "a", 42)
    view._pause.value = False
    assert "● live" in view._header.value
    eventually(lambda: is_looking(view) and ">42</td>" in view._table.value)


def test_a_search_is_answered_at_once_also_when_paused() -> None:
    view = StoreView(counts(KO=1, IBM=2))
    view._pause.value = True
    view._search.value = "K"
    assert ">KO</td>" in view._table.value
    assert ">IBM</td>" not in view._table.value


def test_another_refresh_rate_holds_from_then_on(shown: Any) -> None:
    store = counts(a=1)
    view = shown(StoreView(store, refresh="1 hour"))
    eventually(lambda: ">1</td>" in view._table.value)
    view._every.value = 200
    count(store, "a", 42)
    eventually(lambda: ">42</td>" in view._table.value)


def test_a_view_of_a_closed_application_says_so_and_looks_no_more(shown: Any) -> None:
    store = counts(a=1)
    view = shown(StoreView(store, refresh="50 ms"))
    store.stopped = "The application 'trades-app' is closed."
    eventually(lambda: not is_looking(view))
    assert "■ stopped" in view._header.value
    assert "The application &#x27;trades-app&#x27; is closed." in view._header.value
    view._search.value = "zzz"
    assert "No key begins with zzz." in view._table.value


def test_a_store_that_cannot_be_read_is_a_sentence_and_the_view_tries_again(
    shown: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = counts(a=1)
    view = shown(StoreView(store, refresh="50 ms"))
    eventually(lambda: ">1</td>" in view._table.value)
    with monkeypatch.context() as broken:
        broken.setattr(store, "_store", None)
        store.updates += 1
        eventually(lambda: "▲ failed" in view._header.value)
        assert "The store could not be read: " in view._header.value
    eventually(lambda: "● live" in view._header.value)


def test_a_view_that_never_could_read_shows_the_sentence_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    store = counts(a=1)
    monkeypatch.setattr(store, "_store", None)
    view = StoreView(store)
    view.refresh()
    assert "The store could not be read" in view._header.value


def test_a_page_that_loads_anew_begins_to_count_its_views_at_zero(shown: Any) -> None:
    view = shown(StoreView(counts(a=1)))
    assert view.get_state()["_view_count"] == 0
    assert view.get_state("_view_count")["_view_count"] == 1


def test_a_view_is_an_html_page_and_text_beside_the_widget() -> None:
    view = StoreView(counts(a=1))
    view.refresh()
    bundle = view._repr_mimebundle_()
    assert bundle["text/plain"] == "<StoreView of <CountingStore 'counts': 1 rows after 1 updates>>"
    assert ">a</td>" in bundle["text/html"]
    assert "model_id" in bundle[WIDGET]


def test_a_displayed_view_leaves_two_outputs_the_live_one_and_the_page_of_it() -> None:
    InteractiveShell.instance()
    store = counts(a=1)
    view = StoreView(store, refresh="50 ms")
    with capture_output() as captured:
        view._ipython_display_()
        count(store, "a", 42)
        view._pause.value = True
    live, saved, kept = (output.data for output in captured.outputs)
    assert set(live) == {WIDGET}
    assert ">1</td>" in saved["text/html"]
    assert ">42</td>" in kept["text/html"], "the page is brought up to date when the view is paused"
    eventually(lambda: not is_looking(view))


def test_a_displayed_view_looks_until_the_page_has_counted_its_views() -> None:
    InteractiveShell.instance()
    view = StoreView(counts(a=1), refresh="50 ms")
    with capture_output():
        view._ipython_display_()
        assert is_looking(view)
        view._view_count = 1
        view._view_count = 0
    eventually(lambda: not is_looking(view))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"refresh": "10 ms"}, "A refresh every 10 ms is too often: choose at least 50 ms."),
        ({"refresh": "often"}, "is not a duration"),
        ({"rows": 0}, "rows=0 cannot be shown: choose a number from 1 to 200."),
        ({"rows": 1000}, "choose a number from 1 to 200"),
    ],
)
def test_a_view_that_makes_no_sense_is_refused_with_a_sentence(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        StoreView(counts(), **arguments)


def test_only_a_store_can_be_viewed() -> None:
    with pytest.raises(TypeError, match=re.escape("StoreView(streams.store('a-name'))")):
        StoreView("trade-aggregates")  # type: ignore[arg-type]


# The pulse.


def test_a_slow_beat_makes_the_next_one_wait_longer() -> None:
    times: list[float] = []

    def beat() -> None:
        times.append(time.monotonic())
        threading.Event().wait(0.05)

    pulse = Pulse(beat, lambda: 0.001, lambda: len(times) < 3)
    pulse.start()
    eventually(lambda: not pulse.is_beating)
    assert all(after - before >= 0.25 for before, after in pairwise(times))


def test_a_start_while_beating_beats_at_once() -> None:
    beats: list[int] = []
    pulse = Pulse(lambda: beats.append(1), lambda: 3600, lambda: len(beats) < 3)
    for number in (1, 2, 3):
        pulse.start()
        eventually(lambda number=number: len(beats) >= number)  # type: ignore[misc]
    pulse.start()
    eventually(lambda: not pulse.is_beating)


def test_a_snapshot_of_a_hundred_thousand_rows_is_drawn_in_a_blink() -> None:
    store = counts(**{f"key{number}": number for number in range(100_000)})
    taken: Snapshot = take(store)
    began = time.perf_counter()
    html = page.render(taken)
    assert time.perf_counter() - began < 0.5
    assert len(html) < 20_000
