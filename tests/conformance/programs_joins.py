"""The programs of the vectors `joins-*`."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit import JoinWindows, Materialized, Serdes, StreamsBuilder
from tests.conformance.registry import program

NO_GRACE = JoinWindows.of_time_difference_with_no_grace("100 ms")
ORDER = Serdes.json("id string, customer string")


def plus(left: Column, right: Column) -> Column:
    """Join two texts as Java does, where a missing one reads null."""
    return F.concat_ws("+", F.coalesce(left, F.lit("null")), F.coalesce(right, F.lit("null")))


# ---- stream and stream -----------------------------------------------------------------------------------------------


@program
def joins_stream_stream_inner(builder: StreamsBuilder) -> None:
    builder.stream("left").join(builder.stream("right"), plus, NO_GRACE).to("out")


@program
def joins_stream_stream_asymmetric(builder: StreamsBuilder) -> None:
    builder.stream("left").join(builder.stream("right"), plus, NO_GRACE.before("20 ms")).to("out")


@program
def joins_stream_stream_inner_grace(builder: StreamsBuilder) -> None:
    windows = JoinWindows.of_time_difference_and_grace("100 ms", "150 ms")
    builder.stream("left").join(builder.stream("right"), plus, windows).to("out")


@program
def joins_stream_stream_inner_retention(builder: StreamsBuilder) -> None:
    windows = JoinWindows.of_time_difference_and_grace("100 ms", "50 ms")
    builder.stream("left").join(builder.stream("right"), plus, windows).to("out")


@program
def joins_stream_stream_left(builder: StreamsBuilder) -> None:
    builder.stream("left").left_join(builder.stream("right"), plus, NO_GRACE).to("out")


@program
def joins_stream_stream_left_throttled(builder: StreamsBuilder) -> None:
    builder.stream("left").left_join(builder.stream("right"), plus, NO_GRACE).to("out")


@program
def joins_stream_stream_outer_asymmetric(builder: StreamsBuilder) -> None:
    builder.stream("left").outer_join(builder.stream("right"), plus, NO_GRACE.before("20 ms")).to("out")


@program
def joins_stream_stream_outer_grace(builder: StreamsBuilder) -> None:
    windows = JoinWindows.of_time_difference_and_grace("100 ms", "150 ms")
    builder.stream("left").outer_join(builder.stream("right"), plus, windows).to("out")


# ---- stream and table ------------------------------------------------------------------------------------------------


@program
def joins_stream_table_inner(builder: StreamsBuilder) -> None:
    builder.stream("stream").join(builder.table("table"), plus).to("out")


@program
def joins_stream_table_left(builder: StreamsBuilder) -> None:
    builder.stream("stream").left_join(builder.table("table"), plus).to("out")


@program
def joins_stream_table_versioned(builder: StreamsBuilder) -> None:
    stream = builder.stream("stream")
    table = builder.table("table", materialized=Materialized.versioned("versions", "100 ms"))
    stream.left_join(table, plus).to("out")


@program
def joins_stream_table_grace(builder: StreamsBuilder) -> None:
    stream = builder.stream("stream")
    table = builder.table("table", materialized=Materialized.versioned("versions", "1 second"))
    stream.join(table, plus, grace="50 ms", name="enrich").to("out")


@program
def joins_stream_table_rekeyed_inner(builder: StreamsBuilder) -> None:
    customers = builder.table("customers")
    (
        builder.stream("orders", value=ORDER)
        .select_key(lambda v: v.customer)
        .join(customers, lambda order, name: F.concat(order.id, F.lit(":"), name))
        .to("out")
    )


@program
def joins_stream_global_inner(builder: StreamsBuilder) -> None:
    countries = builder.global_table("global", materialized="countries")
    (
        builder.stream("stream", value=Serdes.json("id long, country string"))
        .join(
            countries,
            lambda v, country: F.concat(v.id.cast("string"), F.lit("@"), country),
            key_selector=lambda k, v: v.country,
        )
        .to("out")
    )


# ---- table and table -------------------------------------------------------------------------------------------------


@program
def joins_table_table_inner(builder: StreamsBuilder) -> None:
    builder.table("left").join(builder.table("right"), plus, materialized="joined").to_stream().to("out")


@program
def joins_table_table_not_materialized(builder: StreamsBuilder) -> None:
    builder.table("left").join(builder.table("right"), plus).to_stream().to("out")


@program
def joins_table_table_outer(builder: StreamsBuilder) -> None:
    builder.table("left").outer_join(builder.table("right"), plus, materialized="joined").to_stream().to("out")


@program
def joins_table_table_foreign_key(builder: StreamsBuilder) -> None:
    orders = builder.table("orders", value=Serdes.json("customer string, total long"))
    customers = builder.table("customers")
    (
        orders.join(
            customers,
            lambda order, name: F.concat(order.total.cast("string"), F.lit("/"), name),
            foreign_key=lambda order: order.customer,
            materialized="joined",
        )
        .to_stream()
        .to("out")
    )
