"""What the live view writes: a page with a table, and charts."""

import re
import time
from base64 import b64decode
from datetime import date
from uuid import UUID
from xml.etree import ElementTree

import pytest

from streamskit.queries import KeyValue
from streamskit.views import store_view
from streamskit.views.charts import bar_chart, line_chart, spelled, ticks
from streamskit.views.html import as_text, moment, notice, text_cell, time_of_day, value_cells
from streamskit.views.store_snapshot import StoreSnapshot, store_snapshot
from streamskit.widgets import StoreView
from tests.unit.views.widget_stores import MICROSECONDS, NINE, count, counts, put, trades

# What is written.


def test_a_page_shows_the_store_its_rows_and_its_windows_as_times() -> None:
    store = trades()
    put(store, "KO", 3, count=1234, price=60.5, note=None)
    html = StoreView.PAGE.saved(store_snapshot(store, clock=lambda: NINE / 1000 + 60))
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
    assert "2024-01-02 23:59:58 – 2024-01-03 00:00:03" in StoreView.PAGE.saved(store_snapshot(store))


def test_keys_values_and_searches_with_signs_of_html_are_text() -> None:
    store = trades()
    put(store, "<img src=x onerror=alert(1)>", 0, count=1, note="<script>alert('&')</script>")
    for html in (
        StoreView.PAGE.saved(store_snapshot(store)),
        store_view.table(store_snapshot(store, search="<script>")),
        notice("<script>", "store"),
    ):
        assert "<script" not in html
        assert "<img src=x" not in html
    assert "&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt;" in StoreView.PAGE.saved(store_snapshot(store))


def test_a_changed_row_has_a_dot_beside_its_colour() -> None:
    store = counts(a=1, b=1)
    first = store_snapshot(store)
    count(store, "b", 2)
    rows = store_view.table(store_snapshot(store, previous=first)).split("<tr")
    assert ["●" in row for row in rows if ">a<" in row or ">b<" in row] == [False, True]


def test_a_saved_page_marks_no_changes_and_has_no_controls_or_scripts() -> None:
    store = counts(a=1)
    first = store_snapshot(store)
    count(store, "a", 2)
    html = StoreView.PAGE.saved(store_snapshot(store, previous=first))
    assert "●" not in html
    assert not re.search(r"<(script|input|button|select|svg)", html)


def test_a_saved_pages_chart_is_an_image_that_says_what_it_shows() -> None:
    image = re.search(
        r'<img alt="Chart: value: the largest of 1 key" style="max-width:100%" src="data:image/svg\+xml;base64,(.*?)">',
        StoreView.PAGE.saved(store_snapshot(counts(a=1))),
    )
    assert image is not None
    svg = b64decode(image[1]).decode()
    ElementTree.fromstring(svg)
    assert "currentColor" not in svg
    assert "prefers-color-scheme:dark" in svg
    assert 'class="paper"' in svg


@pytest.mark.parametrize(
    ("key", "shown"), [("\x00\x05", "␀␅"), ("a\x1b[1m", "a␛[1m"), ("\ud83d", "�"), ("\ufffe", "�")]
)
def test_characters_that_no_page_can_have_are_signs_in_live_and_saved_pages(key: str, shown: str) -> None:
    class Odd:
        name, kind = "odd", "key-value"

        def all(self) -> list[KeyValue]:
            return [KeyValue(key, {key: 1})]

    view = StoreView(Odd())
    view.refresh()
    seen, saved = "".join(view.seen().values()), view.saved()
    for html in (seen, saved):
        html.encode()
        assert f">{shown}</td>" in html
    image = re.search('base64,(.*?)"', saved)
    assert image is not None
    assert shown in "".join(ElementTree.fromstring(b64decode(image[1])).itertext())


def test_of_a_huge_value_a_page_holds_only_the_beginning() -> None:
    html = text_cell("x" * 1_000_000) + value_cells([{"text": "x" * 1_000_000}])[0]
    assert len(html) < 5000
    assert "xxx…" in html


def test_a_whole_number_is_written_in_full_and_a_float_with_its_power_of_ten() -> None:
    assert value_cells([NINE, 10**400])[0] == f'<td title="{NINE}">1,704,186,000,000</td>'
    assert ">1.704e+12</td>" in value_cells([float(NINE)])[0]


def test_ids_dates_and_bytes_are_written_as_they_are() -> None:
    day, number = date(2024, 1, 2), UUID(int=5)
    assert [as_text(each) for each in (number, day, b"\x00", None, True, {"id": number}, {(1, 2): 3})] == [
        "00000000-0000-0000-0000-000000000005", "2024-01-02", "b'\\x00'", "null", "true",
        '{"id": "00000000-0000-0000-0000-000000000005"}', "{(1, 2): 3}",
    ]  # fmt: skip


def test_a_table_keeps_its_columns_and_height_whatever_the_values() -> None:
    one, many = counts(a=1), counts(**{f"k{n}": 10**n for n in range(8)})
    short, long = (store_view.table(store_snapshot(store, rows=8)) for store in (one, many))
    for pattern in (r"<colgroup>.*</colgroup>", r"min-height:\d+px", r"<table style=\S+>"):
        assert re.findall(pattern, short) == re.findall(pattern, long) != []


def test_the_numbers_of_a_column_have_the_same_decimals() -> None:
    store = trades()
    for second, price in enumerate((1.0, 2.25, 3.123456)):
        put(store, "KO", second, price=price)
    cells = re.findall(r">([\d.]+)</td>", store_view.table(store_snapshot(store)))
    assert cells == ["3.1235", "2.2500", "1.0000"]


def test_an_empty_store_and_a_search_without_rows_say_so() -> None:
    assert "The store is empty." in store_view.table(store_snapshot(counts()))
    assert "No key begins with zzz." in store_view.table(store_snapshot(counts(a=1), search="zzz"))


def test_the_line_over_the_table_says_which_rows_these_are() -> None:
    store = counts(a=1, b=2, ab=3)
    assert "all 3" in store_view.table(store_snapshot(store))
    assert "the first 2 by key" in store_view.table(store_snapshot(store, rows=2))
    assert "all 2 whose key begins with a" in store_view.table(store_snapshot(store, search="a"))


def test_a_snapshot_of_a_hundred_thousand_rows_is_drawn_in_a_blink() -> None:
    store = counts(**{f"key{number}": number for number in range(100_000)})
    taken: StoreSnapshot = store_snapshot(store)
    began = time.perf_counter()
    html = StoreView.PAGE.saved(taken)
    assert time.perf_counter() - began < 0.5
    assert len(html) < 20_000


# Charts.


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


@pytest.mark.parametrize("numbers", [(1.7e308, -1.7e308), (1e300, -1e300), (5e-324, 5e-324), (5.0, float("inf"))])
def test_numbers_at_the_ends_of_what_a_float_holds_do_not_end_a_chart(numbers: tuple[float, float]) -> None:
    ElementTree.fromstring(line_chart("price", {"KO": list(enumerate(numbers))}))
    ElementTree.fromstring(bar_chart("price", [("KO", number) for number in numbers]))


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


# Times.


@pytest.mark.parametrize(
    ("timestamp", "date", "time"),
    [
        (NINE, "2024-01-02 09:00:00", "09:00:00"),
        (NINE + 7, "2024-01-02 09:00:00.007", "09:00:00.007"),
        (-1, "1969-12-31 23:59:59.999", "23:59:59.999"),
        (MICROSECONDS, *["1,700,000,000,000,000 ms"] * 2),
        (-MICROSECONDS, *["-1,700,000,000,000,000 ms"] * 2),
        (2**63 - 1, *["9,223,372,036,854,775,807 ms"] * 2),
    ],
)
def test_a_time_that_no_calendar_has_is_written_as_a_number(timestamp: int, date: str, time: str) -> None:
    assert (moment(timestamp), time_of_day(timestamp)) == (date, time)


@pytest.mark.parametrize("times", [(MICROSECONDS, MICROSECONDS + 5), (-MICROSECONDS, NINE), (NINE, MICROSECONDS)])
def test_a_chart_over_times_that_no_calendar_has_is_drawn(times: tuple[int, int]) -> None:
    svg = line_chart("count", {"KO": [(time, 1.0) for time in times]})
    ElementTree.fromstring(svg)
    assert ",000 ms</text>" in svg
