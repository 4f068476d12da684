"""A real Kafka broker in a Docker container, through testcontainers."""

import contextlib
import importlib
import logging
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from streamskit.broker import settings
from streamskit.broker.base import Broker
from streamskit.broker.settings import HOST, TEACHING_SETTINGS
from streamskit.common.errors import BrokerError, SetupError
from streamskit.environment.processes import eventually
from streamskit.kafka.connection import answers

log = logging.getLogger("streamskit.broker")

DEFAULT_IMAGE = "apache/kafka:4.3.1"
START_SECONDS = 90
STOP_SECONDS = 10
KAFKA_PORT = 9093
LOG_DIRS = "/tmp/kafka-logs"
# The address to advertise is known only once the container runs, so it waits for the script with the address.
WAIT_FOR_SCRIPT = "until [ -s /tc-start.sh ]; do sleep 0.1; done; exec sh /tc-start.sh"
START_SCRIPT = """\
#!/bin/sh
export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://{address},BROKER://localhost:9092
[ -x /etc/kafka/docker/run ] && exec /etc/kafka/docker/run
exec /etc/confluent/docker/run
"""


class ContainerBroker(Broker):
    """Apache Kafka in a Docker container, with the same interface and settings as EmbeddedBroker.

    `image` is a Kafka image that can run in KRaft mode: `apache/kafka` (the default is its 4.3.1) or
    `confluentinc/cp-kafka`; `settings` are Kafka broker settings on top of those for teaching. The container
    keeps its port and data until the `with` block or this Python process ends; then it is removed.

    Raises:
        SetupError: from `start()`, if testcontainers, a Docker engine or the image is missing.

    >>> with ContainerBroker() as broker:  # doctest: +SKIP
    ...     broker.create_topics("trades")
    """

    def __init__(self, image: str | None = None, *, settings: Mapping[str, str] | None = None) -> None:
        self.image = image or DEFAULT_IMAGE
        self._settings = {**TEACHING_SETTINGS, **(settings or {})}
        self._kafka: Any = None
        self._address: str | None = None

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect to: "host:port".

        Raises:
            BrokerError: before the first start.
        """
        if self._address is None:
            raise BrokerError("This broker has no address before its first start: call broker.start().")
        return self._address

    @property
    def is_running(self) -> bool:
        """Whether the container runs; a paused one does."""
        if self._kafka is None:
            return False
        with _docker_words("look at the container"):
            container = self._container()
            container.reload()
        return container.status in ("running", "paused")

    def start(self) -> None:
        """Start the container, or the one that was stopped, and return once the broker answers.

        Raises:
            BrokerError: it has ended, or no broker answers.
            SetupError: Docker cannot start it.
        """
        if self.is_running:
            return
        if self._kafka is None:
            self._create()
        else:
            with _docker_words("start the container"):
                self._container().start()
        eventually(lambda: answers(self.bootstrap_servers, 1.0) or not self.is_running, START_SECONDS)
        if not answers(self.bootstrap_servers, 5.0):
            last = self._container().logs(tail=1).decode(errors="replace").strip()
            raise BrokerError(
                f"The container of {self.image} {'runs' if self.is_running else 'has ended'}, and no broker "
                f"answers at {self.bootstrap_servers}. Its last output: {last}"
            )

    def stop(self) -> None:
        """Shut the broker down (SIGTERM, after ten seconds SIGKILL); the container keeps its data."""
        if self.is_running:
            with _docker_words("stop the container"):
                self._unpause()
                self._container().stop(timeout=STOP_SECONDS)

    def kill(self) -> None:
        """End the broker at once by SIGKILL, as a crash would; `restart()` brings it back with its data."""
        if self.is_running:
            with _docker_words("kill the container"):
                self._unpause()
                self._container().kill()
                self._container().wait(timeout=STOP_SECONDS)

    def pause(self) -> None:
        """Freeze the broker (docker pause): it keeps its connections and answers nothing until `resume()`."""
        with _docker_words("pause the container"):
            self._container().pause()

    def resume(self) -> None:
        """Let a paused broker go on (docker unpause)."""
        with _docker_words("resume the container"):
            self._container().unpause()

    def __repr__(self) -> str:
        return f"ContainerBroker({self.image!r}, {self._address or 'not started yet'})"

    def _create(self) -> None:
        new_container = _kafka_container_class()
        with _docker_words("reach a Docker engine"):
            kafka = new_container(self.image, port=KAFKA_PORT).with_kraft()
            client = kafka.get_docker_client()
            client.client.ping()
        _use_ryuk_if_it_can_be_had(client.client)
        _ensure_image(client.client, self.image)
        port = settings.free_port()
        # a fixed port, so that a restart keeps the address; only on loopback if the engine is on this machine
        kafka.ports[str(KAFKA_PORT)] = (HOST, port) if client.host() in ("localhost", HOST) else port
        for name, value in {"log.dirs": LOG_DIRS, **self._settings}.items():
            kafka.with_env("KAFKA_" + name.upper().replace(".", "_"), str(value))
        self._kafka = kafka
        self._finalizer = weakref.finalize(self, _remove, kafka)
        try:
            with _docker_words("start the container"):
                kafka.start()
                self._address = kafka.get_bootstrap_server()
        except BaseException:
            self._discard()
            raise

    def _container(self) -> Any:
        if self._kafka is None:
            raise BrokerError("The broker has not been started yet: call broker.start().")
        return self._kafka.get_wrapped_container()

    def _unpause(self) -> None:
        if self._container().status == "paused":  # a frozen process does not react to signals
            self._container().unpause()

    def _discard(self) -> None:
        if self._kafka is not None:
            self._finalizer()
            self._kafka = None


def _kafka_container_class() -> Callable[..., Any]:
    """testcontainers' KafkaContainer, for the Apache project's images too; imported only when needed."""
    try:
        KafkaContainer: Any = importlib.import_module("testcontainers.community.kafka").KafkaContainer  # noqa: N806
    except ImportError as error:
        raise SetupError(
            f"A broker in a container needs the Python package testcontainers ({error}). Install it with "
            "`pip install testcontainers packaging`, or use EmbeddedBroker(), which needs no Docker."
        ) from error

    class TeachingKafkaContainer(KafkaContainer):
        def _verify_min_kraft_version(self) -> None:
            """Accept any tag: the original compares with Confluent's versions, and apache/kafka counts differently."""

        def get_bootstrap_server(self) -> str:
            """The address as a number: "localhost" can also mean ::1, where no port is published."""
            return str(super().get_bootstrap_server()).replace("localhost", HOST)

        def start(self, timeout: int = START_SECONDS) -> Any:
            """Start the image's own script as process 1, which receives SIGTERM; the original does neither."""
            self.configure()
            self.with_command(["sh", "-c", WAIT_FOR_SCRIPT])
            super(KafkaContainer, self).start()
            script = START_SCRIPT.format(address=self.get_bootstrap_server())
            self.create_file(script.encode(), KafkaContainer.TC_START_SCRIPT)
            return self

    return TeachingKafkaContainer


def _ensure_image(client: Any, image: str) -> None:
    errors = _docker_errors()
    try:
        client.images.get(image)
    except errors.ImageNotFound:
        log.warning("Fetching the image %s …", image)
        try:
            client.images.pull(image)
        except errors.DockerException as error:
            raise SetupError(
                f"The image {image} is not on this machine and cannot be fetched: {_words(error)}. Name one "
                "that is there, ContainerBroker(image=…), or use EmbeddedBroker(), which needs no Docker."
            ) from error


def _use_ryuk_if_it_can_be_had(client: Any) -> None:
    """Ryuk removes the containers of a crashed program; without its image testcontainers refuses."""
    errors = _docker_errors()
    from testcontainers.core.config import testcontainers_config

    if testcontainers_config.ryuk_disabled:
        return
    try:
        client.images.get(testcontainers_config.ryuk_image)
    except errors.ImageNotFound:
        try:
            client.images.pull(testcontainers_config.ryuk_image)
        except errors.DockerException:
            log.warning("Without the image %s, a crash leaves its container.", testcontainers_config.ryuk_image)
            testcontainers_config.ryuk_disabled = True


@contextlib.contextmanager
def _docker_words(action: str) -> Iterator[None]:
    """Turn errors of Docker and testcontainers into readable ones."""
    try:
        yield
    except (_docker_errors().DockerException, OSError, RuntimeError) as error:
        raise SetupError(
            f"Docker could not {action}: {_words(error)}. Is a Docker engine running, and may you use it "
            "(`docker info`)? EmbeddedBroker() needs none."
        ) from error


def _docker_errors() -> Any:
    return importlib.import_module("docker.errors")


def _words(error: BaseException) -> str:
    lines = str(getattr(error, "explanation", None) or error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


def _remove(kafka: Any) -> None:
    with contextlib.suppress(_docker_errors().DockerException, OSError):  # the engine may be gone by now
        kafka.stop()
