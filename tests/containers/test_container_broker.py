"""A broker in a container behaves as the embedded one does."""

import importlib
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from streamskit.broker import ContainerBroker
from streamskit.common.errors import BrokerError, SetupError

pytestmark = pytest.mark.container


@pytest.fixture
def topic() -> str:
    return f"t{uuid.uuid4().hex[:10]}"


def containers() -> list[str]:
    docker = importlib.import_module("docker")
    client = docker.from_env()
    try:
        return [container.id for container in client.containers.list(all=True)]
    finally:
        client.close()


def test_records_go_in_and_come_out(broker: ContainerBroker, topic: str) -> None:
    broker.create_topics(topic, partitions=3)
    assert broker.produce(topic, [(f"k{i}", {"price": i}) for i in range(100)]) == 100
    assert len(broker.consume(topic)) == 100
    assert broker.topics()[topic] == 3


def test_it_has_the_settings_of_the_embedded_broker_and_those_it_was_given(broker: ContainerBroker, topic: str) -> None:
    with pytest.raises(BrokerError, match="Create it first"):
        broker.produce(topic, [("k", "v")])
    broker.create_topics(topic)
    assert broker.describe_topic(topic).partitions == 2


def test_a_killed_broker_comes_back_with_its_address_and_records(broker: ContainerBroker, topic: str) -> None:
    broker.create_topics(topic)
    broker.produce(topic, [("k", "v")])
    address = broker.bootstrap_servers
    broker.kill()
    assert not broker.is_running
    with pytest.raises(BrokerError, match="No Kafka broker answers"):
        broker.topics()
    broker.restart()
    assert broker.bootstrap_servers == address
    assert broker.consume(topic)["value"].tolist() == ["v"]


def test_a_stopped_broker_starts_again_on_its_data(broker: ContainerBroker, topic: str) -> None:
    broker.create_topics(topic)
    broker.stop()
    broker.stop()
    assert not broker.is_running
    broker.start()
    broker.start()
    assert topic in broker.topics()


def test_a_paused_broker_goes_on_and_can_be_stopped(broker: ContainerBroker, topic: str) -> None:
    broker.create_topics(topic)
    broker.pause()
    assert broker.is_running
    broker.resume()
    assert topic in broker.topics()
    broker.pause()
    broker.stop()
    assert not broker.is_running


def test_its_port_is_open_on_loopback_only(broker: ContainerBroker) -> None:
    if not broker.bootstrap_servers.startswith("127.0.0.1:"):
        pytest.skip("The Docker engine runs on another machine.")
    (binding,) = broker._container().ports["9093/tcp"]
    assert binding["HostIp"] == "127.0.0.1"


def test_its_container_is_removed_after_the_with_block(image: str) -> None:
    before = containers()
    with ContainerBroker(image) as broker:
        assert len(containers()) == len(before) + 1
        assert broker.is_running
    assert containers() == before
    assert not broker.is_running


def test_an_image_that_cannot_be_had_is_told(docker: None) -> None:
    with pytest.raises(
        SetupError, match=r"no\.such\.host\.invalid/kafka:1 is not on this machine and cannot be fetched"
    ):
        ContainerBroker("no.such.host.invalid/kafka:1").start()


def test_an_image_without_a_shell_is_told_and_leaves_nothing_behind(docker: None) -> None:
    empty_tar = b"\0" * 10240
    subprocess.run(["docker", "import", "-", "streamskit/empty:test"], input=empty_tar, check=True, capture_output=True)
    before = containers()
    with pytest.raises(SetupError, match="Docker could not start the container"):
        ContainerBroker("streamskit/empty:test").start()
    assert containers() == before


@pytest.fixture
def no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")


@pytest.mark.usefixtures("no_engine")
def test_a_missing_engine_is_told() -> None:
    with pytest.raises(SetupError, match=r"Is a Docker engine running.*EmbeddedBroker\(\) needs none"):
        ContainerBroker().start()


def test_a_missing_testcontainers_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "testcontainers.community.kafka", None)
    with pytest.raises(SetupError, match="pip install testcontainers"):
        ContainerBroker().start()


def test_a_broker_that_never_started_has_no_address() -> None:
    broker = ContainerBroker()
    assert not broker.is_running
    with pytest.raises(BrokerError, match="before its first start"):
        broker.topics()
    with pytest.raises(BrokerError, match="has not been started yet"):
        broker.pause()
