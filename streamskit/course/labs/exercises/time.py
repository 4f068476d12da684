"""The exercises of lab 09: where a record's time comes from, how far time has come, and what is late."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit.api.timestamp_extractor import TimestampExtractor
from streamskit.api.windows import TimeWindows
from streamskit.course.datasets.event_time import at
from streamskit.course.labs.exercise import Runs, Says
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.misconceptions import stopped
from streamskit.course.labs.recording import Costume, Recording
from streamskit.dsl.builder import StreamsBuilder
from streamskit.serdes import Serdes
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


# ---- answers ---------------------------------------------------------------------------------------------------------

Answer = Callable[[StreamsBuilder], None]
ORDER = Serdes.json("order long, time long")


def timed(timestamps: TimestampExtractor | None) -> Answer:
    """Return the answer that reads tickets with these timestamps."""
    return lambda builder: builder.stream("tickets", timestamps=timestamps).to("valid-tickets")


def uploaded(timestamps: TimestampExtractor | None) -> Answer:
    """Return the answer that reads uploads with these timestamps."""
    return lambda builder: builder.stream("uploads", value=ORDER, timestamps=timestamps).to("orders")


def by_value(
    invalid: str = "skip", missing: str = "partition time", time: Callable[[Column], Column] = lambda v: v.time
) -> TimestampExtractor:
    """Return the extractor of an order's own time, or of another."""
    return TimestampExtractor.of(time, invalid=invalid, missing=missing)


def per_minute(grace: str = "0 seconds", filtered: str = "before") -> Answer:
    """Return the answer that counts tickets; heartbeats are left out "before" the windows, "after" them or "never"."""

    def answer(builder: StreamsBuilder) -> None:
        tickets = builder.stream("tickets")
        tickets = tickets.filter(lambda v: v != "heartbeat") if filtered == "before" else tickets
        windows = TimeWindows.of_size_and_grace("1 minute", grace)
        counts = tickets.group_by_key().windowed_by(windows).count().to_stream()
        (counts.filter(lambda v: v > 0) if filtered == "after" else counts).to("tickets-per-minute")

    return answer


def counted_twice(grace: str = "1 minute", all_in: TimeWindows | None = None) -> Answer:
    """Return the answer that counts tickets by the minute, and all of them in windows of some kind or in none."""

    def answer(builder: StreamsBuilder) -> None:
        grouped = builder.stream("tickets").group_by_key()
        whole: Any = grouped.windowed_by(all_in) if all_in else grouped
        whole.count("tickets-in-all").to_stream().to("tickets-in-all")
        windows = TimeWindows.of_size_and_grace("1 minute", grace)
        grouped.windowed_by(windows).count().to_stream().to("tickets-by-minute")

    return answer


# ---- the lab ---------------------------------------------------------------------------------------------------------

LAB = lab(
    "09-time",
    valid_tickets=Runs(
        tickets_of_broken_clocks,
        wrong={
            "failing or guessing instead of skipping": [
                timed(None),
                timed(TimestampExtractor.fail_on_invalid()),
                timed(TimestampExtractor.use_partition_time_on_invalid()),
            ]
        },
        signs={"failing or guessing instead of skipping": stopped},
    ),
    sold_at=Runs(
        orders_by_their_own_time,
        wrong={
            "failing or guessing instead of skipping": uploaded(by_value("fail")),
            "arrival instead of event time": uploaded(None),
            "impossible time guessed": [
                uploaded(by_value(time=lambda v: F.abs(v.time))),
                uploaded(by_value(time=lambda v: F.when(v.time < 0, 0).otherwise(v.time))),
            ],
            "missing time skipped": uploaded(by_value(missing="skip")),
        },
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
        "The orders were piped one by one into a count in windows of ten minutes with five of grace, and those "
        "noted after which the driver had dropped one more.",
        wrong={
            "out of order taken for late": out_of_order(),
            "grace forgotten": late(0),
            "a stream time for each product": late(5, by_product=True),
        },
    ),
    tickets_per_minute=Runs(
        tickets_among_heartbeats,
        wrong={
            "heartbeats counted": [per_minute(filtered="never"), per_minute(filtered="after")],
            "late record counted": [per_minute("1 minute"), per_minute("1 day")],
        },
    ),
    tickets_counted_twice=Runs(
        two_counts,
        wrong={
            "windows where none are asked for": counted_twice(
                all_in=TimeWindows.of_size_and_grace("1 minute", "1 minute")
            ),
            "late record counted": counted_twice("1 day"),
            "record in time dropped": [counted_twice("0 seconds"), counted_twice("30 seconds")],
        },
    ),
)
