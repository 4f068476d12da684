from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamskit import JoinWindows, SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows


def test_windows_tumble_until_they_are_told_to_hop() -> None:
    tumbling = TimeWindows.of_size_and_grace("5 seconds", "1 second")
    assert (tumbling.size, tumbling.advance, tumbling.grace) == (5000, 5000, 1000)
    assert tumbling.advance_by("1 second").advance == 1000


@pytest.mark.parametrize("advance", [0, 5001])
def test_an_advance_that_leaves_gaps_or_stands_still_is_refused(advance: int) -> None:
    with pytest.raises(ValueError, match=f"cannot advance by {advance} ms"):
        TimeWindows.of_size_with_no_grace(5000).advance_by(advance)


def test_a_window_without_size_is_refused() -> None:
    with pytest.raises(ValueError, match="holds no record"):
        TimeWindows.of_size_with_no_grace(0)


@given(size=st.integers(1, 50), advance=st.integers(1, 50), time=st.integers(0, 300))
def test_the_windows_of_a_time_are_all_that_hold_it_and_none_before_zero(size: int, advance: int, time: int) -> None:
    windows = TimeWindows(size, min(advance, size), 0)
    holding = [start for start in range(0, time + 1, windows.advance) if start <= time < start + size]
    assert windows.starting_for(time) == holding


def test_sliding_windows_are_as_long_as_two_records_may_be_apart() -> None:
    sliding = SlidingWindows.of_time_difference_and_grace("10 minutes", "1 minute")
    assert (sliding.time_difference, sliding.size, sliding.grace) == (600_000, 600_000, 60_000)
    assert SlidingWindows.of_time_difference_with_no_grace("10 minutes").grace == 0


def test_a_session_ends_after_its_gap_which_may_be_0() -> None:
    sessions = SessionWindows.of_inactivity_gap_and_grace("5 minutes", "30 seconds")
    assert (sessions.gap, sessions.grace) == (300_000, 30_000)
    assert SessionWindows.of_inactivity_gap_with_no_grace("5 minutes").grace == 0
    assert SessionWindows.of_inactivity_gap_and_grace(0, 10) == SessionWindows(0, 10)
    with pytest.raises(ValueError, match="inactivity gap -1 is negative"):
        SessionWindows.of_inactivity_gap_with_no_grace(-1)


def test_a_join_reaches_as_far_back_as_on_until_it_is_told_otherwise() -> None:
    windows = JoinWindows.of_time_difference_and_grace("10 seconds", "2 seconds")
    assert (windows.before_ms, windows.after_ms, windows.grace) == (10_000, 10_000, 2000)
    assert windows.before(0) == JoinWindows(0, 10_000, 2000)
    assert windows.after("1 minute") == JoinWindows(10_000, 60_000, 2000)
    assert (windows.before(0).size, windows.size) == (10_000, 20_000)


@pytest.mark.parametrize(
    ("windows", "retention"),
    [
        (TimeWindows.of_size_and_grace(5000, 100).advance_by(1000), 5100),
        (SlidingWindows.of_time_difference_and_grace(5000, 100), 10_100),
        (SessionWindows.of_inactivity_gap_and_grace(5000, 100), 5100),
        (JoinWindows.of_time_difference_and_grace(5000, 100).after(1000), 6100),
    ],
)
def test_a_store_keeps_what_may_still_be_asked_for(
    windows: TimeWindows | SlidingWindows | SessionWindows | JoinWindows, retention: int
) -> None:
    assert windows.retention == retention


@pytest.mark.parametrize(
    "make",
    [
        TimeWindows.of_size_and_grace,
        SlidingWindows.of_time_difference_and_grace,
        SessionWindows.of_inactivity_gap_and_grace,
        JoinWindows.of_time_difference_and_grace,
    ],
)
def test_a_grace_that_is_negative_or_no_duration_is_refused(make: Callable[[Any, Any], object]) -> None:
    with pytest.raises(ValueError, match="grace -1 is negative"):
        make(5000, -1)
    with pytest.raises(ValueError, match="grace 'soon' is not a duration"):
        make(5000, "soon")


def test_a_join_window_may_begin_after_the_left_record_and_has_to_hold_something() -> None:
    later = JoinWindows.of_time_difference_with_no_grace("10 s").before("-2 seconds")
    assert (later.before_ms, later.after_ms, later.size) == (-2000, 10_000, 8000)
    with pytest.raises(ValueError, match="No record is in this window: it begins 12 s after the left record"):
        later.before(-12_000)
    with pytest.raises(ValueError, match="is negative: a duration is 0 or more"):
        TimeWindows.of_size_with_no_grace("-1 s")


@pytest.mark.parametrize("start", [-1, 2**63 - 1, 1.5, "1 hour", None])
def test_an_unlimited_window_starts_at_a_time(start: Any) -> None:
    with pytest.raises(ValueError, match=r"A window cannot start on .*: give milliseconds since 1970, an int of 0 or"):
        UnlimitedWindows.of().start_on(start)


def test_the_unlimited_window_ends_with_time_itself_wherever_it_starts() -> None:
    for windows in (UnlimitedWindows.of(), UnlimitedWindows.of().start_on(1000)):
        assert windows.start + windows.size == 2**63 - 1
        assert windows.starting_for(1000) == windows.starting_for(2**63 - 1) == [windows.start]
    assert windows.starting_for(999) == []
