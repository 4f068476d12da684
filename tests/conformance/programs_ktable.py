"""The programs of the vectors `ktable-*`."""

from pyspark.sql import functions as F

from streamskit import (
    BufferConfig,
    KTable,
    Materialized,
    ProcessorContext,
    Serdes,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    ValueTransformerWithKey,
)
from tests.conformance.registry import program

CUSTOMER = Serdes.json("region string, amount long")


@program
def ktable_source(builder: StreamsBuilder) -> None:
    builder.table("in", materialized="rows").to_stream().to("out")


@program
def ktable_source_changelog(builder: StreamsBuilder) -> None:
    builder.table("in", materialized="rows")


@program
def ktable_global_store(builder: StreamsBuilder) -> None:
    builder.global_table("in", materialized="everything")


@program
def ktable_filter(builder: StreamsBuilder) -> None:
    builder.table("in", value=Serdes.long()).filter(lambda v: v > 10).to_stream().to("out")


@program
def ktable_filter_materialized(builder: StreamsBuilder) -> None:
    builder.table("in", value=Serdes.long()).filter(lambda v: v > 10, "rich").to_stream().to("out")


@program
def ktable_filter_then_count(builder: StreamsBuilder) -> None:
    (
        builder.table("in", value=Serdes.long())
        .filter(lambda v: v > 10)
        .group_by(lambda k, v: (F.lit("rich"), v))
        .count("n")
        .to_stream()
        .to("out")
    )


@program
def ktable_map_values(builder: StreamsBuilder) -> None:
    builder.table("in").map_values(lambda k, v: F.concat(k, F.lit("/"), v)).to_stream().to("out")


@program
def ktable_chain_materialized(builder: StreamsBuilder) -> None:
    doubled = builder.table("in", value=Serdes.long()).map_values(lambda v: v * 2, "doubled")
    doubled.filter(lambda v: v < 50, "small").to_stream().to("out")


@program
def ktable_to_stream_select_key(builder: StreamsBuilder) -> None:
    builder.table("in").to_stream(lambda v: F.coalesce(v, F.lit("gone"))).to("out")


@program
def ktable_to_table(builder: StreamsBuilder) -> None:
    builder.stream("in").to_table("rows").to_stream().to("out")


@program
def ktable_group_by_count(builder: StreamsBuilder) -> None:
    builder.table("in", value=CUSTOMER).group_by(lambda k, v: (v.region, v)).count("by-region").to_stream().to("out")


@program
def ktable_group_by_reduce(builder: StreamsBuilder) -> None:
    (
        builder.table("in", value=CUSTOMER)
        .group_by(lambda k, v: (v.region, v.amount))
        .reduce(lambda total, amount: total + amount, lambda total, amount: total - amount, "totals")
        .to_stream()
        .to("out")
    )


@program
def ktable_group_by_aggregate(builder: StreamsBuilder) -> None:
    (
        builder.table("in", value=CUSTOMER)
        .group_by(lambda k, v: (v.region, v))
        .aggregate(
            list,
            lambda region, v, operations: [*operations, f"+{v['amount']}"],
            lambda region, v, operations: [*operations, f"-{v['amount']}"],
            "ops",
            value=Serdes.json("array<string>"),
        )
        .to_stream()
        .to("out")
    )


@program
def ktable_suppress_time_limit(builder: StreamsBuilder) -> None:
    builder.table("in").suppress(Suppressed.until_time_limit("100 ms", BufferConfig.unbounded())).to_stream().to("out")


@program
def ktable_suppress_max_records(builder: StreamsBuilder) -> None:
    buffer = BufferConfig.max_records(2).emit_early_when_full()
    builder.table("in").suppress(Suppressed.until_time_limit("1 second", buffer)).to_stream().to("out")


@program
def ktable_versioned_source(builder: StreamsBuilder) -> None:
    table = builder.table("in", materialized=Materialized.versioned("versions", "100 ms"))
    table.to_stream().to("out")
    table.group_by(lambda k, v: (F.substring(v, 1, 1), v)).count("n").to_stream().to("counts")


def words(builder: StreamsBuilder) -> KTable:
    table = (
        builder.stream("in")
        .flat_map_values(lambda v: F.split(v, " "))
        .group_by_key()
        .aggregate(
            list,
            lambda key, word, words: None if word == "reset" else [*words, word],
            "words",
            value=Serdes.json("array<string>"),
        )
    )
    table.to_stream().to("out")
    return table


@program
def ktable_cache_off(builder: StreamsBuilder) -> None:
    words(builder)


@program
def ktable_cache_on(builder: StreamsBuilder) -> None:
    words(builder)


@program
def ktable_cache_small(builder: StreamsBuilder) -> None:
    ktable_cache_group_by(builder)


@program
def ktable_cache_group_by(builder: StreamsBuilder) -> None:
    by_size = words(builder).group_by(
        lambda k, v: (F.concat(F.lit("size-"), F.size(v).cast("string")), v), name="by-size"
    )
    by_size.count("n").to_stream().to("counts")


@program
def ktable_group_by_windowed(builder: StreamsBuilder) -> None:
    (
        builder.stream("in")
        .group_by_key()
        .windowed_by(TimeWindows.of_size_and_grace("100 ms", "1 second"))
        .count("per-window")
        .group_by(lambda k, n: (k.start.cast("string"), n), name="by-window")
        .reduce(lambda total, n: total + n, lambda total, n: total - n, "totals")
        .to_stream()
        .to("out")
    )


class Marker(ValueTransformerWithKey):
    """Puts the number of a row's updates and the time behind its value."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.updates = context.state_store("updates")

    def transform(self, key: str, value: str | None) -> str | None:
        number = (self.updates.get(key) or 0) + 1
        self.updates.put(key, number)
        if value == "drop":
            return None
        return f"{'null' if value is None else value}#{number}@{self.context.timestamp()}"


@program
def ktable_transform_values(builder: StreamsBuilder) -> None:
    builder.add_state_store(Stores.persistent_key_value_store("updates", Serdes.string(), Serdes.long()))
    builder.table("in").transform_values(Marker, ["updates"], "marked").to_stream().to("out")
