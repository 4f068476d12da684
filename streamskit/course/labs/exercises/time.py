"""The exercises of lab 09: where a record's time comes from, how far time has come, and what is late."""

from collections import defaultdict
from typing import Any

from streamskit.api.windows import TimeWindows
from streamskit.course.datasets.event_time import at
from streamskit.course.labs.exercise import Runs, Says
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.misconceptions import stopped
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


# ---- the lab ---------------------------------------------------------------------------------------------------------

LAB = lab(
    "09-time",
    valid_tickets=Runs(
        tickets_of_broken_clocks,
        signs={"failing or guessing instead of skipping": stopped},
    ),
    sold_at=Runs(
        orders_by_their_own_time,
        signs={"failing or guessing instead of skipping": stopped},
    ),
    stream_time_after=Says(
        stream_times,
        "Stream time is the largest event time so far: each of your times was compared with the maximum of "
        "the times up to there.",
        wrong={
            "event time instead of stream time": tuple(TIMES),
            "the end known from the start": (max(TIMES),) * len(TIMES),
        },
    ),
    late_orders=Says(
        dropped_by_a_program,
        "The test driver got the orders one by one, with a count in windows of ten minutes and five minutes of "
        "grace: these are the orders that it dropped.",
        wrong={
            "out of order taken for late": out_of_order(),
            "grace forgotten": late(0),
            "a stream time for each product": late(5, by_product=True),
        },
    ),
    tickets_per_minute=Runs(
        tickets_among_heartbeats,
    ),
    tickets_counted_twice=Runs(
        two_counts,
    ),
)
