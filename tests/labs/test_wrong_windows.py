"""Wrong answers that are typical for windows: each is told what is misunderstood."""

import pytest

from streamskit import (
    Serdes,
    SessionWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
)
from tests.labs.wrong_answers import misconception, one_more

pytestmark = pytest.mark.spark


def minutes(builder: StreamsBuilder, windows: TimeWindows, name: str = "clicks-per-minute") -> None:
    counts = builder.stream("clicks").group_by_key().windowed_by(windows).count(name)
    counts.to_stream().to(name)


def test_a_grace_period_that_was_not_asked_for() -> None:
    windows = TimeWindows.of_size_and_grace("1 minute", "10 minutes")
    assert misconception("clicks_per_minute", lambda b: minutes(b, windows)) == "late record counted"


def test_a_window_that_is_a_millisecond_too_long() -> None:
    windows = TimeWindows.of_size_with_no_grace(60_001)
    assert misconception("clicks_per_minute", lambda b: minutes(b, windows)) == "windows of another size"


def test_a_count_without_windows() -> None:
    def answer(builder: StreamsBuilder) -> None:
        builder.stream("clicks").group_by_key().count("clicks-per-minute").to_stream().to("clicks-per-minute")

    assert misconception("clicks_per_minute", answer) == "results without their windows"


@one_more
def test_a_duration_in_seconds_where_milliseconds_are_meant() -> None:
    windows = TimeWindows.of_size_with_no_grace(60)
    assert misconception("clicks_per_minute", lambda b: minutes(b, windows)) == "windows of another size"


def test_hops_forgotten() -> None:
    windows = TimeWindows.of_size_and_grace("1 minute", "12 seconds")
    found = misconception("moving_minute", lambda b: minutes(b, windows, "moving-minute"))
    assert found == "tumbling instead of hopping"


def test_grace_forgotten() -> None:
    windows = TimeWindows.of_size_with_no_grace("1 minute").advance_by("24 seconds")
    found = misconception("moving_minute", lambda b: minutes(b, windows, "moving-minute"))
    assert found == "record in time dropped"


def test_windows_in_place_of_sessions() -> None:
    windows = TimeWindows.of_size_and_grace("1 minute", "10 minutes")
    found = misconception("visits", lambda b: minutes(b, windows, "visits"))
    assert found == "fixed windows instead of sessions"


def test_a_gap_a_millisecond_too_short() -> None:
    def answer(builder: StreamsBuilder) -> None:
        windows = SessionWindows.of_inactivity_gap_and_grace(59_999, "10 minutes")
        builder.stream("clicks").group_by_key().windowed_by(windows).count("visits").to_stream().to("visits")

    assert misconception("visits", answer) == "gap too short"


@one_more
def test_a_gap_too_long() -> None:
    def answer(builder: StreamsBuilder) -> None:
        windows = SessionWindows.of_inactivity_gap_and_grace("3 minutes", "10 minutes")
        builder.stream("clicks").group_by_key().windowed_by(windows).count("visits").to_stream().to("visits")

    assert misconception("visits", answer) == "gap too long"


def test_updates_where_final_results_are_asked_for() -> None:
    windows = TimeWindows.of_size_and_grace("1 minute", "30 seconds")
    found = misconception("final_counts", lambda b: minutes(b, windows, "final-counts"))
    assert found == "updates instead of final results"


@one_more
def test_grace_of_a_minute_where_half_a_minute_was_asked_for() -> None:
    def answer(builder: StreamsBuilder) -> None:
        windows = TimeWindows.of_size_and_grace("1 minute", "5 minutes")
        counts = builder.stream("clicks").group_by_key().windowed_by(windows).count("final-counts")
        counts.suppress(Suppressed.until_window_closes()).to_stream().to("final-counts")

    assert misconception("final_counts", answer) == "windows that never close in time"


def test_tumbling_windows_for_a_burst() -> None:
    def answer(builder: StreamsBuilder) -> None:
        windows = TimeWindows.of_size_with_no_grace("100 ms")
        builder.stream("requests").group_by_key().windowed_by(windows).count("bursts").to_stream().to("bursts")

    assert misconception("burst", answer) == "tumbling instead of sliding"


@one_more
def test_a_reducer_that_keeps_the_last_bid() -> None:
    def answer(builder: StreamsBuilder) -> None:
        bids = builder.stream("bids", value=Serdes.long()).group_by_key()
        windows = TimeWindows.of_size_and_grace("1 minute", "10 minutes")
        highest = bids.windowed_by(windows).reduce(lambda kept, new: None if new < 0 else new, "highest-bids")
        highest.to_stream().to("highest-bids")

    assert misconception("highest_bid", answer) == "last instead of highest"


def test_a_withdrawal_that_is_taken_for_a_low_bid() -> None:
    def answer(builder: StreamsBuilder) -> None:
        bids = builder.stream("bids", value=Serdes.long()).group_by_key()
        windows = TimeWindows.of_size_and_grace("1 minute", "10 minutes")
        bids.windowed_by(windows).reduce(max, "highest-bids").to_stream().to("highest-bids")

    assert misconception("highest_bid", answer) == "withdrawal not understood as a deletion"
