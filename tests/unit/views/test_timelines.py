import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from streamskit.api.windows import JoinWindows, SessionWindows, TimeWindows, Windowed
from streamskit.datasets import NEW_YEAR, at
from streamskit.testing import TestRecord
from streamskit.views.event_time_axis import stacked
from streamskit.views.timeline_parts import LATE
from streamskit.views.timeline_words import clock_for
from streamskit.views.timelines import (
    as_table,
    join_timeline,
    punctuation_timeline,
    stream_time,
    table_timeline,
    windows_timeline,
)
from tests.unit.views.widget_stores import MICROSECONDS

HOUR = 3_600_000
TRIPLE: Any = ("a", None, None)
NO_PAIR: Any = None


def axes_of(figure: Figure) -> Axes:
    (axes,) = figure.axes
    return axes


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in axes_of(figure).texts]


def lines(figure: Figure) -> list[tuple[str, list[tuple[float, float]]]]:
    """Each line's label and points."""
    found: Any = axes_of(figure).lines
    return [(str(line.get_label()), [*map(tuple, line.get_xydata().tolist())]) for line in found]


def points(figure: Figure, marker: str, colour: str | None = None) -> list[tuple[float, float]]:
    marks = [line.get_marker() == marker and colour in (None, line.get_color()) for line in axes_of(figure).lines]
    return [point for (_, own), wanted in zip(lines(figure), marks, strict=True) if wanted for point in own]


def outline(shade: Any) -> np.ndarray[Any, Any]:
    return np.asarray(shade.get_paths()[0].vertices)


# ---- times and tables ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("time", "spelled"), [("00:00", "00:00"), ("09:05", "09:05"), ("09:05:30", "09:05:30"), ("23:59:59", "23:59:59")]
)
def test_a_time_of_day_is_spelled_as_it_was_written(time: str, spelled: str) -> None:
    assert clock_for([at(time)])(at(time)) == spelled


def test_milliseconds_are_spelled_where_there_are_some() -> None:
    assert clock_for([NEW_YEAR + 1])(NEW_YEAR + 1) == "00:00:00.001"


def test_times_that_stand_together_all_have_seconds_where_one_has() -> None:
    updates = [("ada", 1, at("00:00")), ("ada", 2, at("00:00:50")), ("ada", 3, at("00:01"))]
    assert [*as_table(updates)["time"]] == ["00:00:00", "00:00:50", "00:01:00"]
    figure = table_timeline(updates)
    assert [text.get_text() for text in axes_of(figure).get_xticklabels()][-2:] == ["00:00:50", "00:01:00"]
    assert words(figure).endswith("ada: 1 at 00:00:00, 2 at 00:00:50, 3 at 00:01:00.")


def test_each_column_of_times_is_as_fine_as_it_has_to_be() -> None:
    window = Windowed("tv", at("12:00"), at("12:10"))
    rows = as_table([(window, 1, at("12:00:07")), (window, 2, at("12:01"))]).to_dict("records")
    assert [(row["start"], row["end"], row["time"]) for row in rows] == [
        ("12:00", "12:10", "12:00:07"),
        ("12:00", "12:10", "12:01:00"),
    ]


def test_a_table_has_a_windowed_key_as_key_start_and_end() -> None:
    table = as_table([TestRecord(Windowed("tv", at("09:00"), at("10:00")), 7, at("09:30"))])
    assert table.to_dict("records") == [{"key": "tv", "start": "09:00", "end": "10:00", "value": 7, "time": "09:30"}]


def test_a_table_spreads_the_fields_of_a_value_and_leaves_those_of_a_deletion_empty() -> None:
    table = as_table([("tv", {"price": 2}, at("09:00")), ("tv", None, at("09:01"))])
    assert list(table.columns) == ["key", "price", "time"]
    assert table["price"].tolist() == [2, None]


def test_a_table_takes_what_a_broker_was_read_into() -> None:
    consumed = pd.DataFrame({"partition": [0], "timestamp": [at("09:00")], "key": ["tv"], "value": [3]})
    assert as_table(consumed.itertuples()).to_dict("records") == [{"key": "tv", "value": 3, "time": "09:00"}]


def test_a_field_that_is_called_like_a_column_of_the_table_is_kept_beside_it() -> None:
    value = {"key": "inner", "start": 1, "time": 5, "price": 2}
    plain = as_table([("tv", value, at("09:00"))])
    assert plain.to_dict("records") == [
        {"key": "tv", "value.key": "inner", "start": 1, "value.time": 5, "price": 2, "time": "09:00"}
    ]
    windowed = as_table([(Windowed("tv", at("09:00"), at("10:00")), {"start": 1, "end": 2}, at("09:30"))])
    assert windowed.to_dict("records") == [
        {"key": "tv", "start": "09:00", "end": "10:00", "value.start": 1, "value.end": 2, "time": "09:30"}
    ]


@pytest.mark.parametrize("time", [MICROSECONDS, -MICROSECONDS])
def test_a_table_has_a_time_that_no_calendar_has_as_a_number(time: int) -> None:
    assert as_table([("tv", 1, time)])["time"].tolist() == [f"{time:,} ms"]


# ---- windows ---------------------------------------------------------------------------------------------------------


def test_a_window_shows_its_last_result() -> None:
    nine = Windowed("tv", 0, HOUR)
    figure = windows_timeline([("tv", 1, 5), ("tv", 1, 6)], [(nine, 1, 5), (nine, 2.0, 6)])
    assert texts(figure) == ["2"]


def test_a_deleted_session_is_not_drawn() -> None:
    results = [(Windowed("tv", 0, 0), 1, 0), (Windowed("tv", 0, 0), None, 0), (Windowed("tv", 0, 9), 2, 9)]
    figure = windows_timeline([("tv", 1, 0), ("tv", 1, 9)], results, label=lambda count: f"{count} orders")
    assert texts(figure) == ["2 orders"]


def test_a_dropped_record_has_a_mark_of_its_own() -> None:
    late = ("tv", 1, 3)
    figure = windows_timeline([("tv", 1, 5), late], [(Windowed("tv", 0, 10), 1, 5)], dropped=[late])
    assert points(figure, "x", LATE) == [(3, 0)]
    assert points(figure, "o") == [(5, 0)]


def test_each_key_has_a_line_of_its_own() -> None:
    figure = windows_timeline([("tv", "a", 1), ("watch", "b", 2)], [], record_label=str)
    assert [label.get_text() for label in axes_of(figure).get_yticklabels()] == ["tv", "watch"]
    assert texts(figure) == ["a", "b"]
    assert len({height for _, height in points(figure, "o")}) == 2


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20))))
def test_windows_in_one_row_never_overlap_and_no_row_is_wasted(spans: list[tuple[int, int]]) -> None:
    windows = sorted(Windowed("k", start, start + length) for start, length in spans)
    rows = stacked(windows, 0)
    for row in set(rows):
        own = [window for window, its in zip(windows, rows, strict=True) if its == row]
        assert all(one.end <= two.start for one, two in pairwise(own))
    busiest = max((sum(w.start <= time < w.end for w in windows) for time in range(71)), default=0)
    assert len(set(rows)) == busiest


def test_windows_of_a_key_that_no_record_has_are_drawn_too() -> None:
    results = [(Windowed("shoes", 0, HOUR), 7, 5), (Windowed("hats", 0, HOUR), 2, 6)]
    figure = windows_timeline([("order 1", 1, 5), ("order 2", 1, 6)], results)
    rows = [label.get_text() for label in axes_of(figure).get_yticklabels()]
    assert rows == ["order 1", "order 2", "shoes", "hats"]
    assert texts(figure) == ["7", "2"]


def test_of_equal_records_only_those_that_came_last_are_marked_as_dropped() -> None:
    again = ("tv", 1, 10)
    records = [again, ("tv", 2, 30), again]
    came_late = stream_time(records, dropped=[again])
    assert points(came_late, "x") == [(3, 10)]
    assert points(came_late, "o") == [(1, 10), (2, 30)]
    assert words(came_late).count("too late") == 1
    assert len(points(windows_timeline(records, [], dropped=[again]), "o")) == 2


def test_times_beneath_a_picture_do_not_run_into_each_other() -> None:
    for last in (1_500, 2_000, 3_000, 6_000, 70_000, HOUR, 30 * HOUR):
        records = [("tv", 1, 0), ("watch", 1, last)]
        for figure in (windows_timeline(records, []), table_timeline(records), join_timeline(records, records, [])):
            figure.canvas.draw()
            spans = [label.get_window_extent() for label in axes_of(figure).get_xticklabels()]
            assert all(one.x1 < two.x0 for one, two in pairwise(spans)), last


def test_very_many_records_are_drawn_without_texts_that_would_hide_each_other() -> None:
    records = [("tv", number, number * 1000) for number in range(300)]
    results = [(Windowed("tv", number * 1000, number * 1000 + 900), 1, number * 1000) for number in range(300)]
    figures = [
        stream_time(records),
        windows_timeline(records, results, record_label=str),
        join_timeline(records, records, []),
    ]
    assert [texts(figure) for figure in figures] == [[], [], []]
    assert len(axes_of(figures[0]).get_xticks()) < 40
    assert len(points(figures[0], "o")) == 300


# ---- joins -----------------------------------------------------------------------------------------------------------


def test_joined_records_are_connected_at_their_own_times() -> None:
    figure = join_timeline([("ann", "a1", 10)], [("ann", "e1", 30)], [("a1", "e1")])
    assert [(10, 1), (30, 0)] in [own for _, own in lines(figure)]


def test_a_missing_side_is_written_as_null() -> None:
    figure = join_timeline([("ann", "a1", 10)], [("ann", "e1", 30)], [("a1", None), (None, "e1")])
    assert texts(figure).count("null") == 2


def test_pairs_name_numbers_as_the_records_do() -> None:
    figure = join_timeline([("KO", 1.0, 10)], [("KO", 2.5, 30)], [(1.0, 2.5)])
    assert [(10, 1), (30, 0)] in [own for _, own in lines(figure)]
    assert words(figure).endswith("1 with 2.5.")
    orders, payments = [("KO", {"id": 7}, 10)], [("KO", {"id": 8}, 30)]
    figure = join_timeline(orders, payments, [(7, 8)], label=lambda value: value["id"])
    assert [(10, 1), (30, 0)] in [own for _, own in lines(figure)]


def test_records_of_one_label_are_joined_where_they_are() -> None:
    windows = JoinWindows.of_time_difference_with_no_grace(10)
    left, right = [("ann", "a", 10), ("bob", "a", 12), ("ann", "a", 50)], [("ann", "b", 15), ("ann", "b", 55)]
    figure = join_timeline(left, right, [("a", "b"), ("a", None), ("a", "b")], windows=windows)
    drawn = [own for _, own in lines(figure)]
    assert [own for own in drawn if [y for _, y in own] == [1, 0]] == [[(10, 1), (15, 0)], [(50, 1), (55, 0)]]
    assert [(12, 1), (12, 0.7)] in drawn, "the one that met none is the one that went out alone"


def test_orders_of_one_label_that_meet_a_row_go_straight_down_each_by_itself() -> None:
    orders, users = [("ann", "o", 30), ("ann", "o", 40)], [("ann", "Rome", 10), ("ann", "Rome", 20)]
    figure = join_timeline(orders, users, [("o", "Rome"), ("o", "Rome")], rows=True)
    down = [own for _, own in lines(figure) if [y for _, y in own] == [1, 0]]
    assert down == [[(30, 1), (30, 0)], [(40, 1), (40, 0)]]


def test_the_window_of_a_join_is_drawn_above_each_left_record() -> None:
    windows = JoinWindows.of_time_difference_with_no_grace(5).after(20)
    figure = join_timeline([("ann", "a1", 100)], [("ann", "e1", 110)], [], windows=windows)
    assert [95, 100, 120] in [[time for time, _ in own] for _, own in lines(figure)]


# ---- stream time and tables ------------------------------------------------------------------------------------------


def test_stream_time_refuses_windows_without_fixed_ends() -> None:
    sessions = SessionWindows.of_inactivity_gap_with_no_grace(10)
    with pytest.raises(ValueError, match=r"SessionWindows\(.*\) has no fixed ends: leave it out"):
        stream_time([("k", 1, 10)], windows=sessions)  # type: ignore[arg-type]


def test_stream_time_never_goes_back() -> None:
    figure = stream_time([("k", 1, 10), ("k", 2, 30), ("k", 3, 20), ("k", 4, 40)])
    assert [time for _, time in dict(lines(figure))["stream time"]] == [10, 30, 30, 40]


def test_what_is_closed_ends_where_a_window_and_its_grace_have_passed() -> None:
    records = [("k", n, time) for n, time in enumerate((5, 12, 14, 15, 26))]
    figure = stream_time(records, windows=TimeWindows.of_size_and_grace(10, 5))
    shade = next(each for each in axes_of(figure).collections if each.get_label() == "closed")
    assert {*outline(shade)[:, 1].tolist()} == {0, 10, 20}


def test_a_late_record_is_marked_where_it_came() -> None:
    late = ("k", 2, 10)
    figure = stream_time([("k", 1, 30), late], dropped=[late], label=str)
    assert points(figure, "x") == [(2, 10)]
    assert sorted(texts(figure)) == ["1", "2"]


def test_punctuations_stand_where_they_happened_over_the_multiples_of_their_interval() -> None:
    records = [("k", n, time) for n, time in enumerate((5, 120, 90, 310))]
    figure = punctuation_timeline(records, [(1, 5), (2, 120), (4, 310)], 100)
    assert points(figure, "*") == [(1, 5), (2, 120), (4, 310)]
    dues = next(each for each in axes_of(figure).collections if each.get_label() == "due from here on")
    assert [np.asarray(path.vertices)[0, 1] for path in dues.get_paths()] == [0, 100, 200, 300, 400]
    assert [time for _, time in dict(lines(figure))["stream time"]] == [5, 120, 120, 310]


def test_a_table_steps_at_each_update_and_keeps_its_last_value_to_the_end() -> None:
    figure = table_timeline([("tv", 1, 10), ("watch", 5, 15), ("tv", 2, 20)])
    steps = [own for _, own in lines(figure)]
    assert [(10, 1), (20, 2), (20, 2)] in steps
    assert [(15, 5), (20, 5)] in steps


def test_rows_below_zero_are_in_the_picture() -> None:
    for values in ((-5, -2), (-5, 3), (float("nan"), -1)):
        figure = table_timeline([("ann", values[0], 10), ("ann", values[1], 20)])
        low, high = axes_of(figure).get_ylim()
        assert low < high
        assert all(low <= value <= high for value in values if value == value)
    assert axes_of(table_timeline([("ann", 3, 10)])).get_ylim()[0] == 0


def test_the_interval_of_punctuations_is_a_duration() -> None:
    records = [("k", 1, 0), ("k", 2, 2500)]
    figure = punctuation_timeline(records, [], "1 second")
    assert heights(figure, "due from here on") == [0, 1000, 2000, 3000]


def test_a_deleted_row_leaves_a_gap() -> None:
    figure = table_timeline([("tv", {"n": 1}, 10), ("tv", None, 20)], value=lambda row: row["n"])
    heights = [height for _, height in points(figure, "o")]
    assert np.isnan(heights).tolist() == [False, True]


def hopping(size: int, advance: int) -> TimeWindows:
    return TimeWindows.of_size_with_no_grace(size).advance_by(advance)


def heights(figure: Figure, label: str) -> list[float]:
    rules = next(each for each in axes_of(figure).collections if each.get_label() == label)
    return [np.asarray(path.vertices)[0, 1].item() for path in rules.get_paths()]


def test_hopping_windows_end_where_they_do_though_their_size_is_no_multiple_of_the_advance() -> None:
    records = [("k", n, time) for n, time in enumerate((0, 3, 6, 9))]
    figure = stream_time(records, windows=hopping(5, 2))
    assert heights(figure, "windows' ends") == [5, 7, 9, 11]
    shade = next(each for each in axes_of(figure).collections if each.get_label() == "closed")
    assert {*outline(shade)[:, 1].tolist()} == {0, 5, 9}


@given(st.integers(1, 9), st.integers(1, 9), st.lists(st.integers(0, 40), min_size=1, max_size=4))
@settings(max_examples=20, deadline=None)
def test_the_ends_that_are_drawn_are_those_of_the_windows_of_all_times(size: int, part: int, times: list[int]) -> None:
    windows = hopping(size, min(size, part))
    drawn = heights(stream_time([("k", 1, time) for time in times], windows=windows), "windows' ends")
    known = {start + size for time in range(max(times) + 20) for start in windows.starting_for(time)}
    assert set(drawn) <= known
    assert {end for end in known if min(times) < end <= max(times)} <= set(drawn)


def test_a_picture_over_times_that_no_calendar_has_is_drawn_with_few_lines() -> None:
    records = [("tv", 1.0, at("09:00")), ("tv", 2.0, MICROSECONDS)]
    window = Windowed("tv", MICROSECONDS, MICROSECONDS + 5000)
    figures = [
        windows_timeline(records, [(window, 1, MICROSECONDS)]),
        join_timeline(records, records, [("2", "2")]),
        stream_time(records, windows=hopping(5000, 2000)),
        punctuation_timeline(records, [(2, MICROSECONDS)], 1000),
        table_timeline(records),
    ]
    for figure in figures:
        figure.canvas.draw()
    assert "stream time 1,700,000,000,000,000 ms" in words(figures[2])
    assert len(heights(figures[2], "windows' ends")) <= 100


def test_dollars_in_keys_and_values_are_no_formula() -> None:
    records = [("$a", "5% of $3, 2% of $4", at("09:00")), ("$b $", "sold at $30", at("09:01"))]
    window = Windowed("$a", at("09:00"), at("09:05"))
    figures = [
        windows_timeline(records, [(window, "$5 & $6", at("09:00"))], label=str, record_label=str),
        join_timeline(records, records, [("sold at $30", "sold at $30")], names=("$l & $", "$r & $")),
        stream_time(records, label=str),
        table_timeline([("$a & $b", 5, at("09:00"))]),
    ]
    for figure in figures:
        figure.canvas.draw()
        assert not any(text.get_parse_math() for text in figure.findobj(Text))


@pytest.mark.parametrize(
    "figure",
    [
        windows_timeline([], []),
        join_timeline([], [], []),
        table_timeline([]),
        stream_time([], windows=hopping(5, 2)),
        punctuation_timeline([], [], 1000),
    ],
)
def test_nothing_makes_an_empty_picture(figure: Figure) -> None:
    assert texts(figure) == []


# ---- in words --------------------------------------------------------------------------------------------------------


def words(figure: Figure) -> str:
    return str(figure.get_label())


def test_windows_are_told_in_words_with_what_came_too_late() -> None:
    records = [("tv", 1, at("09:05")), ("tv", 2, at("08:00"))]
    hour = Windowed("tv", at("09:00"), at("10:00"))
    figure = windows_timeline(records, [(hour, 7, at("09:05"))], dropped=records[1:])
    assert words(figure) == ("Windows in event time. tv 09:00 to 10:00: 7. Too late and dropped: tv 2 at 08:00.")


def test_a_join_is_told_in_words_with_who_found_no_match() -> None:
    left = [("ann", "a1", at("09:00")), ("ann", "a2", at("12:00"))]
    figure = join_timeline(left, [("ann", "e1", at("09:10"))], [("a1", "e1"), ("a2", None)], ("left", "right"))
    assert words(figure) == "Joined records of left and right in event time. a1 with e1; a2 with null."


def test_arrivals_are_told_in_words_with_stream_time() -> None:
    records = [("a", 1, at("09:05")), ("b", 2, at("09:00"))]
    figure = stream_time(records, dropped=records[1:])
    assert words(figure) == (
        "Records in the order of arrival. a from 09:05, stream time 09:05; b from 09:00, stream time 09:05, too late."
    )


def test_punctuations_are_told_in_words() -> None:
    figure = punctuation_timeline([("a", 1, at("09:05"))], [(1, at("09:05"))], 60_000)
    assert words(figure).endswith("Punctuations: at 09:05 after record 1.")


def test_a_table_is_told_in_words_and_a_deleted_row_is_crossed_out() -> None:
    figure = table_timeline([("cy", 5, at("09:00")), ("cy", None, at("09:01"))])
    assert words(figure) == "The rows of a table over time. cy: 5 at 09:00, deleted at 09:01."
    assert len(points(figure, "x", LATE)) == 1


def test_a_row_is_drawn_as_long_as_it_holds_and_a_lookup_goes_straight_down_to_it() -> None:
    orders = [("ann", "e1", at("09:10")), ("ann", "e2", at("09:30"))]
    rows = [("ann", "Oslo", at("09:00")), ("ann", "Rome", at("09:20"))]
    figure = join_timeline(orders, rows, [("e1", "Oslo"), ("e2", "Rome")], rows=True)
    drawn = zip(axes_of(figure).lines, lines(figure), strict=True)
    bars = [[time for time, _ in own] for line, (_, own) in drawn if line.get_linewidth() == 9]
    assert [start for start, _ in bars] == [at("09:00"), at("09:20")]
    assert bars[0][1] == at("09:20")
    met = [own for _, own in lines(figure) if [y for _, y in own] == [1, 0]]
    assert [(start, end) for (start, _), (end, _) in met] == [(at("09:10"),) * 2, (at("09:30"),) * 2]


@pytest.mark.parametrize(
    ("draw", "says"),
    [
        (lambda: table_timeline([("KO", "five", 1)]), "the row of 'KO' has the value 'five': say which number"),
        (lambda: table_timeline([("KO", {"n": 1}, 1)]), "value=lambda value: value['amount']"),
        (lambda: windows_timeline([("KO", 1, 1)], [("KO", 1, 1)]), "a result has the key 'KO', which is none"),
        (lambda: windows_timeline([("KO", 1)], []), "('KO', 1) is no record with a time"),
        (lambda: join_timeline([("k", "a", 1)], [("k", "b", 2)], [("a", "c")]), "'c', which is no record of right"),
        (lambda: punctuation_timeline([("k", "a", 1)], [], 0), "interval=0 is no interval"),
        (lambda: stream_time([("k", 1, None)]), "The record of 'k' has the time None: give a whole number"),
        (lambda: windows_timeline([("k", 1, "09:00")], []), "the time '09:00': give a whole number"),
        (lambda: table_timeline([("k", {"n": 1}, 1)], lambda value: value["m"]), "say which number of it to draw"),
        (lambda: join_timeline([("k", "a", 1)], [], [TRIPLE]), "('a', None, None) is no pair of joined"),
        (lambda: join_timeline([("k", "a", 1)], [], [NO_PAIR]), "None is no pair of joined records"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_a_sentence_and_leaves_no_figure_open(
    draw: Callable[[], Figure], says: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        draw()
    assert plt.get_fignums() == []


def test_very_long_and_very_many_keys_leave_room_for_the_picture() -> None:
    long = "k" * 200
    figures = [
        windows_timeline([(long, 1, 0)], []),
        join_timeline([(long, "a", 0)], [(long, "b", 1)], [], names=(long, long)),
        table_timeline([(f"key{number}", number, number) for number in range(60)]),
    ]
    for figure in figures:
        figure.canvas.draw()
        assert axes_of(figure).get_window_extent().width > figure.bbox.width / 2
        assert axes_of(figure).get_window_extent().height > figure.bbox.height / 2
    written = axes_of(figures[2]).get_legend()
    assert written is not None
    assert [text.get_text() for text in written.get_texts()][-2:] == ["key11", "… 48 more"]


def legend(figure: Figure) -> list[str]:
    (axes,) = figure.axes
    return axes.get_legend_handles_labels()[1]


def test_keys_with_fields_are_drawn_under_what_they_are_called() -> None:
    figure = table_timeline([({"shop": 1}, 5, 0), ({"shop": 1}, 7, 1000), ([1], 2, 0)])
    assert legend(figure) == ['{"shop": 1}', "[1]"]


def test_a_table_has_values_without_fields_in_a_column_of_their_own() -> None:
    table = as_table([("a", {"n": 1, "value": 2}, 0), ("b", 5, 0)])
    assert table[["n", "value.value", "value"]].to_numpy().tolist() == [[1, 2, None], [None, None, 5]]
