"""Programs whose descriptions were recorded from Kafka Streams 4.1.1, to pin down how each operator is named."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit import (
    JoinWindows,
    Materialized,
    Processor,
    Record,
    Serdes,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
)
from tests.conformance.registry import Program

DESCRIBED: dict[str, Program] = {}

JOIN = JoinWindows.of_time_difference_with_no_grace("100 ms")
TUMBLING = TimeWindows.of_size_with_no_grace("10 ms")
SLIDING = SlidingWindows.of_time_difference_with_no_grace("10 ms")
SESSIONS = SessionWindows.of_inactivity_gap_with_no_grace("10 ms")
TEXT = Serdes.string()
UNNAMED = Materialized()


def described(function: Program) -> Program:
    """Register a program under the name of its recorded description."""
    DESCRIBED[function.__name__.replace("_", "-")] = function
    return function


def always(value: Column) -> Column:
    return F.lit(True)


def same(value: Column) -> Column:
    return value


def by_value(key: Column, value: Column) -> Column:
    return value


def pair(key: Column, value: Column) -> tuple[Column, Column]:
    return key, value


def concat(one: Column, other: Column) -> Column:
    return F.concat(one, other)


def empty() -> str:
    return ""


def last(aggregate: str, value: str) -> str:
    return value


def fold(key: str, value: str, aggregate: str) -> str:
    return aggregate


def merger(key: str, one: str, other: str) -> str:
    return one


@described
def named_stateless(builder: StreamsBuilder) -> None:
    stream = builder.stream("in", name="src")
    stream.filter(always, name="f").map_values(same, name="mv").map(pair, name="m").select_key(
        by_value, name="sk"
    ).peek(lambda k, v: None, name="pk").to("out", name="snk")
    stream.filter_not(always).merge(builder.stream("x"), name="mrg").merge(stream).to("o2")
    stream.print()
    stream.foreach(lambda k, v: None)


@described
def split(builder: StreamsBuilder) -> None:
    branches = builder.stream("in").split().branch(always).branch(always).branch(always, name="x").default_branch()
    for name in (
        "KSTREAM-BRANCH-00000000011",
        "KSTREAM-BRANCH-00000000012",
        "KSTREAM-BRANCH-0000000001x",
        "KSTREAM-BRANCH-00000000010",
    ):
        branches[name].map_values(same).to("o" + name[-1])


@described
def split5(builder: StreamsBuilder) -> None:
    split = builder.stream("in").split("p-")
    for name in "abcde":
        split.branch(always, name=name)
    branches = split.no_default_branch()
    branches["p-c"].map_values(same).map_values(same).to("oc")
    branches["p-e"].map_values(same).to("oe")
    branches["p-a"].to("oa")


@described
def repartition(builder: StreamsBuilder) -> None:
    builder.stream("in").repartition().to("o")
    builder.stream("in2").repartition("rep", partitions=3).group_by_key().count().to_stream().to("c")


@described
def group_unnamed(builder: StreamsBuilder) -> None:
    grouped = builder.stream("in").group_by(by_value)
    grouped.count().to_stream().to("a")
    grouped.reduce(last).to_stream().to("b")
    grouped.aggregate(empty, fold, "st", value=TEXT).to_stream().to("c")


@described
def group_named_shared(builder: StreamsBuilder) -> None:
    grouped = builder.stream("in").group_by(by_value, name="g")
    grouped.count().to_stream().to("a")
    builder.stream("other").group_by_key().count(name="cnt").to_stream(name="ts").to("d")
    grouped.reduce(last).to_stream().to("b")
    grouped.windowed_by(TUMBLING).aggregate(empty, fold, "st", value=TEXT).to_stream().to("c")


@described
def count_materialized_unnamed(builder: StreamsBuilder) -> None:
    builder.stream("in").group_by_key().count(UNNAMED).to_stream().to("a")
    builder.stream("in2").group_by_key().windowed_by(SESSIONS).reduce(last).to_stream().to("b")
    builder.stream("in3").select_key(by_value).group_by_key().windowed_by(SLIDING).count().to_stream().to("c")
    builder.stream("in4").map(pair).group_by_key("gg").windowed_by(SLIDING).aggregate(
        empty, fold, value=TEXT
    ).to_stream().to("d")


@described
def cogroup(builder: StreamsBuilder) -> None:
    a1 = builder.stream("a").group_by_key()
    b1 = builder.stream("b").group_by(by_value)
    c1 = builder.stream("c").group_by(by_value, name="cg")
    a1.cogroup(fold).cogroup(b1, fold).cogroup(c1, fold).aggregate(empty, "co", value=TEXT).to_stream().to("out")


@described
def cogroup_named(builder: StreamsBuilder) -> None:
    a1 = builder.stream("a").group_by_key()
    b1 = builder.stream("b").group_by_key()
    a1.cogroup(fold).cogroup(b1, fold).windowed_by(TUMBLING).aggregate(
        empty, UNNAMED, name="cg", value=TEXT
    ).to_stream().to("out")


@described
def cogroup_unnamed_session(builder: StreamsBuilder) -> None:
    a1 = builder.stream("a").group_by_key()
    b1 = builder.stream("b").group_by_key()
    a1.cogroup(fold).cogroup(b1, fold).windowed_by(SESSIONS).aggregate(empty, merger=merger, value=TEXT).filter(
        always
    ).to_stream().to("out")


@described
def cogroup_one(builder: StreamsBuilder) -> None:
    builder.stream("a").group_by_key().cogroup(fold).aggregate(empty, value=TEXT).join(
        builder.table("t"), concat
    ).to_stream().to("o")


@described
def ss_named(builder: StreamsBuilder) -> None:
    builder.stream("l").join(builder.stream("r"), concat, JOIN, name="j").to("o")


@described
def ss_left_named_store(builder: StreamsBuilder) -> None:
    builder.stream("l").left_join(builder.stream("r"), concat, JOIN, name="j", store_name="s").to("o")


@described
def ss_outer_named_store(builder: StreamsBuilder) -> None:
    builder.stream("l").outer_join(builder.stream("r"), concat, JOIN, store_name="s").to("o")


@described
def ss_rekeyed(builder: StreamsBuilder) -> None:
    builder.stream("l").select_key(by_value).join(builder.stream("r").map(pair).map_values(same), concat, JOIN).to("o")


@described
def ss_rekeyed_named(builder: StreamsBuilder) -> None:
    builder.stream("l").select_key(by_value).outer_join(builder.stream("r").map(pair), concat, JOIN, name="j").to("o")


@described
def ss_rekeyed_twice(builder: StreamsBuilder) -> None:
    left = builder.stream("l").select_key(by_value)
    right = builder.stream("r")
    left.join(right, concat, JOIN).to("o")
    left.left_join(right, concat, JOIN).to("p")
    left.join(builder.table("t"), concat).to("q")
    left.join(builder.table("t2"), concat, name="nm").to("q")


@described
def ss_self(builder: StreamsBuilder) -> None:
    left = builder.stream("l")
    left.join(left, concat, JOIN).to("o")


@described
def ss_chain(builder: StreamsBuilder) -> None:
    builder.stream("l").join(builder.stream("r"), concat, JOIN).left_join(
        builder.stream("x"), concat, JOIN
    ).group_by_key().count().to_stream().to("o")


@described
def st_rekeyed_left_named(builder: StreamsBuilder) -> None:
    table = builder.table("t")
    builder.stream("s").select_key(by_value, name="key").left_join(table, concat, name="jn").to("o")


@described
def st_rekeyed_left(builder: StreamsBuilder) -> None:
    table = builder.table("t")
    builder.stream("s").select_key(by_value, name="key").map_values(same).left_join(table, concat).to("o")


@described
def st_filtered_table(builder: StreamsBuilder) -> None:
    table = builder.table("t").filter(always).map_values(same)
    builder.stream("s").join(table, concat).to("o")


@described
def st_materialized_filter(builder: StreamsBuilder) -> None:
    table = builder.table("t").filter(always, "flt").map_values(same)
    builder.stream("s").join(table, concat).to("o")


@described
def st_agg_table(builder: StreamsBuilder) -> None:
    table = builder.stream("x").group_by_key().reduce(last)
    builder.stream("s").join(table, concat).to("o")


@described
def st_joined_table(builder: StreamsBuilder) -> None:
    table = builder.table("x").join(builder.table("y"), concat)
    builder.stream("s").left_join(table, concat).to("o")


@described
def st_suppressed(builder: StreamsBuilder) -> None:
    table = builder.table("x").suppress(Suppressed.until_time_limit(10))
    builder.stream("s").left_join(table, concat).to("o")


@described
def global_left_named(builder: StreamsBuilder) -> None:
    grouped = builder.global_table("g")
    builder.stream("s").left_join(grouped, concat, key_selector=by_value, name="gj").to("o")
    builder.stream("s2").join(grouped, concat, key_selector=by_value).group_by_key().count().to_stream().to("c")


@described
def global_middle(builder: StreamsBuilder) -> None:
    builder.stream("s").to("o")
    grouped = builder.global_table("g", name="gname")
    builder.stream("s2").join(grouped, concat, key_selector=by_value).to("p")
    builder.global_table("h", materialized="hh")
    builder.stream("s3").to("q")


@described
def tt_left_named(builder: StreamsBuilder) -> None:
    builder.table("l").left_join(builder.table("r"), concat, name="tj", materialized="m").to_stream().to("o")


@described
def tt_mat_unnamed(builder: StreamsBuilder) -> None:
    builder.table("l").left_join(builder.table("r"), concat, materialized=UNNAMED).to_stream().to("o")


@described
def tt_chain(builder: StreamsBuilder) -> None:
    builder.table("l").join(builder.table("r"), concat).outer_join(builder.table("x").map_values(same), concat).filter(
        always
    ).to_stream().to("o")


@described
def tt_self(builder: StreamsBuilder) -> None:
    table = builder.table("l")
    table.join(table.map_values(same), concat).to_stream().to("o")


@described
def fk_left(builder: StreamsBuilder) -> None:
    builder.table("l").left_join(builder.table("r"), concat, foreign_key=same).to_stream().to("o")


@described
def fk_named_mat(builder: StreamsBuilder) -> None:
    builder.table("l").join(builder.table("r"), concat, foreign_key=same, name="fk", materialized="m").to_stream().to(
        "o"
    )


@described
def fk_then_join(builder: StreamsBuilder) -> None:
    table = builder.table("l").map_values(same).join(builder.table("r").filter(always), concat, foreign_key=same)
    builder.stream("s").join(table, concat).to("o")


@described
def fk_agg(builder: StreamsBuilder) -> None:
    table = builder.stream("x").group_by_key().reduce(last, "rr")
    builder.table("l").join(table, concat, foreign_key=same).group_by(pair).count().to_stream().to("o")


@described
def table_ops(builder: StreamsBuilder) -> None:
    table = builder.table("in", materialized="tm", name="tsrc")
    table.filter_not(always, name="fn").map_values(same, "mvs", name="mv").to_stream(name="ts").to("o")
    table.filter(always, UNNAMED).map_values(same, UNNAMED).to_stream(by_value, name="tsk").to("p")


@described
def table_group(builder: StreamsBuilder) -> None:
    grouped = builder.table("in").group_by(pair)
    grouped.count().to_stream().to("a")
    grouped.reduce(last, last).to_stream().to("b")
    grouped.aggregate(empty, fold, fold, "ags", value=TEXT, name="ag").to_stream().to("c")


@described
def table_group_named(builder: StreamsBuilder) -> None:
    grouped = builder.table("in").map_values(same).group_by(pair, name="tg")
    grouped.count(name="c1").to_stream().to("a")
    builder.stream("oth").to("y")
    grouped.reduce(last, last, "rs").to_stream().to("b")


@described
def to_table(builder: StreamsBuilder) -> None:
    builder.stream("in").to_table().to_stream().to("a")
    builder.stream("in2").select_key(by_value).to_table(name="tt").join(builder.table("z"), concat).to_stream().to("b")
    builder.stream("in3").map(pair).to_table("m3").group_by(pair).count().to_stream().to("c")
    builder.stream("in4").map(pair).to_table(UNNAMED).to_stream().to("d")


@described
def suppress_named(builder: StreamsBuilder) -> None:
    builder.stream("in").group_by_key().windowed_by(TUMBLING).count().map_values(same).suppress(
        Suppressed.until_window_closes().with_name("sup")
    ).to_stream().to("o")


@described
def same_topic_twice(builder: StreamsBuilder) -> None:
    builder.stream("in").map_values(same).to("a")
    builder.stream("oo").to("z")
    builder.stream("in").filter(always).to("b")


@described
def merge_rekeyed(builder: StreamsBuilder) -> None:
    builder.stream("a").select_key(by_value).merge(builder.stream("b")).group_by_key().count().to_stream().to("o")


@described
def split_rekeyed(builder: StreamsBuilder) -> None:
    builder.stream("a").select_key(by_value).split().branch(
        always, chain=lambda branch: branch.group_by_key().count().to_stream().to("x")
    ).branch(always, chain=lambda branch: branch.map_values(same), name="fn").default_branch(name="dd")[
        "KSTREAM-BRANCH-0000000002fn"
    ].to("y")


@described
def diamond(builder: StreamsBuilder) -> None:
    stream = builder.stream("in")
    x = stream.filter(always)
    y = stream.map_values(same)
    z = stream.flat_map_values(lambda v: F.array(v))
    x.merge(y).merge(z).merge(x).to("o")
    for number in range(1, 9):
        stream.filter(always).to(f"t{number}")


@described
def many_children(builder: StreamsBuilder) -> None:
    stream = builder.stream("in")
    for number in range(1, 15):
        chain = stream.filter(always)
        for _ in range(number * 7 % 5):
            chain = chain.map_values(same)
        chain.to(f"t{number}")


@described
def fan_in(builder: StreamsBuilder) -> None:
    stream = builder.stream("in0")
    for number in range(1, 10):
        chain = builder.stream(f"in{number}")
        for _ in range(number * 3 % 4):
            chain = chain.map_values(same)
        stream = stream.merge(chain)
    stream.group_by_key().count().to_stream().to("o")


@described
def multi_topics(builder: StreamsBuilder) -> None:
    builder.stream(
        "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu"
    ).to("o")


class Forwarding(Processor):
    def process(self, record: Record) -> None:
        self.context.forward(record)


@described
def stores_in_one_bucket(builder: StreamsBuilder) -> None:
    """Stores whose names have one place in a `HashSet`, which lists them in the order in which they were connected."""
    quotes = builder.table("t", materialized=Materialized.versioned("quotes", "1 second"))
    stream = builder.stream("s")
    stream.join(quotes, concat, grace="50 ms", name="enrich").to("o")
    builder.table("u", materialized="utab0")
    builder.add_state_store(Stores.persistent_key_value_store("ukv0", TEXT, TEXT))
    stream.process(Forwarding, stores=["ukv0", "utab0"]).to("p")
    stream.process(Forwarding, stores=["utab0", "ukv0"]).to("q")
