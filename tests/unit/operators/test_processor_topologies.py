"""Topologies with processors: how they are wired, described, and refused."""

from functools import partial
from typing import Any

import pytest

from streamskit import (
    FixedKeyProcessor,
    FixedKeyRecord,
    KafkaStreams,
    Processor,
    Record,
    Serdes,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
    TopologyError,
    TopologyTestDriver,
    ValueTransformerWithKey,
)
from streamskit.planning.options import QueryOptions
from streamskit.planning.planner import plan
from streamskit.state.stores import Store
from tests.unit.operators.processor_harness import LONG, STRING, key_value
from tests.unit.operators.test_processor_routing import Pass, Peek, Write

READ_ONLY = """\
Topologies:
   Sub-topology: 0
    Source: orders (topics: [orders-topic])
      --> look
    Processor: look (stores: [prices])
      --> out
      <-- orders
    Source: price-source (topics: [prices-topic])
      --> keep
    Processor: keep (stores: [prices])
      --> none
      <-- price-source
    Sink: out (topic: out-topic)
      <-- look

"""
"""What Kafka Streams' `describe()` prints for this topology."""


class Keep(Processor):
    """Puts records into a read-only store as they are."""

    def process(self, record: Record) -> None:
        self.context.state_store("prices").put(record.key, record.value)


def wired(*processors: Any) -> Topology:
    topology = Topology().add_source("source", "in")
    for number, processor in enumerate(processors, 1):
        topology.add_processor(f"processor-{number}", processor, "source" if number == 1 else f"processor-{number - 1}")
    return topology


def test_a_store_binds_two_sources_into_one_sub_topology() -> None:
    topology = Topology().add_source("one", "a").add_source("two", "b")
    topology.add_processor("write", lambda: Write("rows"), "one").add_processor("read", lambda: Peek("rows"), "two")
    assert len(topology.sub_topologies()) == 2
    topology.add_state_store(key_value(), "write", "read")
    assert len(topology.sub_topologies()) == 1
    assert topology.describe().count("(stores: [rows])") == 2


def test_a_read_only_store_is_filled_from_its_topic_for_other_processors() -> None:
    class Look(Processor):
        def process(self, record: Record) -> None:
            price = self.context.state_store("prices").get(record.key)
            self.context.forward(record.with_value(f"{record.value} at {price}"))

    prices = Stores.persistent_key_value_store("prices", STRING, STRING)
    topology = Topology().add_read_only_state_store(prices, "price-source", "prices-topic", "keep", Keep)
    topology.add_source("orders", "orders-topic").add_processor("look", Look, "orders")
    topology.add_sink("out", "out-topic", "look").connect_processor_and_state_stores("look", "prices")
    assert topology.describe() == READ_ONLY
    with TopologyTestDriver(topology) as driver:
        prices_in, orders = driver.create_input_topic("prices-topic"), driver.create_input_topic("orders-topic")
        orders.pipe_input("KO", "10")
        prices_in.pipe_input("KO", "75")
        orders.pipe_input("KO", "11")
        prices_in.pipe_input("KO", None)
        orders.pipe_input("KO", "12")
        made = driver.create_output_topic("out-topic").read_values_to_list()
        assert made == ["10 at None", "11 at 75", "12 at None"]  # as in Kafka Streams


def test_a_store_that_is_connected_twice_is_connected() -> None:
    topology = wired(Pass).add_state_store(key_value(), "processor-1")
    topology.connect_processor_and_state_stores("processor-1", "rows")
    assert "(stores: [rows])" in topology.describe()


def test_a_store_of_the_builder_can_be_connected_by_hand() -> None:
    builder = StreamsBuilder().add_state_store(key_value())
    builder.stream("in", name="in")
    topology = builder.build().add_processor("peek", lambda: Peek("rows"), "in")
    topology.connect_processor_and_state_stores("peek", "rows")
    assert topology.stores == {"rows": key_value()}


def test_the_store_of_a_global_table_binds_nothing() -> None:
    builder = StreamsBuilder()
    builder.global_table("users", materialized="users")
    builder.stream("in", name="in")
    topology = builder.build().add_processor("peek", lambda: Peek("users"), "in")
    assert len(topology.sub_topologies()) == 2


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wire", "sentence"),
    [
        (lambda t: t.add_source("source", "b"), r"has added a node of this name; choose another one"),
        (lambda t: t.add_source("other", "in"), r"topic 'in' is already read by source; add to that one"),
        (lambda t: t.add_source("other"), r"name the topic that it reads: add_source\('other', 'a-topic'\)"),
        (lambda t: t.add_processor("p", Pass), r"name the node that feeds it"),
        (lambda t: t.add_processor("p", Pass, "sauce"), r"no node 'sauce' to feed it; there are: source, processor-1"),
        (lambda t: t.add_processor("p", Pass(), "source"), r"give the Processor class itself, or a function"),
        (lambda t: t.add_sink("s", "out", "nobody"), r"no node 'nobody' to feed it"),
        (lambda t: t.add_sink("s", 5, "source"), r"no topic can be called 5"),
        (lambda t: t.add_sink("s", None, "source"), r"no topic can be called None"),
        (lambda t: t.add_sink("s", "out", "source", "source"), r"'source' is to feed it twice\. .*name it once"),
        (lambda t: t.add_sink("s", "out", "source").add_sink("s2", "b", "s"), r"no node 's' to feed it; there are: so"),
        (lambda t: t.add_state_store(key_value()).add_state_store(key_value()), r"another store with this name"),
        (lambda t: t.add_state_store(key_value(), "source"), r"no processor of this name; there are: processor-1"),
        (
            lambda t: t.add_state_store(key_value()).connect_processor_and_state_stores("processor-1", "raws"),
            r"there is no store 'raws'; there are: rows\. Add it first",
        ),
    ],
)
def test_a_mistake_in_wiring_is_a_sentence_with_its_line(wire: Any, sentence: str) -> None:
    with pytest.raises(TopologyError, match=rf"test_processor_topologies\.py line \d+: .*{sentence}"):
        wire(wired(Pass))


def test_a_store_that_was_not_added_is_named_with_those_that_were() -> None:
    builder = StreamsBuilder().add_state_store(key_value())
    builder.table("users", materialized="users")
    with pytest.raises(
        TopologyError, match=r"there is no store 'raws'; there are: rows, users\. Give the store itself"
    ):
        builder.stream("in").process(Pass, stores=["raws"])


def test_two_stores_with_one_name_are_refused() -> None:
    builder = StreamsBuilder().add_state_store(key_value())
    other = Stores.persistent_key_value_store("rows", STRING, LONG)
    with pytest.raises(TopologyError, match="another store with the name 'rows'"):
        builder.stream("in").process(Pass, stores=[other])


def test_a_processor_is_not_connected_to_a_global_store_or_to_what_suppress_holds_back() -> None:
    builder = StreamsBuilder()
    builder.global_table("users", materialized="users")
    builder.table("rows").suppress(Suppressed.until_time_limit("1 second").with_name("late"))
    builder.stream("in", name="in")
    for name, sentence in (
        ("users", "'users' is a global store, which every processor can use without being connected"),
        ("late-store", "'late-store' holds back the updates of late and is no table"),
    ):
        with pytest.raises(TopologyError, match=sentence):
            builder.stream("other").process(Pass, stores=[name])
        topology = builder.build().add_processor("pass", Pass, "in")
        with pytest.raises(TopologyError, match=sentence):
            topology.connect_processor_and_state_stores("pass", name)


def test_the_stores_of_two_tables_have_different_names() -> None:
    builder = StreamsBuilder()
    builder.table("one", materialized="rows")
    with pytest.raises(TopologyError, match=r"KTABLE-SOURCE-0000000001 .* has a store with the name 'rows'"):
        builder.table("two", materialized="rows")
    with pytest.raises(TopologyError, match="has a store with the name 'rows' already"):
        builder.stream("in").group_by_key().count("rows")
    builder.add_state_store(key_value("own"))
    with pytest.raises(TopologyError, match="there is a store for processors with the name 'own' already"):
        builder.stream("in").group_by_key().count("own")


def test_a_processor_may_not_get_back_what_has_gone_through_other_steps() -> None:
    builder = StreamsBuilder()
    first = builder.stream("in").process(lambda: Write("rows"), stores=[key_value()], name="first")
    first.map_values(lambda v: v).process(lambda: Peek("rows"), stores=["rows"], name="second").to("out")
    with pytest.raises(TopologyError, match=r"second \(.*\): it shares stores with first, .* Do in the processor what"):
        plan(builder.build(), "app", QueryOptions())


@pytest.mark.parametrize(
    ("init", "sentence"),
    [
        (lambda context: 1 / 0, r"ZeroDivisionError\('division by zero'\)"),
        (lambda context: context.state_store("rows"), r"it has no store|has no store 'rows'; it has: none"),
    ],
)
def test_an_init_that_raises_is_told_before_any_record_flows(init: Any, sentence: str) -> None:
    class Unready(Processor):
        def init(self, context: Any) -> None:
            init(context)

        def process(self, record: Any) -> None:
            return

    topology = wired(Pass, Unready).add_sink("sink", "out", "processor-2", value=Serdes.string())
    said = rf"processor-2 \(.*\): the processor could not be initialized: .*{sentence}"
    with pytest.raises(TopologyError, match=said):
        KafkaStreams(topology, "app", "localhost:9")


def test_the_rows_of_a_key_meet_in_one_partition_of_a_changelog_whatever_their_window() -> None:
    builder = StreamsBuilder()
    stores = [
        key_value("rows"),
        Stores.persistent_window_store("windows", "1 hour", "1 minute", STRING, LONG),
        Stores.persistent_session_store("sessions", "1 hour", STRING, LONG),
    ]
    minutes = TimeWindows.of_size_with_no_grace("1 minute")
    counts = builder.stream("in").group_by_key().windowed_by(minutes).count("counts")
    counts.to_stream().process(Pass, stores=stores)
    (only,) = plan(builder.build(), "app", QueryOptions())
    assert only.windowed_topics() == {
        "app-counts-changelog": 12,
        "app-windows-changelog": 12,
        "app-sessions-changelog": 16,
    }


# Suppliers that bring their stores along.


class Counts(Processor):
    """Counts records in a store that it brings along."""

    @staticmethod
    def stores() -> list[Store]:
        return [Stores.persistent_key_value_store("counts", STRING, LONG)]

    def process(self, record: Record) -> None:
        counts = self.context.state_store("counts")
        counts.put(record.key, (counts.get(record.key) or 0) + 1)
        self.context.forward(record.with_value(counts.get(record.key)))


class CountsValues(FixedKeyProcessor):
    stores = staticmethod(Counts.stores)

    def process(self, record: FixedKeyRecord) -> None:
        self.context.forward(record.with_value(self.context.state_store("counts").get(record.key)))


class CountsRows(ValueTransformerWithKey):
    @classmethod
    def stores(cls) -> Store:
        return key_value("rows-counted")

    def transform(self, key: str, value: str) -> str:
        return value


class CountsFrom:
    """Supplies processors as an object."""

    def stores(self) -> list[Store]:
        return Counts.stores()

    def __call__(self) -> Counts:
        return Counts()


@pytest.mark.spark
def test_a_supplier_brings_its_stores_along_and_shares_them_with_others() -> None:
    builder = StreamsBuilder()
    counted = builder.stream("in").process(Counts, value=LONG, name="counts")
    counted.process_values(CountsValues, stores=["counts"], name="values").to("out")
    topology = builder.build()
    assert topology.describe().count("(stores: [counts])") == 2
    with TopologyTestDriver(topology) as driver:
        for key in ("a", "b", "a"):
            driver.create_input_topic("in").pipe_input(key, "x")
        made = driver.create_output_topic("out").read_records_to_list()
        assert [(record.key, record.value) for record in made] == [("a", 1), ("b", 1), ("a", 2)]


def test_stores_are_brought_along_wherever_a_supplier_is_given() -> None:
    builder = StreamsBuilder()
    builder.table("table").transform_values(CountsRows)
    builder.stream("in").process(partial(Counts))
    assert set(builder.build().stores) >= {"rows-counted", "counts"}
    topology = wired(CountsFrom(), Counts)
    assert list(topology.stores) == ["counts"]
    assert topology.describe().count("(stores: [counts])") == 2


class NeedsItself(Processor):
    def stores(self) -> list[Store]:
        return []

    def process(self, record: Record) -> None:
        self.context.forward(record)


class NamesOnly(NeedsItself):
    @staticmethod
    def stores() -> Any:
        return ["counts"]


class OtherCounts(NeedsItself):
    @staticmethod
    def stores() -> Any:
        return [Stores.persistent_key_value_store("counts", STRING, STRING)]


@pytest.mark.parametrize(
    ("supplier", "said"),
    [
        (NeedsItself, "NeedsItself.stores says which stores .* write @staticmethod above it, and no argument"),
        (NamesOnly, r"NamesOnly.stores\(\) returned 'counts' among its stores\. Return a list of what Stores makes"),
        (OtherCounts, "there is another store with the name 'counts'; choose another"),
    ],
)
def test_what_a_supplier_cannot_bring_along_is_refused(supplier: Any, said: str) -> None:
    with pytest.raises(TopologyError, match=said):
        wired(Counts, supplier)
    builder = StreamsBuilder()
    builder.stream("in").process(Counts)
    with pytest.raises(TopologyError, match=said):
        builder.stream("other").process(supplier)
