"""The programs of the recorded vectors, written with streamskit; each name is a file in `vectors/`."""

from collections.abc import Callable

from pyspark.sql import functions as F

from streamskit import Materialized, Serdes, StreamsBuilder, TimeWindows

Program = Callable[[StreamsBuilder], None]
PROGRAMS: dict[str, Program] = {}


def program(function: Program) -> Program:
    """Register a program under the name of its vector."""
    PROGRAMS[function.__name__.replace("_", "-")] = function
    return function


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
def windows_tumbling_count(builder: StreamsBuilder) -> None:
    (
        builder.stream("in")
        .group_by_key()
        .windowed_by(TimeWindows.of_size_with_no_grace("100 ms"))
        .count("counts")
        .to_stream()
        .to("out")
    )


@program
def windows_hopping_count(builder: StreamsBuilder) -> None:
    (
        builder.stream("in")
        .group_by_key()
        .windowed_by(TimeWindows.of_size_and_grace("100 ms", "20 ms").advance_by("40 ms"))
        .count(Materialized("counts", retention="1 second"))
        .to_stream()
        .to("out")
    )


@program
def basic_group_by_key_count(builder: StreamsBuilder) -> None:
    builder.stream("in").group_by_key().count("counts").to_stream().to("out")


@program
def basic_filter(builder: StreamsBuilder) -> None:
    builder.stream("in", value=Serdes.long()).filter(lambda v: v > 10).to("out")


@program
def basic_map_values(builder: StreamsBuilder) -> None:
    builder.stream("in").map_values(lambda v: F.upper(v)).to("out")


@program
def time_filter_before_window(builder: StreamsBuilder) -> None:
    (
        builder.stream("in")
        .filter(lambda v: v != "tick")
        .group_by_key()
        .windowed_by(TimeWindows.of_size_with_no_grace("100 ms"))
        .count("counts")
        .to_stream()
        .to("out")
    )
