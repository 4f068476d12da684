"""One broker for all integration tests, and names that no two tests share."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamskit.broker import EmbeddedBroker
from streamskit.broker.base import Broker


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with EmbeddedBroker(data_dir=tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def name() -> str:
    """A word of its own for each test, to name topics and applications with."""
    return f"t{uuid.uuid4().hex[:10]}"


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    return tmp_path / "state"
