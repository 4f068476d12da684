"""What the steps of the DSL leave in the graph: nodes, serdes, stores, topics."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import JoinWindows, Materialized, Serdes, SessionWindows, SlidingWindows, StreamsBuilder, TimeWindows
from streamskit.serdes import SessionWindowedSerde, TimeWindowedSerde
from streamskit.topology import Topology
from streamskit.topology.description import is_global
from streamskit.topology.nodes import (
    Branch,
    CogroupAggregate,
    FlatMap,
    ForeignKeyStep,
    Node,
    RepartitionFilter,
    Sink,
    Source,
    TableAggregate,
)

pytestmark = [pytest.mark.columns, pytest.mark.usefixtures("spark")]

ORDER = Serdes.json("customer string, total long")


@pytest.fixture
def builder() -> StreamsBuilder:
    return StreamsBuilder()


def nodes(topology: Topology, kind: type[Node]) -> list[Any]:
    return [node for node in topology.nodes.values() if isinstance(node, kind)]


def concat(one: Any, other: Any) -> Any:
    return F.concat_ws("+", one, other)


# ---- serdes ----------------------------------------------------------------------------------------------------------


def test_serdes_follow_the_types_that_functions_make(builder: StreamsBuilder) -> None:
    orders = builder.stream("orders", value=ORDER)
    assert orders.map(lambda k, v: (v.total, v.customer))._node.key == Serdes.long()
    assert orders.select_key(lambda v: F.length(v.customer))._node.key == Serdes.integer()
    assert orders.flat_map_values(lambda v: F.array(v.total))._node.value == Serdes.long()
    pairs = orders.flat_map(lambda k, v: F.array(F.struct(v.total.alias("id"), k.alias("who"))))
    assert (pairs._node.key, pairs._node.value) == (Serdes.long(), Serdes.string())
    [node] = nodes(builder.build(), FlatMap)
    assert node.fields == ("id", "who")


@pytest.mark.parametrize(
    ("windows", "serde", "kind"),
    [
        (
            TimeWindows.of_size_with_no_grace("5 s").advance_by("1 s"),
            Serdes.time_windowed(Serdes.string(), 5000),
            "window",
        ),
        (SlidingWindows.of_time_difference_with_no_grace("3 s"), Serdes.time_windowed(Serdes.string(), 3000), "window"),
        (SessionWindows.of_inactivity_gap_with_no_grace("2 s"), Serdes.session_windowed(Serdes.string()), "session"),
    ],
)
def test_a_windowed_table_has_windowed_keys_and_its_store_plain_ones(
    builder: StreamsBuilder, windows: Any, serde: TimeWindowedSerde | SessionWindowedSerde, kind: str
) -> None:
    node = builder.stream("in").group_by_key().windowed_by(windows).count("n")._node
    [store] = node.stores
    assert node.key == serde
    assert (store.key, store.kind, store.windows, store.retention) == (
        Serdes.string(),
        kind,
        windows,
        windows.retention,
    )


def test_a_serde_that_was_given_is_used(builder: StreamsBuilder) -> None:
    class Shout(type(Serdes.string())):  # type: ignore[misc]
        """Text of another format."""

    shout = Shout()
    stream = builder.stream("in")
    stream.repartition("r", value=shout).to("out", key=shout)
    stream.group_by_key().reduce(lambda a, v: a, Materialized("m", value=shout))
    topology = builder.build()
    assert topology["r-repartition-sink"].value is shout
    assert topology["KSTREAM-SINK-0000000004"].key is shout
    assert topology.store("m").value is shout


# ---- stores ----------------------------------------------------------------------------------------------------------


def test_a_table_keeps_its_rows_only_when_a_later_step_looks_at_them(builder: StreamsBuilder) -> None:
    idle, filtered = builder.table("idle"), builder.table("filtered")
    idle.to_stream().to("a")
    assert not builder.build().stores
    joined = builder.stream("s").join(filtered.filter(lambda v: v != "").map_values(F.upper), concat)
    joined.to("b")
    topology = builder.build()
    [store] = topology.stores.values()
    assert store.name == "filtered-STATE-STORE-0000000003"
    assert (store.queryable, store.logged) == (False, True)


def test_a_store_with_a_name_is_queryable_and_may_keep_versions_or_no_changelog(builder: StreamsBuilder) -> None:
    builder.table("a", materialized="plain")
    builder.table("b", materialized=Materialized.versioned("versions", "1 minute"))
    builder.stream("c").group_by_key().count(Materialized("silent", logged=False))
    stores = builder.build().stores
    assert all(store.queryable for store in stores.values())
    assert (stores["versions"].kind, stores["versions"].retention) == ("versioned", 60_000)
    assert (stores["plain"].logged, stores["silent"].logged) == (True, False)


def test_a_global_tables_store_is_in_the_topology_and_has_no_changelog(builder: StreamsBuilder) -> None:
    countries = builder.global_table("countries", materialized="countries")
    builder.stream("s").join(countries, concat, key_selector=lambda k, v: v).to("out")
    topology = builder.build()
    assert not topology.store("countries").logged
    assert [is_global(group) for group in topology.sub_topologies()] == [True, False]


def test_the_sides_of_a_cogroup_share_a_store(builder: StreamsBuilder) -> None:
    one, two = builder.stream("a").group_by_key(), builder.stream("b", value=Serdes.long()).group_by_key()
    both = one.cogroup(lambda k, v, n: n + 1).cogroup(two, lambda k, v, n: n + v)
    both.aggregate(lambda: 0, "n", value=Serdes.long())
    topology = builder.build()
    first, second = nodes(topology, CogroupAggregate)
    assert first.store is second.store
    assert (first.side, second.side, first.group) == (0, 1, second.group)
    assert len(topology.sub_topologies()) == 1


def test_a_cogroup_adds_to_itself_and_to_the_windowed_one_that_was_made_of_it(builder: StreamsBuilder) -> None:
    one, two = builder.stream("a").group_by_key(), builder.stream("b").group_by_key()
    both = one.cogroup(lambda k, v, n: n + 1)
    windowed = both.windowed_by(TimeWindows.of_size_with_no_grace("5 seconds"))
    assert both.cogroup(two, lambda k, v, n: n + 2) is both
    windowed.aggregate(lambda: 0, "n", value=Serdes.long())
    assert [node.side for node in nodes(builder.build(), CogroupAggregate)] == [0, 1]


def test_all_aggregations_of_a_cogroup_share_one_repartition_topic(builder: StreamsBuilder) -> None:
    rekeyed = builder.stream("in").select_key(lambda v: v).group_by_key()
    both = rekeyed.cogroup(lambda k, v, n: n + 1)
    both.aggregate(lambda: 0, "one", value=Serdes.long())
    both.windowed_by(TimeWindows.of_size_with_no_grace("5 seconds")).aggregate(lambda: 0, "two", value=Serdes.long())
    rekeyed.cogroup(lambda k, v, n: n + 1).aggregate(lambda: 0, "three", value=Serdes.long())
    assert [sink.topic for sink in builder.build().sinks] == ["one-repartition", "three-repartition"]


def test_stores_of_one_hash_bucket_are_described_in_the_order_in_which_kafka_streams_connects_them(
    builder: StreamsBuilder,
) -> None:
    stream, windows = builder.stream("in"), JoinWindows.of_time_difference_with_no_grace(5)
    stream.outer_join(stream, concat, windows, name="both", store_name="os")
    assert "(stores: [os-outer-other-join-store, os-outer-shared-join-store])" in builder.build().describe()


# ---- topics of the application's own ---------------------------------------------------------------------------------


def test_a_changed_key_goes_through_a_repartition_topic_before_a_store(builder: StreamsBuilder) -> None:
    stream = builder.stream("in")
    stream.group_by_key().count()
    assert not nodes(builder.build(), RepartitionFilter)
    stream.select_key(lambda v: v).map_values(F.upper).filter(lambda v: v != "").group_by_key("again").count()
    topology = builder.build()
    sink = topology["again-repartition-sink"]
    assert isinstance(sink, Sink)
    assert (sink.topic, sink.internal, sink.partitions) == ("again-repartition", True, None)
    source = topology["again-repartition-source"]
    assert isinstance(source, Source)
    assert (source.topics, source.internal) == (("again-repartition",), True)


def test_a_repartition_keeps_null_keys_out_unless_a_left_or_outer_join_follows(builder: StreamsBuilder) -> None:
    table = builder.table("t")
    windows = JoinWindows.of_time_difference_with_no_grace("1 s")

    def rekeyed(topic: str) -> Any:
        return builder.stream(topic).select_key(lambda v: v)

    rekeyed("a").join(table, concat, name="inner")
    rekeyed("b").left_join(table, concat, name="left")
    rekeyed("c").outer_join(rekeyed("d").repartition("right").map_values(F.upper), concat, windows, name="outer")
    rekeyed("e").group_by_key("group").count()
    kept = {
        node.name.removesuffix("-repartition-filter"): node.null_keys
        for node in nodes(builder.build(), RepartitionFilter)
    }
    assert kept == {"inner": False, "left": True, "right": True, "outer-left": True, "group": False}


def test_a_grouped_table_sends_old_and_new_values(builder: StreamsBuilder) -> None:
    grouped = builder.table("t", value=ORDER).group_by(lambda k, v: (v.customer, v.total))
    grouped.reduce(lambda total, v: total + v, lambda total, v: total - v, "totals")
    topology = builder.build()
    [sink], [fold] = nodes(topology, Sink), nodes(topology, TableAggregate)
    assert (sink.topic, sink.changes, sink.internal) == ("totals-repartition", True, True)
    assert fold.initializer is None
    assert (fold.adder("key", 5, 10), fold.subtractor("key", 5, 10)) == (15, 5)


def test_the_topics_of_a_foreign_key_join_carry_bytes_under_the_keys_of_each_side(builder: StreamsBuilder) -> None:
    orders = builder.table("orders", key=Serdes.long(), value=ORDER)
    customers = builder.table("customers")
    orders.join(customers, lambda order, name: F.concat(name, order.customer), foreign_key=lambda v: v.customer)
    topology = builder.build()
    there, back = nodes(topology, Sink)
    assert (there.key, there.value) == (Serdes.string(), Serdes.byte_array())
    assert (back.key, back.value) == (Serdes.long(), Serdes.byte_array())
    steps = nodes(topology, ForeignKeyStep)
    assert [step.role for step in steps] == ["register", "subscribe", "answer", "notify", "resolve", "output"]
    assert len({id(step.join) for step in steps}) == 1
    assert len(topology.sub_topologies()) == 2


# ---- branches --------------------------------------------------------------------------------------------------------


def test_a_branch_knows_the_predicates_up_to_its_own(builder: StreamsBuilder) -> None:
    numbers = builder.stream("in", value=Serdes.long()).split("b-")
    branches = numbers.branch(lambda v: v > 10).branch(lambda v: v > 5, name="mid").default_branch()
    assert list(branches) == ["b-1", "b-mid", "b-0"]
    asked = [(node.index, len(node.predicates)) for node in nodes(builder.build(), Branch)]
    assert asked == [(0, 1), (1, 2), (-1, 2)]


def test_a_chained_branch_hands_back_what_its_function_returns(builder: StreamsBuilder) -> None:
    split = builder.stream("in").split("b-")
    branches = (
        split.branch(lambda v: v == "a", name="gone", chain=lambda branch: branch.to("a"))
        .branch(lambda v: v == "b", name="upper", chain=lambda branch: branch.map_values(F.upper))
        .no_default_branch()
    )
    assert list(branches) == ["b-upper"]
    assert branches["b-upper"]._node.name.startswith("KSTREAM-MAPVALUES")


def test_print_writes_each_record_with_a_label(builder: StreamsBuilder, capsys: pytest.CaptureFixture[str]) -> None:
    builder.stream("in").print("seen", name="printer")
    [action] = builder.build()["printer"].functions
    action("k", None)
    assert capsys.readouterr().out == "[seen]: k, None\n"


def test_print_writes_what_its_mapper_makes(builder: StreamsBuilder, capsys: pytest.CaptureFixture[str]) -> None:
    builder.stream("in").print("seen", name="printer", mapper=lambda key, value: f"{value} from {key}")
    [action] = builder.build()["printer"].functions
    action("k", None)
    assert capsys.readouterr().out == "[seen]: None from k\n"


def test_print_empties_its_file_and_adds_each_line_at_once(
    builder: StreamsBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "seen.txt").write_text("of an earlier run\n")
    monkeypatch.chdir(tmp_path)
    lines = builder.stream("in")
    lines.print("one", name="one", file="seen.txt")
    lines.print("other", name="other", file=tmp_path / "seen.txt", mapper=lambda key, value: value)
    topology = builder.build()
    [one], [other] = topology["one"].functions, topology["other"].functions
    monkeypatch.chdir("/")
    one("k", "größer")
    other("k", 3)
    assert (tmp_path / "seen.txt").read_text(encoding="utf-8") == "[one]: k, größer\n[other]: 3\n"
    assert capsys.readouterr().out == ""
