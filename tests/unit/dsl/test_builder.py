import pytest

from streamskit import Serdes, StreamsBuilder, TopologyError

pytestmark = [pytest.mark.columns, pytest.mark.usefixtures("spark")]


def test_an_empty_program_is_refused() -> None:
    with pytest.raises(TopologyError, match="The topology is empty"):
        StreamsBuilder().build()


def test_reading_a_topic_in_two_ways_names_the_first_reader() -> None:
    builder = StreamsBuilder()
    builder.stream("orders")
    told = r"'orders' is already read by KSTREAM-SOURCE-0000000000 \(test_builder\.py line \d+\)"
    with pytest.raises(TopologyError, match=told):
        builder.stream("orders", value=Serdes.long())
    with pytest.raises(TopologyError, match=told):
        builder.stream("orders", "returns")
    with pytest.raises(TopologyError, match=told):
        builder.table("orders")


def test_streams_that_never_meet_are_sub_topologies_of_their_own() -> None:
    builder = StreamsBuilder()
    builder.stream("a").to("x")
    builder.stream("b").group_by_key().count("counts").to_stream().to("y")
    topology = builder.build()
    assert [[node.name.split("-")[1] for node in nodes] for nodes in topology.sub_topologies()] == [
        ["SOURCE", "SINK"],
        ["SOURCE", "AGGREGATE", "TOSTREAM", "SINK"],
    ]
    assert "Sub-topology: 1" in topology.describe()


def test_a_store_without_a_name_gets_the_one_kafka_streams_gives_it() -> None:
    builder = StreamsBuilder()
    builder.stream("a").group_by_key().count().to_stream().to("y")
    assert list(builder.build().stores) == ["KSTREAM-AGGREGATE-STATE-STORE-0000000001"]
