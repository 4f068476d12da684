"""Faults of a broker and its topics, injected and undone; Spark takes no part."""

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamskit import QueryClient, faults
from streamskit.broker import Broker, EmbeddedBroker
from streamskit.common.errors import BrokerError
from streamskit.environment.processes import wait_until
from streamskit.kafka.topics import offsets
from streamskit.queries import Catalogue, QueryableStore
from streamskit.queries.instances import Instances
from streamskit.serdes import Serdes
from streamskit.state.stores import Store

pytestmark = [pytest.mark.broker]


@pytest.fixture(scope="module")
def frail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A broker of this file's own, to be killed."""
    with EmbeddedBroker(data_dir=tmp_path_factory.mktemp("frail")) as broker:
        broker.create_topics("kept", partitions=2)
        broker.produce("kept", [("a", "one"), ("b", "two")])
        yield broker


def content(broker: EmbeddedBroker) -> dict[str, str]:
    kept = broker.consume("kept")
    return dict(zip(kept["key"], kept["value"], strict=True))


def test_a_killed_broker_comes_back_by_itself_with_its_data_and_port(frail: EmbeddedBroker) -> None:
    address = frail.bootstrap_servers
    fault = faults.kill_broker(0.5, frail)
    assert not frail.is_running or not fault.is_active
    assert "was killed with signal 9, for 500 ms" in fault.description
    wait_until(lambda: fault.state == "undone", "the fault's end")
    assert frail.bootstrap_servers == address
    assert content(frail) == {"a": "one", "b": "two"}


def test_a_killed_broker_comes_back_at_once_when_that_is_asked_for(frail: EmbeddedBroker) -> None:
    with faults.kill_broker(None, frail):
        assert not frail.is_running
        with pytest.raises(BrokerError, match="No Kafka broker answers"):
            frail.topics()
    assert content(frail) == {"a": "one", "b": "two"}


def test_a_paused_broker_goes_on_when_that_is_asked_for(frail: EmbeddedBroker) -> None:
    process = frail.process
    assert process is not None
    with faults.pause_broker(600, frail) as fault:
        assert process.status() == "stopped"
        assert fault.state.startswith("lasts 6")
    assert process.status() != "stopped"
    assert content(frail) == {"a": "one", "b": "two"}


def test_poison_is_what_no_serde_reads_and_goes_with_what_stands_before_it(frail: EmbeddedBroker) -> None:
    frail.create_topics("poisoned", partitions=2)
    frail.produce("poisoned", [{"key": "a", "value": number, "partition": 1} for number in range(3)])
    fault = faults.poison("poisoned", frail, partition=1)
    frail.produce("poisoned", [{"key": "a", "value": 3, "partition": 1}])
    assert "written to 'poisoned', partition 1, offset 3" in fault.description
    assert fault.way_back == "undo() deletes the record, and with it the 3 that stand before it in partition 1"
    with pytest.raises(BrokerError, match="offset 3"):
        frail.consume("poisoned", value=Serdes.long())
    fault.undo()
    assert offsets(frail.bootstrap_servers, "poisoned", "read_uncommitted")[0] == {0: 0, 1: 4}
    assert frail.consume("poisoned", value=Serdes.long())["value"].tolist() == [3]


def test_poison_for_a_topic_that_is_not_there_is_a_sentence(frail: EmbeddedBroker) -> None:
    with pytest.raises(BrokerError, match="has no topic 'nowhere'"):
        faults.poison("nowhere", frail)


def test_a_killed_instance_comes_back_at_its_port_with_its_stores(broker: Broker, name: str, tmp_path: Path) -> None:
    changelog = f"{name}-counts-changelog"
    broker.create_topics(changelog, config={"cleanup.policy": "compact"})
    broker.produce(changelog, [{"key": b"KO", "value": struct.pack(">q", 7), "timestamp": 1}])
    store = Store("counts", "key-value", Serdes.string(), Serdes.long())
    Catalogue(name, (QueryableStore(store, changelog, 0),)).save(tmp_path / name)
    with Instances(name, broker.bootstrap_servers, applications=tmp_path) as instances:
        server = instances.start()
        with faults.kill_instance(instances) as fault:
            assert list(instances) == []
            assert f"The instance at {server} was killed" in fault.description
        assert list(instances) == [server]
        with QueryClient(server.url, retry="30 seconds") as client:
            assert client.store("counts").get("KO") == 7
