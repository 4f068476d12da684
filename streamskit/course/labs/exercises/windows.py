"""Lab 08: which windows a record falls into, when they close, and what comes out then."""

from collections.abc import Callable, Sequence

from streamskit.api.windows import SessionWindows, SlidingWindows, TimeWindows, Windowed
from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Runs
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.misconceptions import late_records_counted, not_only_last_results, records_in_time_dropped
from streamskit.course.labs.parts import SaysEach, Typical
from streamskit.course.labs.recording import Costume, Recording, Row
from streamskit.dsl.builder import StreamsBuilder
from streamskit.dsl.materialized import Suppressed
from streamskit.serdes import Serdes

PEOPLE = {"a": "ann", "b": "bob", "c": "cleo"}
MINUTE = 600
"""100 ms of the recordings are a minute of the stories: so many times as slow."""

NO_GRACE, DAYS = "0 seconds", "1 day"

BY_GRACE = {"late record counted": late_records_counted, "record in time dropped": records_in_time_dropped}


def recorded(vector: str, source: str, target: str, store: str = "", scale: int = MINUTE) -> Callable[[], Recording]:
    """Return what makes the recording of a vector of this area.

    Args:
        vector: its name.
        source: the topic that is read.
        target: the topic that is written, and the store.
        store: how the vector calls the store that is compared; none is.
        scale: how many times slower the story is.
    """
    dress = Costume({"in": source, "out": target}, {store: target}, PEOPLE, scale)
    return lambda: Recording.of(vector, dress, [store] if store else [])


def windows_of_one_size(outcome: Outcome) -> bool:
    """All windows are of one size, where sessions differ."""
    return len(_sizes(outcome.actual)) == 1 and len(_sizes(outcome.expected)) > 1


def one_window_a_record(outcome: Outcome) -> bool:
    """No record is in more than one window, where some should be."""
    due = max((len(moment.expected) for moment in outcome.moments), default=0)
    return bool(outcome.actual) and due > 1 and all(len(moment.actual) <= 1 for moment in outcome.moments)


def cut_in_two(outcome: Outcome) -> bool:
    """The first thing that goes wrong is that a record joins no session, where it should."""
    first = outcome.first
    return first is not None and _merges(first.expected) > _merges(first.actual)


def joined(outcome: Outcome) -> bool:
    """The first thing that goes wrong is that a record joins a session, where it should begin one."""
    first = outcome.first
    return first is not None and _merges(first.expected) < _merges(first.actual)


def waits_too_long(outcome: Outcome) -> bool:
    """The first thing that goes wrong is a final result that does not come."""
    first = outcome.first
    return first is not None and bool(first.missing) and not first.extra


def at_round_times(outcome: Outcome) -> bool:
    """All windows begin at multiples of their size."""
    windows = [row.key for row in outcome.actual if isinstance(row.key, Windowed)]
    return bool(windows) and all(window.start % 100 == 0 for window in windows)


def _merges(rows: Sequence[Row]) -> int:
    """Count the sessions that are replaced by a longer one: their results are deleted."""
    return sum(row.value is None for row in rows)


def _sizes(rows: list[Row]) -> set[int]:
    return {row.key.end - row.key.start for row in rows if isinstance(row.key, Windowed)}


# ---- answers ---------------------------------------------------------------------------------------------------------

Answer = Callable[[StreamsBuilder], None]


def counts(
    windows: TimeWindows | SlidingWindows | SessionWindows, target: str, source: str = "clicks", final: bool = False
) -> Answer:
    """Return the answer that counts in these windows, and sends final results only if it is to."""

    def answer(builder: StreamsBuilder) -> None:
        table = builder.stream(source).group_by_key().windowed_by(windows).count(target)
        (table.suppress(Suppressed.until_window_closes()) if final else table).to_stream().to(target)

    return answer


def without_windows(builder: StreamsBuilder) -> None:
    """Count all clicks of a visitor."""
    builder.stream("clicks").group_by_key().count("clicks-per-minute").to_stream().to("clicks-per-minute")


def bids(reducer: Callable[[int, int], int | None], grace: str = "10 minutes") -> Answer:
    """Return the answer that keeps what this reducer returns."""

    def answer(builder: StreamsBuilder) -> None:
        windows = TimeWindows.of_size_and_grace("1 minute", grace)
        kept = builder.stream("bids", value=Serdes.long()).group_by_key().windowed_by(windows)
        kept.reduce(reducer, "highest-bids").to_stream().to("highest-bids")

    return answer


def highest(kept: int, new: int) -> int | None:
    """Return the higher bid; a negative one withdraws all."""
    return None if new < 0 else max(kept, new)


def tumbling(size: str | int = "1 minute", grace: str = NO_GRACE) -> TimeWindows:
    """Return windows of a minute, one after the other."""
    return TimeWindows.of_size_and_grace(size, grace)


def hopping(grace: str) -> TimeWindows:
    """Return windows of a minute that begin every 24 seconds."""
    return tumbling(grace=grace).advance_by("24 seconds")


def sessions(gap: str | int, grace: str = "10 minutes") -> SessionWindows:
    """Return windows that end with a gap."""
    return SessionWindows.of_inactivity_gap_and_grace(gap, grace)


# ---- 6: which window fits --------------------------------------------------------------------------------------------

FITTING = {
    "cashier": tumbling("1 hour", "5 minutes"),
    "operator": tumbling("10 minutes").advance_by("1 minute"),
    "nurse": sessions("30 seconds", "2 minutes"),
    "bank": SlidingWindows.of_time_difference_with_no_grace("1 minute"),
    "founder": None,
}
TYPICAL_WINDOWS: dict[str, Typical] = {
    "cut by the clock": {
        "nurse": (tumbling("30 seconds", "2 minutes"), tumbling("30 seconds")),
        "bank": (tumbling(), tumbling().advance_by("30 seconds"), tumbling().advance_by("1 second")),
    },
    "no overlap": {"operator": (tumbling("10 minutes"), tumbling())},
    "records in place of the clock": {
        "operator": SlidingWindows.of_time_difference_with_no_grace("10 minutes"),
        "cashier": SlidingWindows.of_time_difference_and_grace("1 hour", "5 minutes"),
    },
    "a stretch that grows": {"bank": sessions("1 minute", NO_GRACE)},
    "a stretch of fixed length": {"nurse": SlidingWindows.of_time_difference_and_grace("30 seconds", "2 minutes")},
    "no time for those who are late": {"cashier": tumbling("1 hour"), "nurse": sessions("30 seconds", NO_GRACE)},
    "a window where none is wanted": {"founder": (tumbling(DAYS), sessions(DAYS, NO_GRACE))},
}


# ---- the lab ---------------------------------------------------------------------------------------------------------

LAB = lab(
    "08-windows",
    clicks_per_minute=Runs(
        recorded("windows-tumbling-count", "clicks", "clicks-per-minute", "counts"),
        wrong={
            "sliding instead of tumbling": counts(
                SlidingWindows.of_time_difference_with_no_grace("1 minute"), "clicks-per-minute"
            ),
            "late record counted": counts(tumbling(grace="10 minutes"), "clicks-per-minute"),
            "windows of another size": [
                counts(tumbling(60), "clicks-per-minute"),
                counts(tumbling(60_001), "clicks-per-minute"),
            ],
            "results without their windows": without_windows,
        },
        signs={"late record counted": late_records_counted},
    ),
    moving_minute=Runs(
        recorded("windows-hopping-count", "clicks", "moving-minute"),
        wrong={
            "tumbling instead of hopping": [
                counts(tumbling(grace=grace), "moving-minute") for grace in ("12 seconds", NO_GRACE, DAYS)
            ],
            "late record counted": [counts(hopping(grace), "moving-minute") for grace in ("24 seconds", DAYS)],
            "record in time dropped": counts(hopping(NO_GRACE), "moving-minute"),
        },
        signs={"tumbling instead of hopping": one_window_a_record, **BY_GRACE},
    ),
    visits=Runs(
        recorded("windows-session-count", "clicks", "visits", "sessions"),
        wrong={
            "fixed windows instead of sessions": [
                counts(tumbling(size, "10 minutes"), "visits") for size in ("1 minute", "10 minutes")
            ],
            "gap too short": [counts(sessions(gap), "visits") for gap in (59_999, "30 seconds", "1 second")],
            "gap too long": [counts(sessions(gap), "visits") for gap in ("2 minutes", "3 minutes", "1 hour")],
            "record in time dropped": [counts(sessions("1 minute", late), "visits") for late in (NO_GRACE, "1 minute")],
        },
        signs={
            "fixed windows instead of sessions": windows_of_one_size,
            "record in time dropped": records_in_time_dropped,
            "gap too short": cut_in_two,
            "gap too long": joined,
        },
    ),
    final_counts=Runs(
        recorded("windows-tumbling-suppress", "clicks", "final-counts"),
        wrong={
            "updates instead of final results": [
                counts(tumbling(grace=grace), "final-counts") for grace in ("30 seconds", DAYS)
            ],
            "windows that never close in time": [
                counts(tumbling(grace=grace), "final-counts", final=True) for grace in ("1 minute", "5 minutes", DAYS)
            ],
            "record in time dropped": counts(tumbling(), "final-counts", final=True),
        },
        signs={
            "updates instead of final results": not_only_last_results,
            "record in time dropped": records_in_time_dropped,
            "windows that never close in time": waits_too_long,
        },
    ),
    burst=Runs(
        recorded("windows-sliding-count", "requests", "bursts", scale=1),
        wrong={
            "tumbling instead of sliding": [
                counts(windows, "bursts", "requests")
                for windows in (tumbling("100 ms"), tumbling("100 ms", DAYS), tumbling("100 ms").advance_by("50 ms"))
            ],
            "late record counted": counts(
                SlidingWindows.of_time_difference_and_grace("100 ms", DAYS), "bursts", "requests"
            ),
        },
        signs={"tumbling instead of sliding": at_round_times, "late record counted": late_records_counted},
    ),
    fitting_windows=SaysEach(lambda: FITTING, "Each of the five gets what they want to be told.", TYPICAL_WINDOWS),
    highest_bid=Runs(
        recorded("windows-tumbling-reduce", "bids", "highest-bids", "max"),
        wrong={
            "withdrawal not understood as a deletion": bids(max),
            "last instead of highest": [bids(lambda _, new: new), bids(lambda _, new: None if new < 0 else new)],
            "record in time dropped": bids(highest, NO_GRACE),
        },
        signs={"record in time dropped": records_in_time_dropped},
    ),
)
