"""What a restore listener of a running application is told, on a broker."""

from pathlib import Path

import pytest

from streamskit import KafkaStreams, Serdes, State, StreamsBuilder, StreamsError, Topology
from streamskit.broker import Broker
from streamskit.kafka.topic_partition import TopicPartition
from tests.integration.conftest import Run
from tests.unit.queries.test_restore_listener import Telling

pytestmark = [pytest.mark.spark, pytest.mark.broker]


@pytest.fixture
def counted(broker: Broker, name: str) -> Topology:
    broker.create_topics(f"{name}-in", f"{name}-names", partitions=2)
    broker.produce(f"{name}-in", [(f"key-{number}", "v") for number in range(40)])
    broker.produce(f"{name}-names", [("de", "Germany")])
    builder = StreamsBuilder()
    builder.stream(f"{name}-in").group_by_key().reduce(lambda a, b: a + b, "joined")
    builder.global_table(f"{name}-names", key=Serdes.string(), value=Serdes.string(), materialized="names")
    return builder.build()


def start(topology: Topology, broker: Broker, name: str, state_dir: Path) -> tuple[KafkaStreams, Telling]:
    streams, listener = KafkaStreams(topology, name, broker.bootstrap_servers, state_dir=state_dir), Telling()
    streams.set_global_state_restore_listener(listener)
    streams.start()
    return streams, listener


def test_a_listener_hears_of_every_partition_of_every_store_when_an_application_starts_again(
    counted: Topology, broker: Broker, name: str, run: Run, state_dir: Path
) -> None:
    streams, listener = start(counted, broker, name, state_dir)
    try:
        streams.await_processed()
        changelog = [TopicPartition(f"{name}-joined-changelog", number) for number in range(2)]
        assert [each for each in listener.told if each[1] in changelog] == [
            told for where in changelog for told in (("start", where, "joined", 0, 0), ("end", where, "joined", 0))
        ]
    finally:
        streams.close()
    streams, listener = start(counted, broker, name, state_dir)
    try:
        for where in changelog:
            first, *batches, last = [told for told in listener.told if told[1] == where]
            end = broker.end_offsets(where.topic)[where.partition]
            assert first == ("start", where, "joined", 0, end)
            assert {told[0] for told in batches} == {"batch"}
            assert last == ("end", where, "joined", sum(told[4] for told in batches))
            assert last[3] == end
        assert sum(told[3] for told in listener.told if told[0] == "end" and told[2] == "names") == 1
    finally:
        streams.close()


def test_what_a_listener_raises_ends_the_start(counted: Topology, broker: Broker, name: str, state_dir: Path) -> None:
    class Broken(Telling):
        def on_restore_end(self, topic_partition: TopicPartition, store_name: str, total_restored: int) -> None:
            raise ValueError("no room")

    streams = KafkaStreams(counted, name, broker.bootstrap_servers, state_dir=state_dir)
    said = "A restore listener has to be an object of a subclass of StateRestoreListener"
    with pytest.raises(StreamsError, match=said):
        streams.set_global_state_restore_listener(print)  # type: ignore[arg-type]
    streams.set_global_state_restore_listener(Broken())
    with pytest.raises(StreamsError, match="The restore listener raised ValueError: no room"):
        streams.start()
    assert streams.state in (State.ERROR, State.NOT_RUNNING)
    with pytest.raises(StreamsError, match="set its restore listener before start"):
        streams.set_global_state_restore_listener(Telling())
