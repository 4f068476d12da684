"""A source that reads all topics that match a pattern, wired by hand, on a broker where such topics come and go."""

import re
from pathlib import Path

import pytest

from streamskit import KafkaStreams, Processor, Record, Serdes, Stores, StreamsError, Topology
from streamskit.broker.base import Broker
from streamskit.state.stores import Store
from streamskit.testing import wait_until
from tests.integration.conftest import Run

pytestmark = [pytest.mark.broker, pytest.mark.spark]


class Numbered(Processor):
    """Counts the records of each key, and says from where each came."""

    @staticmethod
    def stores() -> list[Store]:
        return [Stores.persistent_key_value_store("counts", Serdes.string(), Serdes.long())]

    def process(self, record: Record) -> None:
        counts = self.context.state_store("counts")
        counts.put(record.key, (counts.get(record.key) or 0) + 1)
        where = self.context.record_metadata()
        self.context.forward(record.with_value(f"{counts.get(record.key)} {where.topic}/{where.partition}"))


@pytest.mark.soak
def test_topics_of_a_pattern_are_read_as_they_are_at_each_start(broker: Broker, run: Run, name: str) -> None:
    wired = Topology().add_source("orders", re.compile(f"{name}-orders-.*"))
    wired.add_processor("number", Numbered, "orders").add_sink("sink", f"{name}-out", "number")
    broker.create_topics(f"{name}-out")

    def send(region: str, partitions: int) -> None:
        topic = f"{name}-orders-{region}"
        broker.create_topics(topic, partitions=partitions)
        broker.produce(topic, [{"key": "k", "value": "", "timestamp": 0, "partition": partitions - 1}])

    def run_once(**options: str) -> list[str]:
        streams: KafkaStreams = run(wired, **options)
        streams.await_processed("120 seconds")
        streams.close()
        return [record.value.replace(f"{name}-orders-", "") for record in broker.records(f"{name}-out")]

    with pytest.raises(StreamsError, match=rf"orders .*: no topic matches the pattern '{name}-orders-\.\*'\. Create"):
        run(wired)
    send("eu", 1)
    send("us", 2)
    assert sorted(run_once()) == ["1 eu/0", "1 us/1"]
    send("asia", 2)
    assert sorted(run_once()) == ["1 eu/0", "1 us/1", "2 asia/1"]
    broker.delete_topics(f"{name}-orders-us")
    with pytest.raises(StreamsError, match=rf"has read, '{name}-orders-us', is not there any more"):
        run(wired)
    broker.produce(f"{name}-orders-eu", [("k", "", 0)])
    assert sorted(run_once(on_data_loss="continue")) == ["1 eu/0", "1 us/1", "2 asia/1", "2 eu/0"]


def test_an_application_can_be_forgotten_when_no_topic_matches_its_pattern_any_more(
    broker: Broker, run: Run, name: str, state_dir: Path
) -> None:
    wired = Topology().add_source("orders", re.compile(f"{name}-orders-.*"))
    wired.add_processor("number", Numbered, "orders").add_sink("sink", f"{name}-out", "number")
    broker.create_topics(f"{name}-out", f"{name}-orders-eu")
    broker.produce(f"{name}-orders-eu", [("k", "", 0)])
    streams = run(wired)
    streams.await_processed("120 seconds")
    streams.close()
    broker.delete_topics(f"{name}-orders-eu")
    left = [f"{name}-0-checkpoint", f"{name}-counts-changelog", f"{name}-out"]
    assert [topic for topic in sorted(broker.topics()) if topic.startswith(name)] == left
    KafkaStreams(wired, name, broker.bootstrap_servers, state_dir=state_dir).clean_up()
    assert [topic for topic in broker.topics() if topic.startswith(name)] == [f"{name}-out"]
    assert not streams.folder.exists()


def test_a_topic_that_is_made_while_the_application_runs_is_read_without_a_new_start(
    broker: Broker, run: Run, name: str
) -> None:
    wired = Topology().add_source("orders", re.compile(f"{name}-orders-.*"))
    wired.add_processor("number", Numbered, "orders").add_sink("sink", f"{name}-out", "number")
    broker.create_topics(f"{name}-out")
    broker.create_topics(f"{name}-orders-eu", f"{name}-other", partitions=2)
    broker.produce(f"{name}-orders-eu", [("k", "", 0)])
    streams = run(wired)
    streams.await_processed("120 seconds")
    broker.create_topics(f"{name}-orders-us", partitions=2)
    broker.produce(f"{name}-orders-us", [("k", "", 0), ("k", "", 1)])
    broker.produce(f"{name}-orders-eu", [("k", "", 2)])

    def written() -> list[str]:
        return sorted(
            record.value.split("/")[0].replace(f"{name}-orders-", "") for record in broker.records(f"{name}-out")
        )

    wait_until(lambda: len(written()) == 4, "the records of the new topic", 90)
    assert sorted(value.split()[0] for value in written()) == ["1", "2", "3", "4"]
    assert sorted(value.split()[1] for value in written()) == ["eu", "eu", "us", "us"]
    streams.await_processed("120 seconds")
    streams.close()
    again = run(wired)  # what it reads now is noted: nothing is read twice
    broker.produce(f"{name}-orders-us", [("k", "", 3)])
    again.await_processed("120 seconds")
    assert len(written()) == 5
    assert written()[-1] == "5 us"


def test_a_new_topic_with_more_partitions_than_there_are_tasks_with_state_ends_the_application(
    broker: Broker, run: Run, name: str
) -> None:
    wired = Topology().add_source("orders", re.compile(f"{name}-orders-.*"))
    wired.add_processor("number", Numbered, "orders").add_sink("sink", f"{name}-out", "number")
    broker.create_topics(f"{name}-out", f"{name}-orders-eu")
    streams = run(wired)
    broker.create_topics(f"{name}-orders-us", partitions=3)
    wait_until(lambda: streams.state.name == "ERROR", "the end of the application", 60)
    assert "have 3 partitions now, and it keeps state of 1" in str(streams.failure)
