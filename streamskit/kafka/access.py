"""Why a cluster does not let a client in, or does not let it do something: sentences that name what is missing."""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from kafka.errors import AuthorizationError

from streamskit.api.client_settings import BootstrapServers, ClientSettings
from streamskit.common.errors import BrokerError
from streamskit.kafka.client_libraries import client_log, for_librdkafka
from streamskit.kafka.key_material import key_material

LOOK_SECONDS = 2.0
"""How long to ask why a broker that can be reached gives no answer."""

OPTIONS = {"topic": "--topic", "group": "--group", "transactional id": "--transactional-id", "cluster": "--cluster"}
"""How `kafka-acls` calls the kinds of what one may have rights to."""


class Right(NamedTuple):
    """A right that an access control list gives.

    Args:
        operation: such as "Read", by Kafka's name.
        resource: what kind of thing it is for: "topic", "group", "transactional id" or "cluster".
        name: which one; a cluster has none.
    """

    operation: str
    resource: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.operation} on {self.resource} '{self.name}'" if self.name else f"{self.operation} on the cluster"


class NoRightError(BrokerError):
    """A broker does not allow a client what it has to do. Mirrors `AuthorizationException`."""


class NotLetInError(BrokerError):
    """A broker answers, and does not let a client in. Mirrors `AuthenticationException`."""


def principal(servers: BootstrapServers) -> str:
    """Return whom a broker takes clients for, as "User:alice"; "" where only the broker knows."""
    settings = ClientSettings.of(servers)
    own = settings.of_role("admin")
    if settings.principal or not own.get("security.protocol", "").endswith("SSL"):
        return settings.principal
    certificates = key_material(own).certificates
    if certificates is None:
        return "User:ANONYMOUS"
    from cryptography import x509

    shown = x509.load_pem_x509_certificates(certificates.read_bytes())
    return f"User:{shown[0].subject.rfc4514_string()}"


def no_right(servers: BootstrapServers, *rights: Right) -> NoRightError:
    """Return the error for what a client is not allowed, with the command that allows it.

    >>> print(no_right("broker:9092", Right("Read", "topic", "trades")))
    The broker at broker:9092 does not allow this client Read on topic 'trades'. Who administers it can: kafka-acls \
--bootstrap-server broker:9092 --add --allow-principal User:... --operation Read --topic trades
    """
    who = principal(servers)
    spelled = ", ".join(map(str, rights))
    commands = "; ".join(
        f"kafka-acls --bootstrap-server {servers} --add --allow-principal {_quoted(who or 'User:...')} "
        f"--operation {right.operation} {OPTIONS[right.resource]} {right.name}".rstrip()
        for right in rights
    )
    return NoRightError(
        f"The broker at {servers} does not allow {who or 'this client'} {spelled}. Who administers it can: {commands}"
    )


@contextmanager
def needing(servers: BootstrapServers, *rights: Right) -> Iterator[None]:
    """Turn a refusal inside of the block into the sentence on the rights that it needs.

    Raises:
        NoRightError: the client has no such right.
    """
    try:
        yield
    except AuthorizationError as error:
        raise no_right(servers, *rights) from error


def missing_rights(servers: BootstrapServers, needed: Iterable[Right]) -> list[Right]:
    """Return those rights to topics that a client does not have; topics that are not there are left out.

    Args:
        servers: the cluster.
        needed: rights to topics.

    Raises:
        BrokerError: no broker answers.
    """
    by_topic: dict[str, list[Right]] = {}
    for right in needed:
        by_topic.setdefault(right.name, []).append(right)
    if not by_topic:
        return []
    admin = AdminClient(for_librdkafka(servers, "admin"), logger=client_log)
    futures = admin.describe_topics(TopicCollection(list(by_topic)), include_authorized_operations=True)
    missing: list[Right] = []
    for topic, future in futures.items():
        try:
            allowed = {each.name.replace("_", "").lower() for each in future.result().authorized_operations or ()}
        except KafkaException as failure:
            if failure.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                continue
            if failure.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise BrokerError(f"The broker at {servers} does not answer: {failure.args[0].str()}.") from failure
            allowed = set()
        missing += [right for right in by_topic[topic] if right.operation.lower() not in allowed]
    return missing


def not_let_in(servers: BootstrapServers) -> NotLetInError | None:
    """Return why a broker that can be reached gives no answer; None if it just does not.

    Of the three clients, librdkafka says best what stands against it.
    """
    said: list[KafkaError] = []
    admin = AdminClient(for_librdkafka(servers, "admin") | {"error_cb": said.append}, logger=client_log)
    deadline = time.monotonic() + LOOK_SECONDS
    while time.monotonic() < deadline:
        try:
            admin.list_topics(timeout=0.3)
        except KafkaException as failure:
            said.append(failure.args[0])
        else:
            return None
        admin.poll(0)
        if (told := _told(servers, said)) is not None:
            return told
    return None


def _told(servers: BootstrapServers, said: Sequence[KafkaError]) -> NotLetInError | None:
    settings = ClientSettings.of(servers)
    own = settings.of_role("admin")
    protocol = own.get("security.protocol", "PLAINTEXT")
    for error in said:
        words = _plain(error.str())
        if error.code() == KafkaError._AUTHENTICATION:
            return NotLetInError(
                f"The broker at {servers} does not let {principal(servers) or 'this client'} in: {words}. Check the "
                f"user and the password in the client settings, and that sasl.mechanism={own.get('sasl.mechanism')} is "
                "what the broker asks for."
            )
        if error.code() == KafkaError._SSL or "SSL handshake" in words:
            return NotLetInError(
                f"The broker at {servers} and this client do not trust each other: {words}. ssl.truststore.* says whom "
                "the client believes, ssl.keystore.* who it is; and the broker's certificate has to name the host that "
                "is connected to."
            )
        if "security.protocol" in words or "require SASL" in words:
            return NotLetInError(
                f"Something listens at {servers}, and does not speak security.protocol={protocol}: {words}. The client "
                "settings have to say what this listener wants: security.protocol=SASL_SSL, SSL or SASL_PLAINTEXT, "
                "with a user or certificates; client_settings={...}, or a file with --command-config."
            )
    return None


def _plain(words: str) -> str:
    """Return librdkafka's words without its address and times, and without its own names of settings."""
    words = re.sub(r"^\S+/bootstrap: | \(after \d+ms in state [^)]*\)+| \(install ca-certificates package\)", "", words)
    return words.replace("ssl.ca.location", "ssl.truststore.location").strip().rstrip(".")


def _quoted(who: str) -> str:
    return f"'{who}'" if re.search(r"[^\w:.-]", who) and who != "User:..." else who
