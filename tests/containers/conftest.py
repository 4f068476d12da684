"""An engine and an image for the container tests, or a sentence that says why they are skipped."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamskit.broker import ContainerBroker
from tests.containers.engine import NoEngineError, docker_engine
from tests.containers.image import CannotBuildError, build_image


@pytest.fixture(scope="session")
def docker() -> Iterator[None]:
    """A Docker engine, to which Docker's environment variables lead."""
    # not pytest's own temporary folder: that one is kept, and its path can be too long for a socket
    folder = tempfile.TemporaryDirectory(prefix="engine-", ignore_cleanup_errors=True)
    with folder as path, pytest.MonkeyPatch.context() as patch:
        try:
            with docker_engine(Path(path)) as address:
                if address is not None:
                    patch.setenv("DOCKER_HOST", address)
                    patch.setenv("TESTCONTAINERS_CONNECTION_MODE", "docker_host")
                yield
        except NoEngineError as error:
            pytest.skip(str(error))


@pytest.fixture(scope="session")
def image(docker: None) -> str:
    """An image with this machine's Java and the broker's jars."""
    try:
        return build_image()
    except CannotBuildError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def lasting(image: str) -> Iterator[ContainerBroker]:
    """A broker that tests may kill, pause and restart; it runs at the start of each."""
    with ContainerBroker(image, settings={"num.partitions": "2"}) as broker:
        yield broker


@pytest.fixture
def broker(lasting: ContainerBroker) -> Iterator[ContainerBroker]:
    yield lasting
    if not lasting.is_running:
        lasting.start()
