"""The programs of the vectors `joins-*`."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit import JoinWindows, Materialized, Serdes, StreamsBuilder
from tests.conformance.registry import program

NO_GRACE = JoinWindows.of_time_difference_with_no_grace("100 ms")
ORDER = Serdes.json("id string, customer string")
TOTAL = Serdes.json("customer string, total long")


def text(value: Column) -> Column:
    """Write a value as Java does, where a missing one reads null."""
    return F.coalesce(value.cast("string"), F.lit("null"))


def total_and_name(order: Column, name: Column) -> Column:
    """Join an order with its customer's name."""
    return F.concat(order.total.cast("string"), F.lit("/"), name)


def plus(left: Column, right: Column) -> Column:
    """Join two texts as Java does, where a missing one reads null."""
    return F.concat_ws("+", text(left), text(right))


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


@program
def joins_stream_stream_left_before_after_grace(builder: StreamsBuilder) -> None:
    windows = JoinWindows.of_time_difference_and_grace("100 ms", "50 ms").before("20 ms")
    builder.stream("left").left_join(builder.stream("right"), plus, windows).to("out")


@program
def joins_stream_stream_self_left(builder: StreamsBuilder) -> None:
    stream = builder.stream("in")
    stream.left_join(stream, plus, NO_GRACE).to("out")


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


def with_key(key: Column, left: Column, right: Column) -> Column:
    """Put the key before what `plus` makes."""
    return F.concat(text(key), F.lit(":"), plus(left, right))


@program
def joins_stream_table_left_grace(builder: StreamsBuilder) -> None:
    stream = builder.stream("stream")
    table = builder.table("table", materialized=Materialized.versioned("versions", "1 second"))
    stream.left_join(table, with_key, grace="50 ms", name="enrich").to("out")


@program
def joins_stream_table_left_grace_null_key(builder: StreamsBuilder) -> None:
    joins_stream_table_left_grace(builder)


@program
def joins_stream_table_own_count(builder: StreamsBuilder) -> None:
    stream = builder.stream("in")
    early = stream.filter(lambda v: F.lit(True))
    counts = stream.group_by_key().count("counts")
    stream.join(counts, lambda v, n: F.concat(v, F.lit(" is number "), n.cast("string"))).to("out")
    early.left_join(counts, lambda v, n: F.concat(v, F.lit(" after "), text(n))).to("before")


@program
def joins_stream_table_repartitioned_null_key(builder: StreamsBuilder) -> None:
    customers = builder.table("customers")
    orders = builder.stream("orders", value=ORDER).select_key(lambda v: v.customer).repartition("by-customer")
    orders.left_join(customers, lambda order, name: F.concat(order.id, F.lit(":"), text(name))).to("out")
    orders.group_by_key().count("n").to_stream().to("counts")


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


@program
def joins_stream_global_left_with_key(builder: StreamsBuilder) -> None:
    countries = builder.global_table("global", materialized="countries")
    (
        builder.stream("stream", value=Serdes.json("id long, country string"))
        .left_join(
            countries,
            lambda k, v, country: F.concat(text(k), F.lit(":"), text(v.id), F.lit("@"), text(country)),
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
    orders = builder.table("orders", value=TOTAL)
    customers = builder.table("customers")
    (
        orders.join(
            customers,
            total_and_name,
            foreign_key=lambda order: order.customer,
            materialized="joined",
        )
        .to_stream()
        .to("out")
    )


@program
def joins_table_table_filtered_left(builder: StreamsBuilder) -> None:
    left = builder.table("left")
    right = builder.table("right", value=Serdes.long()).filter(lambda v: v > 10)
    named = right.map_values(lambda v: F.concat(F.lit("n"), v.cast("string")))
    left.left_join(named, plus, materialized="joined").to_stream().to("out")


@program
def joins_table_table_versioned_left(builder: StreamsBuilder) -> None:
    left = builder.table("left", materialized=Materialized.versioned("lefts", "1 second"))
    right = builder.table("right", materialized=Materialized.versioned("rights", "1 second"))
    left.left_join(right, plus, materialized="joined").to_stream().to("out")


@program
def joins_table_table_foreign_key_versioned(builder: StreamsBuilder) -> None:
    kept = Materialized.versioned("order-versions", "1 second")
    orders = builder.table("orders", value=TOTAL, materialized=kept)
    customers = builder.table("customers", materialized=Materialized.versioned("customer-versions", "1 second"))
    (
        orders.left_join(
            customers,
            lambda order, name: total_and_name(order, text(name)),
            foreign_key=lambda order: order.customer,
            materialized="joined",
        )
        .to_stream()
        .to("out")
    )


@program
def joins_table_table_foreign_key_then_count(builder: StreamsBuilder) -> None:
    orders = builder.table("orders", value=TOTAL)
    cities = orders.join(
        builder.table("customers"),
        lambda order, city: city,
        foreign_key=lambda order: order.customer,
        materialized="cities",
    )
    cities.group_by(lambda k, city: (city, city), name="by-city").count("n").to_stream().to("out")
