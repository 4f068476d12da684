"""Sources that read all topics with a matching name, and names that the library would make up."""

import re
from collections.abc import Callable

import pytest

from streamskit import Processor, Record, Serdes, Stores, StreamsBuilder, StreamsConfig, Topology, TopologyError

pytestmark = [pytest.mark.columns, pytest.mark.usefixtures("spark")]

STRICT = StreamsConfig("app", "broker:9092", ensure_explicit_internal_resource_naming=True)


class Pass(Processor):
    def process(self, record: Record) -> None:
        self.context.forward(record)


def test_two_streams_of_one_pattern_are_one_source() -> None:
    builder = StreamsBuilder()
    builder.stream(re.compile("a-.*")).to("one")
    builder.stream(re.compile("a-.*")).to("other")
    topology = builder.build()
    assert [source.topic_names for source in topology.sources] == [("a-.*",)]
    assert [source.reads_topic(topic) for source in topology.sources for topic in ("a-1", "b", "xa-1")] == [
        True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("read", "sentence"),
    [
        (lambda b: (b.stream("a-1"), b.stream(re.compile("a-.*"))), r"'a-\.\*' is already read by .* which reads a-1"),
        (lambda b: (b.stream(re.compile("a-.*")), b.table("a-1")), r"'a-1' is already read by .* the pattern 'a-\.\*'"),
        (lambda b: b.stream(re.compile("a-.*"), "b"), "the names of topics or one pattern, not both"),
        (lambda b: b.stream(re.compile("a", re.IGNORECASE)), "a pattern of topics has no flags"),
        (lambda b: b.stream("a", "a"), "topic 'a' is named twice"),
        (lambda b: (b.stream("a"), b.table("a")), "'a' is already read by KSTREAM-SOURCE-0000000000"),
        (lambda b: (b.global_table("a"), b.stream("a")), "topic 'a' into a global table or store, and"),
        (lambda b: (b.global_table("a-1"), b.stream(re.compile("a-.*"))), "topic 'a-1' into a global table or store"),
    ],
)
def test_a_topic_that_would_be_read_twice_is_refused(read: Callable[[StreamsBuilder], object], sentence: str) -> None:
    with pytest.raises(TopologyError, match=sentence):
        read(StreamsBuilder())


def test_names_that_the_library_made_up_are_refused_on_request() -> None:
    builder = StreamsBuilder(STRICT)
    builder.stream("in").group_by(lambda v: v).count().to_stream().to("out")
    with pytest.raises(TopologyError) as refused:
        builder.build()
    name = "KSTREAM-AGGREGATE-STATE-STORE-0000000002"
    assert f"changelog topics {name}-changelog; stores {name}; repartition topics {name}-repartition" in str(
        refused.value
    )


def test_names_of_ones_own_are_accepted_and_so_are_those_of_steps() -> None:
    builder = StreamsBuilder()
    builder.stream("in").filter(lambda v: v != "").group_by(lambda v: v, name="by-value").count("counts")
    builder.table("rows").to_stream().to("out")
    assert builder.build(STRICT).stores.keys() == {"counts"}


def test_what_a_foreign_key_join_keeps_for_itself_needs_no_name() -> None:
    builder = StreamsBuilder()
    left, right = (builder.table(name, materialized=name) for name in ("left", "right"))
    left.join(right, lambda one, other: other, foreign_key=lambda v: v, materialized="joined")
    assert "joined" in builder.build(STRICT).stores


def test_the_repartition_topic_of_a_table_made_of_a_stream_is_named_with_the_step() -> None:
    def rekeyed(**names: str) -> Topology:
        builder = StreamsBuilder()
        builder.stream("in").select_key(lambda v: v).to_table("rows", **names).to_stream().to("out")
        return builder.build(STRICT)

    with pytest.raises(TopologyError, match=r"KSTREAM-TOTABLE-0000000002-repartition.*name='a-name' of .*, to_table"):
        rekeyed()
    assert "rows" in rekeyed(name="made").stores


def test_a_global_store_is_filled_by_a_processor_of_its_own_in_a_sub_topology_of_its_own() -> None:
    names = Stores.persistent_key_value_store("names", Serdes.string(), Serdes.string())
    wired = Topology().add_global_store(names.with_logging(False), "source", "names-in", "fill", Pass)
    described = wired.describe()
    assert "Sub-topology: 0 for global store (will not generate tasks)" in described
    assert "Processor: fill (stores: [names])" in described
    with pytest.raises(TopologyError, match="a global store has no changelog"):
        Topology().add_global_store(names, "source", "names-in", "fill", Pass)
    with pytest.raises(TopologyError, match="there is another store with this name"):
        wired.add_global_store(names.with_logging(False), "source-2", "names-too", "fill-2", Pass)
