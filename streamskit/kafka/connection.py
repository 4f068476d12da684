"""Short-lived connections to a Kafka broker, whose failures read as sentences."""

import contextlib
import logging
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any, cast

from kafka import KafkaAdminClient
from kafka.cluster import ClusterMetadata
from kafka.errors import (
    Cancelled,
    CoordinatorNotAvailableError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    NodeNotReadyError,
    NotControllerError,
    NotCoordinatorError,
    UnknownBrokerIdError,
)
from kafka.protocol.metadata import MetadataRequest

from streamskit.api.client_settings import BootstrapServers, ClientSettings, host_and_port
from streamskit.common.errors import BrokerError
from streamskit.kafka.access import not_let_in
from streamskit.kafka.client_libraries import for_kafka_python

# kafka-python logs every failed attempt, with stack traces. Errors are raised as sentences here, so its log
# is shown only where the program sets up logging.
logging.getLogger("kafka").addHandler(logging.NullHandler())

CONNECT_SECONDS = 10.0
FIRST_ROUND_SECONDS = 1.0
"""How long each of several brokers may take to accept a connection before the next one is tried."""

REQUEST_SECONDS = 30.0

AGAIN_SECONDS = 0.2

NOT_KNOWN_YET = (CoordinatorNotAvailableError, LeaderNotAvailableError, NotCoordinatorError, UnknownBrokerIdError)
"""The errors for a group without a coordinator, where a broker has just started, and for a partition without a leader,
as while its broker is shut out because the machine stood still for longer than the broker's session."""

GONE = (Cancelled, KafkaConnectionError, NodeNotReadyError, NotControllerError)
"""What a client raises when the broker that was to answer it, one of several, has gone."""


class Admin(KafkaAdminClient):
    """An admin client that can ask each broker of a cluster by itself; kafka-python's own asks any one of them."""

    def topics_by_broker(self) -> dict[int, set[str]]:
        """Return which topics each broker knows, by its id; brokers that do not answer are left out.

        A cluster answers that it made or deleted a topic before all of its brokers have heard of it.
        """
        return dict(self._manager.run(self._topics_by_broker))

    async def _topics_by_broker(self) -> dict[int, set[str]]:
        known = {}
        for broker in (await self._get_cluster_metadata([]))["brokers"]:
            request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
            with contextlib.suppress(*GONE, KafkaTimeoutError):
                answer = await self._manager.send(request, node_id=broker["node_id"])
                known[broker["node_id"]] = {topic.name for topic in answer.topics if not topic.error_code}
        if not known:
            raise NodeNotReadyError("no broker of the cluster answers")
        return known


@contextlib.contextmanager
def admin_client(
    bootstrap_servers: BootstrapServers, timeout: float = CONNECT_SECONDS, tell_why: bool = True
) -> Iterator[Admin]:
    """An admin client for a `with` block.

    Args:
        bootstrap_servers: the broker's address.
        timeout: how long it may take to answer, in seconds.
        tell_why: whether to find out the reason when none answers, which takes a moment.

    Raises:
        NotLetInError: a broker answers, and does not let the client in.
        BrokerError: no broker answers in `timeout` seconds, or one refuses a request.
    """

    def connected() -> Admin:
        with reachable(bootstrap_servers, tell_why):
            return Admin(
                **for_kafka_python(bootstrap_servers, "admin"),
                bootstrap_timeout_ms=int(timeout * 1000),
                request_timeout_ms=int(REQUEST_SECONDS * 1000),
            )

    is_one_of_several = "," in ClientSettings.of(bootstrap_servers).bootstrap_servers
    passing = NOT_KNOWN_YET + GONE if is_one_of_several else NOT_KNOWN_YET
    client = cast(Admin, _Patient(connected, passing, time.monotonic() + timeout))
    try:
        yield client
    except KafkaError as error:
        raise BrokerError(f"The broker at {bootstrap_servers} failed a request: {reason(error)}") from error
    finally:
        client.close()


class _Patient:
    """An admin client that repeats a request which a broker could not answer just now.

    Args:
        connected: makes a client.
        passing: the failures that are temporary.
        deadline: when to give up, as `time.monotonic()` counts.
    """

    def __init__(self, connected: Callable[[], Admin], passing: tuple[type[KafkaError], ...], deadline: float) -> None:
        self._connected, self._passing, self._deadline = connected, passing, deadline
        self._client = connected()

    def close(self) -> None:
        self._client.close()

    def __getattr__(self, name: str) -> Any:
        def ask(*arguments: Any, **named: Any) -> Any:
            while True:
                try:
                    return getattr(self._client, name)(*arguments, **named)
                except self._passing:
                    if time.monotonic() > self._deadline:
                        raise
                time.sleep(AGAIN_SECONDS)
                self._client.close()
                self._client = self._connected()  # a new client knows only brokers that answer

        return ask


@contextlib.contextmanager
def reachable(bootstrap_servers: BootstrapServers, tell_why: bool = True) -> Iterator[None]:
    """Turn "no connection" inside the block into a sentence.

    Raises:
        NotLetInError: a broker answers, and does not let the client in.
        BrokerError: no broker answers.
    """
    servers = str(bootstrap_servers).split(",")
    # One of several may take no connections and refuse none: it must not use up the time of the others.
    rounds = [CONNECT_SECONDS] if len(servers) == 1 else [FIRST_ROUND_SECONDS, CONNECT_SECONDS]
    if not any(_port_open(server, seconds) for seconds in rounds for server in servers):
        raise no_answer(bootstrap_servers)
    settings = ClientSettings.of(bootstrap_servers)
    if tell_why and settings.is_secured and settings not in _let_in:
        _try_the_door(settings)  # kafka-python would try for all of its time, and not say why
    try:
        yield
    except KafkaError as error:
        refusal = not_let_in(settings) if tell_why else None
        raise (refusal or no_answer(bootstrap_servers)) from error


_let_in: set[ClientSettings] = set()
"""The settings with which a broker has let clients of this process in."""


def _try_the_door(settings: ClientSettings) -> None:
    if (refusal := not_let_in(settings)) is not None:
        raise refusal
    _let_in.add(settings)


def without_new_topics(cluster: ClusterMetadata) -> None:
    """Keep a client from creating the topics that it asks for, as a broker does with its default settings.

    kafka-python has a setting for that, `allow_auto_create_topics`, which does not reach the code that asks.

    Args:
        cluster: what the client knows of its cluster, before it asks for any topic.
    """
    cluster.config["allow_auto_create_topics"] = False


def no_answer(bootstrap_servers: BootstrapServers) -> BrokerError:
    """The error for a broker that does not answer."""
    return BrokerError(
        f"No Kafka broker answers at {bootstrap_servers}. Is it running, and not paused? broker.restart() "
        "brings back one that stopped; `python -m streamskit broker status` says how the shared one is."
    )


def cluster_id(bootstrap_servers: BootstrapServers, timeout: float) -> str | None:
    """The id of the cluster, by a real metadata request; None if no broker is ready in `timeout` seconds."""
    try:
        with admin_client(bootstrap_servers, timeout, tell_why=False) as client:
            cluster = client.describe_cluster()
    except BrokerError:
        return None
    return str(cluster["cluster_id"]) if cluster["brokers"] else None


def answers(bootstrap_servers: BootstrapServers, timeout: float) -> bool:
    """Whether a broker is ready within `timeout` seconds."""
    return cluster_id(bootstrap_servers, timeout) is not None


def reason(error: BaseException) -> str:
    """Kafka's own words for an error, without the request and response that some clients add."""
    text = str(error)
    return text.split(": Request '")[0] if ": Request '" in text else text


def _port_open(server: str, seconds: float) -> bool:
    try:
        with socket.create_connection(host_and_port(server), timeout=seconds):
            return True
    except (OSError, ValueError):
        return False
