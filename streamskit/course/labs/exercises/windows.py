"""Lab 08: which windows a record falls into, when they close, and what comes out then."""

from collections.abc import Callable, Sequence

from streamskit.api.windows import SessionWindows, SlidingWindows, TimeWindows, Windowed
from streamskit.course.labs.difference import Outcome, same_rows
from streamskit.course.labs.exercise import Runs
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.loops import Due, Later, followed_by
from streamskit.course.labs.misconceptions import (
    late_records_counted,
    not_only_last_results,
    one_at_most,
    records_in_time_dropped,
    window_sizes,
)
from streamskit.course.labs.parts import SaysEach, Typical
from streamskit.course.labs.recording import Costume, OutcomeRow, Piped, Recording
from streamskit.dsl.builder import StreamsBuilder
from streamskit.dsl.materialized import EmitStrategy
from streamskit.topology.nodes import Aggregation

PEOPLE = {"a": "ann", "b": "bob", "c": "cleo"}
MINUTE = 600
"""100 ms of the recordings are a minute of the stories: this many times slower."""
SECOND = 1_000

NO_GRACE, DAYS = "0 seconds", "1 day"

BY_GRACE = {"late record counted": late_records_counted, "record in time dropped": records_in_time_dropped}


def recorded(
    vector: str, source: str, target: str, store: str = "", scale: int = MINUTE, retention: int = 0
) -> Callable[[], Recording]:
    """Return a function that makes the recording of a vector.

    Args:
        vector: its name.
        source: the topic that is read.
        target: the topic that is written, and the story's name of the store.
        store: the vector's name of the store to compare; without it no store is compared.
        scale: how many times slower the story is.
        retention: for how many milliseconds the store has to keep a window, where the vector's keeps it for longer.
    """
    dress = Costume({"in": source, "out": target}, {store: target}, PEOPLE, scale)

    def made() -> Recording:
        recording = Recording.of(vector, dress, [store] if store else [])
        recording = followed_by(recording, *LAST_MOMENTS.get(target, ()))
        return recording.kept_for(target, retention) if retention else recording

    return made


def click(target: str, visitor: str, second: float, *windows: tuple[int, int], dropped: int = 0) -> Later:
    """Return a click that is its visitor's first in each of these windows, from one second to another."""
    time = round(second * SECOND)
    due = (Due(target, Windowed(visitor, start * SECOND, end * SECOND), 1, time) for start, end in windows)
    return Later(Piped("clicks", visitor, "cart", time), tuple(due), dropped)


def bid(item: str, second: float, amount: int, highest: int | None = None, at: float = 0) -> Later:
    """Return a bid and the highest of its minute after it, of the bids until `at`; without that it is too late."""
    time = round(second * SECOND)
    minute = time // 60_000 * 60_000
    due = Due("highest-bids", Windowed(item, minute, minute + 60_000), highest, round(max(at, second) * SECOND))
    return Later(Piped("bids", item, amount, time), (due,) if highest is not None else (), int(highest is None))


LAST_MOMENTS = {
    "moving-minute": (  # 11 seconds after a window's end it is open for those who may be 12 seconds late
        click("moving-minute", "cleo", 143, (96, 156), (120, 180)),
        click("moving-minute", "cleo", 95, (72, 132), dropped=1),
    ),
    "visits": (
        click("visits", "cleo", 2_000, (2_000, 2_000)),
        click("visits", "dora", 1_340, (1_340, 1_340)),
        click("visits", "emil", 1_339.999, dropped=1),
    ),
    "highest-bids": (
        bid("cleo", 779.999, 7, 7),
        bid("cleo", 770, 0, 7, at=779.999),
        bid("ann", 179, 6, 6),
        bid("bob", 780, 1, 1),
        bid("ann", 178, 8),
    ),
}
"""Records after those of the vectors: a window takes them until its grace is over, and not a moment longer."""


def windows_of_one_size(outcome: Outcome) -> bool:
    """All windows are of one size, where sessions differ."""
    return len(window_sizes(outcome.actual)) == 1 and len(window_sizes(outcome.expected)) > 1


def cut_in_two(outcome: Outcome) -> bool:
    """The first thing that goes wrong is that a record joins no session, where it should."""
    first = outcome.first
    if first is None or not _merges(first.expected) or _merges(first.actual):
        return False
    return not same_rows(*([row for row in rows if row.value is not None] for rows in (first.expected, first.actual)))


def joined(outcome: Outcome) -> bool:
    """The first thing that goes wrong is that a record joins a session, where it should begin one."""
    first = outcome.first
    return first is not None and _merges(first.expected) < _merges(first.actual)


def waits_too_long(outcome: Outcome) -> bool:
    """The first thing that goes wrong is a final result that does not come."""
    first = outcome.first
    return first is not None and bool(first.missing) and not first.extra


def lost_on_close(outcome: Outcome) -> bool:
    """A final result doesn't come, of windows that are looked for in their store as they close."""
    nodes = outcome.trial.topology.nodes.values()
    return waits_too_long(outcome) and any(isinstance(node, Aggregation) and node.on_close for node in nodes)


def at_round_times(outcome: Outcome) -> bool:
    """All windows begin at multiples of their size."""
    windows = [row.key for row in outcome.actual if isinstance(row.key, Windowed)]
    return bool(windows) and all(window.start % 100 == 0 for window in windows)


def _merges(rows: Sequence[OutcomeRow]) -> int:
    """Count the sessions that are replaced by a longer one: their results are deleted."""
    return sum(row.value is None for row in rows)


# ---- answers ---------------------------------------------------------------------------------------------------------


def highest(kept: int, new: int) -> int | None:
    """Return the higher bid; a negative one withdraws all."""
    return None if new < 0 else max(kept, new)


def tumbling(size: str | int = "1 minute", grace: str = NO_GRACE) -> TimeWindows:
    """Return windows of a minute, one after the other."""
    return TimeWindows.of_size_and_grace(size, grace)


def sent_on_close(builder: StreamsBuilder) -> None:
    """Count per minute, and send what the store still has of a window when it closes."""
    windowed = builder.stream("clicks").group_by_key().windowed_by(tumbling(grace="30 seconds"))
    windowed.emit_strategy(EmitStrategy.on_window_close()).count().to_stream().to("final-counts")


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
        signs={"late record counted": late_records_counted},
    ),
    moving_minute=Runs(
        recorded("windows-hopping-count", "clicks", "moving-minute", "counts", retention=72_000),
        signs={"tumbling instead of hopping": one_at_most, **BY_GRACE},
    ),
    visits=Runs(
        recorded("windows-session-count", "clicks", "visits", "sessions", retention=660_000),
        signs={
            "fixed windows instead of sessions": windows_of_one_size,
            **BY_GRACE,
            "gap too short": cut_in_two,
            "gap too long": joined,
        },
    ),
    final_counts=Runs(
        recorded("windows-tumbling-suppress", "clicks", "final-counts"),
        wrong={"windows gone before they are sent": sent_on_close},
        signs={
            "updates instead of final results": not_only_last_results,
            "windows gone before they are sent": lost_on_close,
            "windows that never close in time": waits_too_long,
        },
    ),
    burst=Runs(
        recorded("windows-sliding-count", "requests", "bursts", scale=1),
        signs={"tumbling instead of sliding": at_round_times, "late record counted": late_records_counted},
    ),
    fitting_windows=SaysEach(lambda: FITTING, "Each of the five gets what they want to be told.", TYPICAL_WINDOWS),
    highest_bid=Runs(
        recorded("windows-tumbling-reduce", "bids", "highest-bids", "max", retention=660_000),
        signs=BY_GRACE,
    ),
)
