"""The exercises of lab 08: which windows a record falls into, when they close, and what comes out then."""

from collections.abc import Sequence

from streamskit.api.windows import Windowed
from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Exercise, Lab, Runs
from streamskit.course.labs.misconceptions import (
    Misconception,
    late_records_counted,
    not_only_last_results,
    records_in_time_dropped,
)
from streamskit.course.labs.recording import Costume, Recording, Row

PEOPLE = {"a": "ann", "b": "bob", "c": "cleo"}
MINUTE = 600
"""100 ms of the recordings are a minute of the stories: so many times as slow."""


def costume(source: str, target: str, store: str, recorded_store: str = "counts", scale: int = MINUTE) -> Costume:
    """Return the costume of a vector of this area."""
    return Costume({"in": source, "out": target}, {recorded_store: store}, PEOPLE, scale)


# ---- signs of typical mistakes ---------------------------------------------------------------------------------------


def end_is_inside(outcome: Outcome) -> bool:
    """A record at the very end of a window counts in it."""
    return any(
        isinstance(row.key, Windowed) and row.key.end == record.timestamp
        for moment in outcome.moments
        if (record := outcome.piped(moment))
        for row in moment.extra
    )


def one_window_a_record(outcome: Outcome) -> bool:
    """No record is in more than one window, where some should be."""
    due = max((len(moment.expected) for moment in outcome.moments), default=0)
    return bool(outcome.actual) and due > 1 and all(len(moment.actual) <= 1 for moment in outcome.moments)


def windows_of_one_size(outcome: Outcome) -> bool:
    """All windows are of one size, where sessions differ."""
    return len(_sizes(outcome.actual)) == 1 and len(_sizes(outcome.expected)) > 1


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


def no_deletions(outcome: Outcome) -> bool:
    """No window's result is deleted, where some should be."""
    return any(row.value is None for row in outcome.expected) and not any(row.value is None for row in outcome.actual)


def last_value(outcome: Outcome) -> bool:
    """Each result is the value that has just come, whatever was before."""
    pairs = [(record, row) for m in outcome.moments if (record := outcome.piped(m)) for row in m.actual]
    is_last = all(row.value in (record.value, None) for record, row in pairs)
    return bool(outcome.differing) and bool(pairs) and is_last


def _sizes(rows: list[Row]) -> set[int]:
    return {row.key.end - row.key.start for row in rows if isinstance(row.key, Windowed)}


def _merges(rows: Sequence[Row]) -> int:
    """Count the sessions that are replaced by a longer one: their results are deleted."""
    return sum(row.value is None for row in rows)


# ---- mistakes that more than one exercise knows ----------------------------------------------------------------------

LATE_COUNTED = Misconception(
    "late record counted",
    "A record that came after its window had closed was counted. A window closes when stream time, the largest "
    "timestamp so far, reaches its end plus the grace period. Is your grace period longer than the task's?",
    late_records_counted,
)
IN_TIME_DROPPED = Misconception(
    "record in time dropped",
    "A record came out of order, though before its window had closed, and was dropped. The task allows some grace: "
    "of_size_and_grace, or its like for other windows.",
    records_in_time_dropped,
)
END_INSIDE = Misconception(
    "window end inclusive",
    "A record at the very end of a window was counted in it. A window holds its start and not its end: [start, end).",
    end_is_inside,
)

LAB = Lab(
    "08-windows",
    "Windows",
    (
        Exercise(
            "clicks_per_minute",
            "Count each visitor's clicks in windows of a minute, without grace.",
            Runs(
                lambda: Recording.of(
                    "windows-tumbling-count", costume("clicks", "clicks-per-minute", "clicks-per-minute"), ["counts"]
                ),
                (END_INSIDE, LATE_COUNTED),
            ),
            (
                "Three steps: bring the clicks of one visitor together, cut time into windows, count.",
                "group_by_key(), then windowed_by(TimeWindows. ...), then count(...) with the name of the store.",
                '.group_by_key().windowed_by(TimeWindows.of_size_with_no_grace("1 minute")).count("clicks-per-minute")',
            ),
        ),
        Exercise(
            "moving_minute",
            "Count the clicks of the last minute, told anew every 24 seconds, with 12 seconds of grace.",
            Runs(
                lambda: Recording.of("windows-hopping-count", costume("clicks", "moving-minute", "moving-minute")),
                (
                    Misconception(
                        "tumbling instead of hopping",
                        "Each record is in one window only. Windows of a minute that begin every 24 seconds overlap, "
                        "so that a record is in two or three of them: advance_by(...).",
                        one_window_a_record,
                    ),
                    LATE_COUNTED,
                    IN_TIME_DROPPED,
                ),
            ),
            (
                "A hopping window has two durations: how long it is, and how far the next one begins after it.",
                "TimeWindows.of_size_and_grace(size, grace) makes windows that tumble; advance_by(...) makes them hop.",
                'TimeWindows.of_size_and_grace("1 minute", "12 seconds").advance_by("24 seconds")',
            ),
        ),
        Exercise(
            "visits",
            "Put clicks that are no more than a minute apart into one visit, and count them.",
            Runs(
                lambda: Recording.of(
                    "windows-session-count", costume("clicks", "visits", "visits", "sessions"), ["sessions"]
                ),
                (
                    Misconception(
                        "fixed windows instead of sessions",
                        "All your windows are of one length. A visit is as long as its visitor goes on clicking: that "
                        "is a session window, which is told by the gap that ends it.",
                        windows_of_one_size,
                    ),
                    Misconception(
                        "gap too short",
                        "You find more visits than there are: what belongs together is cut in two. Clicks exactly one "
                        "gap apart are still one visit.",
                        cut_in_two,
                    ),
                    Misconception(
                        "gap too long",
                        "You find fewer visits than there are: what lies further apart than the gap was merged.",
                        joined,
                    ),
                    IN_TIME_DROPPED,
                ),
            ),
            (
                "The windows here have no size: they end when nothing comes for a while.",
                "SessionWindows.of_inactivity_gap_and_grace(gap, grace): the task names both.",
                '.windowed_by(SessionWindows.of_inactivity_gap_and_grace("1 minute", "10 minutes")).count("visits")',
            ),
        ),
        Exercise(
            "final_counts",
            "Count by the minute with half a minute of grace, and send one final count for each window.",
            Runs(
                lambda: Recording.of("windows-tumbling-suppress", costume("clicks", "final-counts", "final-counts")),
                (
                    Misconception(
                        "updates instead of final results",
                        "Every update of a window comes out. suppress(Suppressed.until_window_closes()) keeps a "
                        "window's count back until the window has closed, and sends the last one.",
                        not_only_last_results,
                    ),
                    Misconception(
                        "windows that never close in time",
                        "Fewer windows are final than should be, or later ones: a window closes when stream time "
                        "reaches its end plus grace, so a longer grace makes everybody wait.",
                        waits_too_long,
                    ),
                    LATE_COUNTED,
                    IN_TIME_DROPPED,
                ),
            ),
            (
                "A table sends every update on. What stands between it and to_stream() can keep them back.",
                "count() as before, then suppress(...), then to_stream(). Which grace does the task allow?",
                '.windowed_by(TimeWindows.of_size_and_grace("1 minute", "30 seconds")).count()'
                ".suppress(Suppressed.until_window_closes())",
            ),
        ),
        Exercise(
            "burst",
            "For each request count those of the 100 ms before it, in sliding windows.",
            Runs(
                lambda: Recording.of("windows-sliding-count", costume("requests", "bursts", "bursts", scale=1)),
                (
                    Misconception(
                        "tumbling instead of sliding",
                        "Your windows begin at round times. A sliding window begins and ends where records are: "
                        "SlidingWindows.",
                        lambda outcome: (
                            bool(outcome.actual)
                            and all(row.key.start % 100 == 0 for row in outcome.actual if isinstance(row.key, Windowed))
                        ),
                    ),
                    LATE_COUNTED,
                    IN_TIME_DROPPED,
                ),
            ),
            (
                "No round times here: a window ends at each request, and begins 100 ms before.",
                "SlidingWindows is told by the difference in time between the first and the last record.",
                '.windowed_by(SlidingWindows.of_time_difference_with_no_grace("100 ms")).count(...)',
            ),
        ),
        Exercise(
            "highest_bid",
            "Keep the highest bid of each minute; a negative bid withdraws all of that minute.",
            Runs(
                lambda: Recording.of(
                    "windows-tumbling-reduce", costume("bids", "highest-bids", "highest-bids", "max"), ["max"]
                ),
                (
                    Misconception(
                        "withdrawal not understood as a deletion",
                        "A negative bid should delete the minute's result. A reducer that returns None does that: the "
                        "store forgets the window, and the topic gets a null.",
                        no_deletions,
                    ),
                    Misconception(
                        "last instead of highest",
                        "Each result is the bid that has just come. A reducer gets two: what was kept, and what comes.",
                        last_value,
                    ),
                    IN_TIME_DROPPED,
                ),
            ),
            (
                "reduce() takes a function of two bids: the one that was kept and the new one.",
                "The function returns the larger one, and None when the new one is negative. Grace: 10 minutes.",
                "lambda kept, new: None if new < 0 else max(kept, new)",
            ),
        ),
    ),
)
