"""The exercises of lab 09: where a record's time comes from, how far time has come, and what is late."""

from collections import defaultdict
from typing import Any

from streamskit.api.windows import TimeWindows, Windowed
from streamskit.course.datasets.event_time import at
from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Exercise, Lab, Runs, Says
from streamskit.course.labs.misconceptions import (
    Misconception,
    late_records_counted,
    stopped,
)
from streamskit.course.labs.recording import Costume, Recording
from streamskit.dsl.builder import StreamsBuilder
from streamskit.testing import TopologyTestDriver

MINUTE = 60_000
"""A millisecond of the recordings of single records is a minute of the stories."""
WINDOW = 600
"""100 ms of the recordings of windows are a minute of the stories."""

TILLS = {"a": "till-1", "b": "till-2"}


# ---- the recordings in the lab's words -------------------------------------------------------------------------------


def tickets_of_broken_clocks() -> Recording:
    """Return the recorded stream in which records without a valid timestamp are skipped."""
    return Recording.of("time-log-and-skip", Costume({"in": "tickets", "out": "valid-tickets"}, {}, TILLS, MINUTE))


def orders_by_their_own_time() -> Recording:
    """Return the recorded stream whose time is in its values, with gaps and an impossible one."""

    def told(_: str, value: Any) -> Any:
        if value is None:
            return None
        return {"order": value["n"], "time": value["ts"] * MINUTE if "ts" in value else None}

    return Recording.of("time-payload-extractor", Costume({"in": "uploads", "out": "orders"}, {}, TILLS, MINUTE, told))


def tickets_among_heartbeats() -> Recording:
    """Return the recorded count in windows of a stream from which some records are filtered before."""
    words = {"x": "tv", "y": "watch", "z": "radio", "w": "lamp", "tick": "heartbeat"}
    topics = {"in": "tickets", "out": "tickets-per-minute"}
    dress = Costume(topics, {"counts": "tickets-per-minute"}, TILLS, WINDOW, lambda _, value: words.get(value, value))
    return Recording.of("time-filter-before-window", dress)


def two_counts() -> Recording:
    """Return the recorded counts of one stream, with windows and without."""
    topics = {"in": "tickets", "counts": "tickets-in-all", "window-counts": "tickets-by-minute"}
    dress = Costume(topics, {"all": "tickets-in-all"}, TILLS, WINDOW, lambda _, value: value)
    return Recording.of("time-out-of-order-count", dress, ["all"])


# ---- questions about one list of uploads -----------------------------------------------------------------------------

UPLOADS = (
    ("e1", "tv", "10:02"),
    ("e2", "tv", "10:12"),
    ("e3", "watch", "10:08"),
    ("e4", "tv", "10:16"),
    ("e5", "tv", "10:13"),
    ("e6", "tv", "10:09"),
    ("e7", "watch", "10:04"),
    ("e8", "tv", "10:26"),
    ("e9", "watch", "10:19"),
)
"""Order, product and time of day, as they arrive; the notebook shows them."""

TIMES = [time for *_, time in UPLOADS]


def stream_times() -> list[str]:
    """Return stream time after each upload."""
    return [max(TIMES[: number + 1]) for number in range(len(TIMES))]


def dropped_by_a_program() -> list[str]:
    """Count the uploads in windows of ten minutes with five of grace; return the orders that are dropped."""
    builder = StreamsBuilder()
    windows = TimeWindows.of_size_and_grace("10 minutes", "5 minutes")
    builder.stream("uploads").group_by_key().windowed_by(windows).count().to_stream().to("counts")
    late: list[str] = []
    with TopologyTestDriver(builder.build()) as driver:
        for order, product, time in UPLOADS:
            driver.create_input_topic("uploads").pipe_input(product, order, at(time))
            late += [order] * (driver.dropped() - len(late))
    return late


def out_of_order() -> tuple[str, ...]:
    """Return the orders older than one before them."""
    return tuple(order for (order, *_, time), now in zip(UPLOADS, stream_times(), strict=True) if time < now)


def late(grace: int, by_product: bool = False) -> tuple[str, ...]:
    """Return the orders whose window of ten minutes has been over for `grace` minutes.

    `by_product` gives each product a stream time of its own.
    """
    now: dict[str, int] = defaultdict(int)
    found = []
    for order, product, time in UPLOADS:
        clock = product if by_product else ""
        now[clock] = max(now[clock], at(time))
        closes = at(time) // (10 * MINUTE) * 10 * MINUTE + (10 + grace) * MINUTE
        found += [order] if closes <= now[clock] else []
    return tuple(found)


# ---- signs of typical mistakes ---------------------------------------------------------------------------------------


def arrival_for_event(outcome: Outcome) -> bool:
    """Each result has the timestamp with which its record came, where it should have another."""
    pairs = [(record, row) for m in outcome.moments if (record := outcome.piped(m)) for row in m.actual]
    return bool(outcome.differing) and bool(pairs) and all(row.timestamp == record.timestamp for record, row in pairs)


def missing_time_skipped(outcome: Outcome) -> bool:
    """What came is right, and records that have no time of their own are missing."""
    silent = [moment for moment in outcome.differing if not moment.actual]
    return bool(outcome.actual) and bool(silent) and silent == outcome.differing


def impossible_time_guessed(outcome: Outcome) -> bool:
    """A record with a time before 1970 came out."""
    return any(isinstance(row.value, dict) and (row.value.get("time") or 0) < 0 for row in outcome.actual)


def heartbeats_counted(outcome: Outcome) -> bool:
    """There are results after heartbeats."""
    return any(moment.actual for moment in outcome.at(lambda record: record.value == "heartbeat"))


def windows_in_all(outcome: Outcome) -> bool:
    """The count of all tickets is one of windows."""
    return any(isinstance(row.key, Windowed) for row in outcome.trial.outputs.get("tickets-in-all", ()))


LAB = Lab(
    "09-time",
    "Time",
    (
        Exercise(
            "valid_tickets",
            "Skip the records of clocks that are not set.",
            Runs(
                tickets_of_broken_clocks,
                (
                    Misconception(
                        "failing or guessing instead of skipping",
                        "A record without a valid timestamp stopped the program. Failing is what happens by default; "
                        "and a guess by partition time fails as well while there is no record to guess by. The task "
                        "asks to skip such records.",
                        stopped,
                    ),
                ),
            ),
            (
                "TimestampExtractor has three ready-made answers to a negative timestamp: fail, skip, and guess.",
                "The one for this task logs the record and skips it.",
                "TimestampExtractor.log_and_skip_on_invalid()",
            ),
        ),
        Exercise(
            "sold_at",
            "Take a record's time from its value; guess one that is missing, skip one that is impossible.",
            Runs(
                orders_by_their_own_time,
                (
                    Misconception(
                        "failing or guessing instead of skipping",
                        "The program stopped at a record without a usable time. invalid= says what becomes of an "
                        "impossible one, and of a missing one as long as there is no time yet to guess by: it fails "
                        "unless you say otherwise.",
                        stopped,
                    ),
                    Misconception(
                        "arrival instead of event time",
                        "Your results have the timestamps with which the records arrived. The time in the value counts "
                        "only if the stream is told to take it: timestamps=.",
                        arrival_for_event,
                    ),
                    Misconception(
                        "impossible time guessed",
                        "An order with a time before 1970 came out. That time is impossible rather than missing, and "
                        "the task skips such orders.",
                        impossible_time_guessed,
                    ),
                    Misconception(
                        "missing time skipped",
                        "Orders without a time are left out. The task guesses their time by that of the records before "
                        "them: a TimestampExtractor can treat a missing time another way than an impossible one.",
                        missing_time_skipped,
                    ),
                ),
            ),
            (
                "A TimestampExtractor takes the time from the value, and has two more settings for when there is none.",
                "TimestampExtractor.of(lambda v: v.time, invalid=..., missing=...): what is to become of each?",
                'TimestampExtractor.of(lambda v: v.time, invalid="skip", missing="partition time")',
            ),
        ),
        Exercise(
            "stream_time_after",
            "Say how far stream time has come after each record.",
            Says(
                stream_times,
                "Stream time is the largest event time so far: each of your times was compared with the maximum of "
                "the times up to there.",
                {
                    tuple(TIMES): (
                        "event time instead of stream time",
                        "These are the orders' own times. Stream time does not go back when a record is older.",
                    ),
                    (max(TIMES),) * len(TIMES): (
                        "the end known from the start",
                        "That is the largest of all times. Stream time knows only the records that have come so far.",
                    ),
                },
            ),
            (
                "Follow the records in the order in which they arrive. Which of them move time forward?",
                "An older record leaves stream time where it is.",
                "It begins with 10:02, 10:12, 10:12, 10:16, and changes only once after that.",
            ),
        ),
        Exercise(
            "late_orders",
            "Name the orders that come too late for their windows.",
            Says(
                dropped_by_a_program,
                "The orders were piped one by one into a count in windows of ten minutes with five of grace, and those "
                "noted after which the driver had dropped one more.",
                {
                    out_of_order(): (
                        "out of order taken for late",
                        "These are all orders that are older than one before. Such an order still counts while its "
                        "window is open, until stream time reaches the window's end plus the grace.",
                    ),
                    late(0): (
                        "grace forgotten",
                        "These would be late without grace. A window of ten minutes stays open five minutes longer.",
                    ),
                    late(5, by_product=True): (
                        "a stream time for each product",
                        "So it would be if each product had a stream time of its own. There is one for a partition, "
                        "whatever the keys of its records.",
                    ),
                },
            ),
            (
                "For each order: when does its window end, when does it close, and how far is stream time?",
                "The window from 10:00 to 10:10 closes when stream time reaches 10:15, that from 10:10 at 10:25.",
                "e3 and e5 are out of order and in time. Three of the others are late.",
            ),
        ),
        Exercise(
            "tickets_per_minute",
            "Count in windows, where heartbeats must not close them.",
            Runs(
                tickets_among_heartbeats,
                (
                    Misconception(
                        "heartbeats counted",
                        "A heartbeat made a result, and closed the windows before it, so that a ticket was dropped. "
                        "It has to go before anything is counted: what is filtered out there does not move the time "
                        "of the windows.",
                        heartbeats_counted,
                    ),
                    Misconception(
                        "late record counted",
                        "A ticket came after a newer ticket had closed its window, and was counted. The task allows no "
                        "grace.",
                        late_records_counted,
                    ),
                ),
            ),
            (
                "A record that does not reach the count cannot close its windows. Which step keeps records back?",
                "filter comes before group_by_key. Then windows of a minute without grace.",
                'builder.stream("tickets").filter(lambda v: v != "heartbeat").group_by_key().windowed_by(...)',
            ),
        ),
        Exercise(
            "tickets_counted_twice",
            "Count the same tickets in all and by the minute, and see what lateness changes.",
            Runs(
                two_counts,
                (
                    Misconception(
                        "windows where none are asked for",
                        "The topic tickets-in-all holds counts of windows. The count of all tickets has none: only "
                        "the other one is cut into minutes.",
                        windows_in_all,
                    ),
                    Misconception(
                        "late record counted",
                        "A ticket that came after its window had closed was counted in it. A minute of grace, and no "
                        "more: a window closes a minute after its end.",
                        late_records_counted,
                    ),
                    Misconception(
                        "record in time dropped",
                        "A ticket came out of order, and less than a minute after its window's end, and is missing. "
                        "The task allows a minute of grace.",
                        lambda outcome: any(
                            moment.missing and moment.topic == "tickets-by-minute" and not moment.actual
                            for moment in outcome.differing
                        ),
                    ),
                ),
            ),
            (
                "One stream, grouped once, and two counts of it: a grouped stream can be used twice.",
                "The one is count(...), the other windowed_by(...).count(). Each goes to its own topic.",
                'grouped.windowed_by(TimeWindows.of_size_and_grace("1 minute", "1 minute")).count()',
            ),
        ),
    ),
)
