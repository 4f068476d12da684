"""What the views of event time say of records, against plain definitions of windows and joins."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamskit.api.windows import AnyWindows, JoinWindows, SessionWindows, SlidingWindows, TimeWindows, Windowed
from streamskit.views.record_source import ShownRecord
from streamskit.views.replay import ReplayedRecord, replay_join, replay_windows, state_of, windows_after

TUMBLING = TimeWindows.of_size_with_no_grace(10)
HOPPING = TimeWindows.of_size_and_grace(10, 5).advance_by(4)
SLIDING = SlidingWindows.of_time_difference_and_grace(5, 3)
SESSIONS = SessionWindows.of_inactivity_gap_and_grace(5, 3)

arrivals = st.lists(
    st.builds(ShownRecord, st.sampled_from(["a", "b", None]), st.sampled_from(["v", None]), st.integers(0, 120)),
    max_size=30,
)
sided = st.lists(
    st.builds(
        ShownRecord, st.sampled_from("ab"), st.just("v"), st.integers(0, 60), st.sampled_from([(0,), (1,), (0, 1)])
    ),
    max_size=20,
)


def came(*times: int, key: str | None = "a", value: str | None = "v") -> list[ShownRecord]:
    return [ShownRecord(key, value, time) for time in times]


def replayed(windows: AnyWindows, records: list[ShownRecord]) -> list[ReplayedRecord]:
    return replay_windows(windows, windows.retention, records)


@pytest.mark.parametrize("windows", [TUMBLING, HOPPING])
@settings(max_examples=60, deadline=None)
@given(records=arrivals)
def test_a_record_counts_in_each_of_its_windows_that_has_not_closed(
    windows: TimeWindows, records: list[ShownRecord]
) -> None:
    expected: Counter[Windowed] = Counter()
    missed, now = [], -1
    for each in records:
        now = now if each.key is None else max(now, each.timestamp)
        own = [] if each.key is None else windows.starting_for(each.timestamp)
        open_ = [start for start in own if start + windows.size + windows.grace > now]
        expected.update(Windowed(str(each.key), start, start + windows.size) for start in open_)
        missed.append(1 if each.key is None else len(own) - len(open_))
    steps = replayed(windows, records)
    assert windows_after(steps) == dict(expected)
    assert [step.missed for step in steps] == missed
    assert [step.is_dropped for step in steps] == [
        bool(lost) and not any(count for count in step.windows.values())
        for lost, step in zip(missed, steps, strict=True)
    ]


@settings(max_examples=60, deadline=None)
@given(records=sided)
def test_two_records_meet_where_their_keys_are_equal_and_their_times_close(records: list[ShownRecord]) -> None:
    # The grace keeps all of them, so that who meets whom does not depend on the order.
    windows = JoinWindows.of_time_difference_and_grace(5, 1000).after(9)
    pairs = Counter(pair for step in replay_join(windows, (False, False), records) for pair in step.pairs)
    expected = {
        (left, right)
        for left, one in enumerate(records)
        for right, two in enumerate(records)
        if 0 in one.sides and 1 in two.sides and one.key == two.key
        if one.timestamp - 5 <= two.timestamp <= one.timestamp + 9
    }
    assert pairs == Counter(expected)


def test_stream_time_only_moves_forward() -> None:
    steps = replayed(TUMBLING, came(5, 20, 12, 21))
    assert [(step.stream_time_before, step.stream_time) for step in steps] == [(-1, 5), (5, 20), (20, 20), (20, 21)]


def test_a_record_without_a_key_does_not_move_stream_time() -> None:
    steps = replayed(TUMBLING, [*came(90, key=None), *came(5)])
    assert [step.stream_time for step in steps] == [-1, 5]
    assert not steps[1].is_dropped


def test_a_session_that_grows_takes_the_place_of_those_it_joins() -> None:
    steps = replayed(SessionWindows.of_inactivity_gap_and_grace(5, 100), came(0, 8, 4))
    assert windows_after(steps[:2]) == {Windowed("a", 0, 0): 1, Windowed("a", 8, 8): 1}
    assert windows_after(steps) == {Windowed("a", 0, 8): 3}


def test_a_sliding_window_holds_the_records_up_to_the_one_that_it_ends_at() -> None:
    steps = replayed(SlidingWindows.of_time_difference_and_grace(10, 100), came(20, 25, 40))
    assert windows_after(steps) == {Windowed("a", 10, 20): 1, Windowed("a", 15, 25): 2, Windowed("a", 21, 31): 1,
                                    Windowed("a", 30, 40): 1}  # fmt: skip


@pytest.mark.parametrize(
    ("windows", "records", "why"),
    [
        (TUMBLING, came(5, 20, 6), "too late: its last window, 00:00:00 – 00:00:00.010, had closed at 00:00:00.010"),
        (HOPPING, came(8, 17, 9), "too late for 1 of its 3 windows: they had closed at stream time 00:00:00.017"),
        (SessionWindows.of_inactivity_gap_with_no_grace(5), came(0, 50, 9), "a session that ends with it had closed"),
        (SlidingWindows.of_time_difference_with_no_grace(5), came(0, 50, 9), "its windows had closed, for stream time"),
        (TUMBLING, came(5, key=None), "it has no key"),
        (SlidingWindows.of_time_difference_with_no_grace(5), came(9, value=None), "it has no value"),
    ],
)  # fmt: skip
def test_a_dropped_record_has_a_reason(windows: AnyWindows, records: list[ShownRecord], why: str) -> None:
    assert why in replayed(windows, records)[-1].why


def test_a_record_without_value_is_dropped_by_a_join() -> None:
    (step,) = replay_join(JoinWindows.of_time_difference_with_no_grace(5), (False, False), came(1, value=None))
    assert step.is_dropped
    assert step.why == "it has no value"


def test_an_unmatched_record_of_an_outer_join_goes_out_alone_when_its_time_is_over() -> None:
    windows = JoinWindows.of_time_difference_with_no_grace(5)
    records = [ShownRecord("a", "v", 0, (0,)), ShownRecord("b", "v", 20, (1,))]
    assert [step.pairs for step in replay_join(windows, (True, False), records)] == [(), ((0, None),)]


@pytest.mark.parametrize(
    ("windows", "end", "states"),
    [
        (HOPPING, 10, {9: "open", 10: "in grace", 14: "in grace", 15: "closed"}),
        (TUMBLING, 10, {9: "open", 10: "closed"}),
        (SLIDING, 10, {10: "open", 11: "in grace", 13: "in grace", 14: "closed"}),
        (SESSIONS, 10, {15: "open", 16: "in grace", 18: "in grace", 19: "closed"}),
    ],
)  # fmt: skip
def test_a_window_is_open_then_in_grace_then_closed(windows: AnyWindows, end: int, states: dict[int, str]) -> None:
    window = Windowed("a", 5, end)
    assert {time: state_of(window, windows, time) for time in states} == states


@pytest.mark.parametrize("windows", [TUMBLING, HOPPING, SLIDING, SESSIONS])
@settings(max_examples=40, deadline=None)
@given(records=arrivals)
def test_no_record_changes_a_window_that_is_shown_as_closed(windows: AnyWindows, records: list[ShownRecord]) -> None:
    for step in replayed(windows, records):
        changed = [window for window, count in step.windows.items() if count is not None]
        assert "closed" not in {state_of(window, windows, step.stream_time) for window in changed}
