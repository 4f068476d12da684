"""One broker for all integration tests, and names that no two tests share."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamskit import KafkaStreams, Topology
from streamskit.broker import EmbeddedBroker
from streamskit.broker.base import Broker
from streamskit.kafka.connection import admin_client
from tests.integration.kafka_defaults import KAFKA_DEFAULTS


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with EmbeddedBroker(data_dir=tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture(scope="session")
def default_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker with Kafka 4's own settings, where that for teaching has others."""
    with EmbeddedBroker(data_dir=tmp_path_factory.mktemp("default"), settings=KAFKA_DEFAULTS) as running:
        yield running


@pytest.fixture
def name() -> str:
    """A word of its own for each test, to name topics and applications with."""
    return f"t{uuid.uuid4().hex[:10]}"


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    return tmp_path / "state"


def members(broker: Broker, group: str) -> int:
    """Return how many members a consumer group has."""
    with admin_client(broker.bootstrap_servers) as admin:
        return len(admin.describe_groups([group])[group]["members"])


Run = Callable[..., KafkaStreams]
"""Starts a topology with options of `KafkaStreams`; under the test's own name, if no `application_id` is given."""


@pytest.fixture
def run_on(name: str, state_dir: Path) -> Iterator[Run]:
    """Starts a topology on a broker; whatever was started is closed after the test."""
    started: list[KafkaStreams] = []

    def start(broker: Broker, topology: Topology, **options: Any) -> KafkaStreams:
        application_id = options.pop("application_id", name)
        streams = KafkaStreams(topology, application_id, broker.bootstrap_servers, state_dir=state_dir, **options)
        started.append(streams)
        streams.start()
        return streams

    yield start
    for streams in started:
        streams.close()


@pytest.fixture
def run(run_on: Run, broker: Broker) -> Run:
    """Starts a topology on the broker that all tests share."""
    return lambda topology, **options: run_on(broker, topology, **options)
