import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamskit import TimeWindows


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
