"""The programs of the vectors `windows-*`."""

from pyspark.sql import functions as F

from streamskit import (
    BufferConfig,
    CogroupedKStream,
    EmitStrategy,
    Materialized,
    Serdes,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    UnlimitedWindows,
)
from streamskit.api.windows import AnyWindows
from tests.conformance.registry import SETTINGS, program

SETTINGS |= {"windows-hopping-count-cached": {"cache": True}}

NO_GRACE = TimeWindows.of_size_with_no_grace("100 ms")
TUMBLING = TimeWindows.of_size_and_grace("100 ms", "50 ms")
SLIDING = SlidingWindows.of_time_difference_and_grace("100 ms", "50 ms")
SESSIONS = SessionWindows.of_inactivity_gap_and_grace("100 ms", "50 ms")
LONG_SESSIONS = SessionWindows.of_inactivity_gap_and_grace("100 ms", "1 second")


def count(builder: StreamsBuilder, windows: AnyWindows, materialized: str | Materialized) -> None:
    builder.stream("in").group_by_key().windowed_by(windows).count(materialized).to_stream().to("out")


def count_on_close(builder: StreamsBuilder, windows: AnyWindows, materialized: str | Materialized) -> None:
    windowed = builder.stream("in").group_by_key().windowed_by(windows)
    windowed.emit_strategy(EmitStrategy.on_window_close()).count(materialized).to_stream().to("out")


def count_suppressed(builder: StreamsBuilder, windows: AnyWindows) -> None:
    counts = builder.stream("in").group_by_key().windowed_by(windows).count("counts")
    counts.suppress(Suppressed.until_window_closes()).to_stream().to("out")


# ---- tumbling and hopping windows ------------------------------------------------------------------------------------


@program
def windows_tumbling_count(builder: StreamsBuilder) -> None:
    count(builder, NO_GRACE, "counts")


@program
def windows_unlimited_count(builder: StreamsBuilder) -> None:
    count(builder, UnlimitedWindows.of().start_on(1000), "counts")


@program
def windows_hopping_count(builder: StreamsBuilder) -> None:
    windows = TimeWindows.of_size_and_grace("100 ms", "20 ms").advance_by("40 ms")
    count(builder, windows, Materialized("counts", retention="1 second"))


@program
def windows_group_by_count(builder: StreamsBuilder) -> None:
    (
        builder.stream("in")
        .group_by(lambda v: v, name="by-value")
        .windowed_by(NO_GRACE)
        .count("counts")
        .to_stream()
        .to("out")
    )


@program
def windows_tumbling_reduce(builder: StreamsBuilder) -> None:
    (
        builder.stream("in", value=Serdes.long())
        .group_by_key()
        .windowed_by(TimeWindows.of_size_and_grace("100 ms", "1 second"))
        .reduce(lambda highest, value: None if value < 0 else max(highest, value), "max")
        .to_stream()
        .to("out")
    )


@program
def windows_hopping_trade_stats(builder: StreamsBuilder) -> None:
    trade = Serdes.json("type string, ticker string, price double, size int")
    (
        builder.stream("trades", value=trade)
        .group_by_key()
        .windowed_by(TimeWindows.of_size_with_no_grace("5 seconds").advance_by("1 second"))
        .aggregate(
            lambda v: F.struct(F.count("*").alias("count"), F.sum(v.price).alias("sum"), F.min(v.price).alias("min")),
            Materialized("trade-stats", retention="1 hour"),
        )
        .to_stream()
        .map_values(lambda v: F.struct(v["count"], v["sum"], v["min"], (v["sum"] / v["count"]).alias("avg")))
        .to("stats")
    )


@program
def windows_tumbling_suppress(builder: StreamsBuilder) -> None:
    count_suppressed(builder, TUMBLING)


@program
def windows_tumbling_emit_on_close(builder: StreamsBuilder) -> None:
    count_on_close(builder, TUMBLING, Materialized("counts", retention="2 seconds"))


@program
def windows_tumbling_emit_on_close_default_retention(builder: StreamsBuilder) -> None:
    count_on_close(builder, TUMBLING, "counts")


@program
def windows_tumbling_emit_on_close_throttled(builder: StreamsBuilder) -> None:
    count_on_close(builder, NO_GRACE, Materialized("counts", retention="5 seconds"))


@program
def windows_hopping_count_cached(builder: StreamsBuilder) -> None:
    windows = TimeWindows.of_size_and_grace("100 ms", "1 second").advance_by("50 ms")
    words = builder.stream("in").flat_map_values(lambda v: F.split(v, " "))
    words.group_by_key().windowed_by(windows).count("counts").to_stream().to("out")


@program
def windows_tumbling_suppress_full(builder: StreamsBuilder) -> None:
    counts = builder.stream("in").group_by_key().windowed_by(NO_GRACE).count("counts")
    full = BufferConfig.max_records(2).shut_down_when_full()
    counts.suppress(Suppressed.until_window_closes(full)).to_stream().to("out")


@program
def windows_tumbling_suppress_time_limit(builder: StreamsBuilder) -> None:
    windows = TimeWindows.of_size_and_grace("100 ms", "1 second")
    counts = builder.stream("in").group_by_key().windowed_by(windows).count("counts")
    few = BufferConfig.max_records(3).emit_early_when_full()
    counts.suppress(Suppressed.until_time_limit("60 ms", few)).to_stream().to("out")


# ---- sliding windows -------------------------------------------------------------------------------------------------


@program
def windows_sliding_count(builder: StreamsBuilder) -> None:
    windows = SlidingWindows.of_time_difference_with_no_grace("100 ms")
    count(builder, windows, Materialized("counts", retention="10 seconds"))


@program
def windows_sliding_suppress(builder: StreamsBuilder) -> None:
    count_suppressed(builder, SLIDING)


@program
def windows_sliding_emit_on_close(builder: StreamsBuilder) -> None:
    count_on_close(builder, SLIDING, Materialized("counts", retention="5 seconds"))


@program
def windows_sliding_reversed(builder: StreamsBuilder) -> None:
    windows = SlidingWindows.of_time_difference_and_grace("50 ms", "1 second")
    lists = builder.stream("in").group_by_key().windowed_by(windows)
    materialized = Materialized("lists", retention="10 seconds", value=Serdes.json("array<string>"))
    lists.aggregate(list, lambda key, value, values: [*values, value], materialized).to_stream().to("out")


# ---- sessions --------------------------------------------------------------------------------------------------------


@program
def windows_session_count(builder: StreamsBuilder) -> None:
    count(builder, LONG_SESSIONS, "sessions")


@program
def windows_session_aggregate(builder: StreamsBuilder) -> None:
    (
        builder.stream("in")
        .group_by_key()
        .windowed_by(LONG_SESSIONS)
        .aggregate(
            list,
            lambda key, value, visits: [*visits, value],
            "visits",
            merger=lambda key, one, other: one + other,
            value=Serdes.json("array<string>"),
        )
        .to_stream()
        .to("out")
    )


@program
def windows_session_emit_on_close(builder: StreamsBuilder) -> None:
    count_on_close(builder, SESSIONS, Materialized("sessions", retention="5 seconds"))


@program
def windows_session_emit_on_close_default_retention(builder: StreamsBuilder) -> None:
    count_on_close(builder, SESSIONS, "sessions")


@program
def windows_session_reduce_nulls(builder: StreamsBuilder) -> None:
    def joined(one: str | None, two: str | None) -> str:
        return f"{'null' if one is None else one}|{'null' if two is None else two}"

    windows = SessionWindows.of_inactivity_gap_and_grace("100 ms", "1 second")
    builder.stream("in").group_by_key().windowed_by(windows).reduce(joined, "texts").to_stream().to("out")


# ---- several streams -------------------------------------------------------------------------------------------------

LISTS = Serdes.json("array<string>")


def clicks_and_buys(builder: StreamsBuilder) -> CogroupedKStream:
    def listed(key: str, value: object, values: list[object]) -> list[object]:
        return [*values, value]

    clicks = builder.stream("clicks").group_by_key()
    buys = builder.stream("buys", value=Serdes.long()).group_by_key()
    return clicks.cogroup(listed).cogroup(buys, listed)


@program
def windows_cogroup_tumbling(builder: StreamsBuilder) -> None:
    clicks_and_buys(builder).windowed_by(TUMBLING).aggregate(list, "lists", value=LISTS).to_stream().to("out")


@program
def windows_cogroup_session(builder: StreamsBuilder) -> None:
    windows = SessionWindows.of_inactivity_gap_and_grace("50 ms", "50 ms")
    sessions = clicks_and_buys(builder).windowed_by(windows)
    lists = sessions.aggregate(list, "lists", merger=lambda key, one, two: one + two, value=LISTS)
    lists.to_stream().to("out")
