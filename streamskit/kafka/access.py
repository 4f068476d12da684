"""Why a cluster does not let a client in, or does not let it do something: sentences that name what is missing."""

import logging
import re
import socket
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from kafka.errors import AuthorizationError
from kafka.errors import KafkaError as KafkaPythonError

from streamskit.api import jaas
from streamskit.api.client_settings import BootstrapServers, ClientSettings, Role, host_and_port
from streamskit.common.errors import BrokerError
from streamskit.kafka.client_libraries import client_log, for_librdkafka
from streamskit.kafka.key_material import key_material

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

LOOK_SECONDS = 2.0
"""How long to ask why a broker that can be reached gives no answer."""

HANG_UPS = 3
"""How often a broker has to hang up within that time: one that starts may do so once."""

NO_SASL = "Request not valid in current SASL state"
"""What a broker says to a client that wants to say who it is where nobody is asked."""

OPTIONS = {"topic": "--topic", "group": "--group", "transactional id": "--transactional-id", "cluster": "--cluster"}
"""The options of `kafka-acls` for the kinds of resources."""


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

    @property
    def role(self) -> Role:
        """Which kind of clients needs it."""
        return {"Read": "consumer", "Write": "producer"}.get(self.operation, "admin")  # type: ignore[return-value]

    def __str__(self) -> str:
        return f"{self.operation} on {self.resource} '{self.name}'" if self.name else f"{self.operation} on the cluster"


class NoRightError(BrokerError):
    """A broker does not allow a client to do what it has to. Mirrors `AuthorizationException`."""


class NotLetInError(BrokerError):
    """A broker answers, and does not let a client in. Mirrors `AuthenticationException`."""


def principal(servers: BootstrapServers, role: Role = "admin") -> str:
    """Return the principal that a broker sees in a kind of client, as "User:alice"; "" where only the broker knows."""
    own = ClientSettings.of(servers).revealed(role)
    if "sasl.jaas.config" in own:
        return f"User:{jaas.credentials(own['sasl.jaas.config']).username}"
    if not own.get("security.protocol", "").endswith("SSL"):
        return ""
    shown = own_certificate(own)
    return "User:ANONYMOUS" if shown is None else f"User:{shown.subject.rfc4514_string()}"


def own_certificate(own: Mapping[str, str]) -> "Certificate | None":
    """Return the certificate that a client shows; None if it has none."""
    certificates = key_material(own).certificates
    if certificates is None:
        return None
    from cryptography import x509

    return x509.load_pem_x509_certificates(certificates.read_bytes())[0]


def no_right(servers: BootstrapServers, *rights: Right) -> NoRightError:
    """Return the error for what clients are not allowed, with the commands that allow it.

    >>> print(no_right("broker:9092", Right("Read", "topic", "trades")))
    The broker at broker:9092 does not allow this client Read on topic 'trades'. Its administrator can: kafka-acls \
--bootstrap-server broker:9092 --add --allow-principal User:... --operation Read --topic trades
    """
    lacking: dict[str, list[Right]] = {}
    for right in rights:
        lacking.setdefault(principal(servers, right.role), []).append(right)
    spelled = " and ".join(f"{who or 'this client'} {', '.join(map(str, each))}" for who, each in lacking.items())
    commands = "; ".join(
        f"kafka-acls --bootstrap-server {servers} --add --allow-principal {_quoted(who or 'User:...')} "
        f"--operation {right.operation} {OPTIONS[right.resource]} {right.name}".rstrip()
        for who, each in lacking.items()
        for right in each
    )
    return NoRightError(f"The broker at {servers} does not allow {spelled}. Its administrator can: {commands}")


@contextmanager
def needing(servers: BootstrapServers, *rights: Right) -> Iterator[None]:
    """Turn a refusal inside the block into a sentence that names the rights it needs.

    Raises:
        NoRightError: the client has no such right.
    """
    try:
        yield
    except KafkaPythonError as error:
        if is_denied(error):
            raise no_right(servers, *rights) from error
        raise


def is_denied(error: BaseException | None) -> bool:
    """Whether kafka-python says of a request that the client has no right to it; it does so in several ways."""
    return isinstance(error, AuthorizationError) or "AuthorizationFailed" in str(error)


def missing_rights(servers: BootstrapServers, needed: Iterable[Right]) -> list[Right]:
    """Return the rights to topics that a client lacks; topics that do not exist are left out.

    Args:
        servers: the cluster.
        needed: rights to topics.

    Raises:
        BrokerError: no broker answers.
    """
    by_role: dict[Role, dict[str, list[Right]]] = {}
    for right in needed:
        by_role.setdefault(right.role, {}).setdefault(right.name, []).append(right)
    return [right for role, by_topic in by_role.items() for right in _missing(servers, role, by_topic)]


def _missing(servers: BootstrapServers, role: Role, by_topic: Mapping[str, Sequence[Right]]) -> Iterator[Right]:
    """Yield the rights that a kind of client lacks; a broker reports to each client only that client's own rights."""
    settings = ClientSettings.of(servers)
    # Other kinds of clients may have a user or a certificate of their own, and librdkafka waits for a minute.
    if settings.revealed(role) != settings.revealed("admin") and (refusal := not_let_in(settings, role)) is not None:
        raise refusal
    admin = AdminClient(for_librdkafka(servers, role), logger=client_log)
    futures = admin.describe_topics(TopicCollection(list(by_topic)), include_authorized_operations=True)
    for topic, future in futures.items():
        try:
            allowed = {each.name.replace("_", "").lower() for each in future.result().authorized_operations or ()}
        except KafkaException as failure:
            if failure.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                continue
            if failure.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise BrokerError(f"The broker at {servers} does not answer: {failure.args[0].str()}.") from failure
            allowed = set()
        yield from (right for right in by_topic[topic] if right.operation.lower() not in allowed)


def not_let_in(servers: BootstrapServers, role: Role = "admin") -> NotLetInError | None:
    """Return why a broker that can be reached gives a kind of client no answer; None if it just does not.

    Of the three clients, librdkafka explains the reason best: partly in errors, partly in its log.
    """
    settings = ClientSettings.of(servers)
    said: list[KafkaError] = []
    log = _Collected()
    admin = AdminClient(for_librdkafka(servers, role) | {"error_cb": said.append}, logger=log)
    deadline = time.monotonic() + LOOK_SECONDS
    while time.monotonic() < deadline:
        try:
            admin.list_topics(timeout=0.3)
        except KafkaException as failure:
            said.append(failure.args[0])
        else:
            return None
        admin.poll(0)
        if (told := _refusal(settings, role, said)) is not None:
            return told
    return _other_protocol(settings, role, log.messages)


class _Collected(logging.Logger):
    """A log whose messages are looked at, and shown to nobody."""

    def __init__(self) -> None:
        super().__init__("streamskit.librdkafka.probe")
        self.messages: list[str] = []

    def handle(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def _refusal(settings: ClientSettings, role: Role, said: Iterable[KafkaError]) -> NotLetInError | None:
    """Return why a broker refuses a client that speaks its protocol; None if the errors do not say."""
    own = settings.revealed(role)
    kind = "" if own == settings.revealed("admin") else f" as a {role}"
    given = "the client settings" + (kind and f", those with {role}. in front")
    for error in said:
        words = _plain(error.str())
        if NO_SASL in words:
            protocol = own["security.protocol"].removeprefix("SASL_")
            wants = f"it asks nobody for a user and a password (security.protocol={protocol})"
            return _wants(settings, role, wants, "Say so in the client settings, and leave sasl.* out")
        if error.code() == KafkaError._AUTHENTICATION:
            return NotLetInError(
                f"The broker at {settings} does not let {principal(settings, role) or 'this client'} in{kind}: "
                f"{words}. Check the user and the password in {given}, and that sasl.mechanism="
                f"{own.get('sasl.mechanism')} is what the broker asks for."
            )
        if "PLAINTEXT broker listener" in words and not _any_speaks_tls(settings):
            return _wants(settings, role, "it speaks no TLS (security.protocol=SASL_PLAINTEXT or PLAINTEXT)")
        if error.code() == KafkaError._SSL or "SSL handshake" in words or "SSL routines" in words:
            return NotLetInError(
                f"The broker at {settings} and this client do not trust each other{kind}: {words}. "
                + (
                    _out_of_date(own)
                    or "ssl.truststore.* says whom the client believes, ssl.keystore.* who it is; and the broker's "
                    "certificate has to name the host that is connected to."
                    + shown_certificate(settings)
                )
            )
    return None


def _out_of_date(own: Mapping[str, str]) -> str:
    """Say that a client's certificate has expired or does not hold yet; nothing if it holds, or if there is none."""
    shown = own_certificate(own)
    if shown is None or shown.not_valid_before_utc <= datetime.now(UTC) <= shown.not_valid_after_utc:
        return ""
    return (
        f"The client's own certificate (ssl.keystore.*) is valid from {shown.not_valid_before_utc:%Y-%m-%d %H:%M} to "
        f"{shown.not_valid_after_utc:%Y-%m-%d %H:%M} UTC only: get a new one, or set this machine's clock."
    )


def shown_certificate(servers: BootstrapServers) -> str:
    """Return a sentence about the certificate that a broker shows, after a space; "" if it shows none."""
    for server in ClientSettings.of(servers).bootstrap_servers.split(","):
        if (shown := _certificate_of(server)) is not None:
            from cryptography import x509

            found = (each.value for each in shown.extensions if isinstance(each.value, x509.SubjectAlternativeName))
            names = [str(name.value) for extension in found for name in extension]
            begin, end = shown.not_valid_before_utc, shown.not_valid_after_utc
            return (
                f" {server} shows a certificate for {', '.join(names) or shown.subject.rfc4514_string()}, signed by "
                f"{shown.issuer.rfc4514_string()}, which is valid from {begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} "
                f"UTC{'' if begin <= datetime.now(UTC) <= end else ', and so not today'}."
            )
    return ""


def _other_protocol(settings: ClientSettings, role: Role, log: Sequence[str]) -> NotLetInError | None:
    """Return the error for a broker that expects another protocol than the client's; None if it does not."""
    protocol = settings.revealed(role).get("security.protocol", "PLAINTEXT")
    # Clients that speak TLS where the broker does not hear of a failed handshake.
    if not protocol.endswith("SSL") and _any_speaks_tls(settings):
        return _wants(settings, role, "it speaks TLS (security.protocol=SASL_SSL or SSL)")
    if protocol.startswith("SASL") or sum("closed by peer" in each for each in log) < HANG_UPS:
        return None
    wanted = "SASL_SSL" if protocol == "SSL" else "SASL_PLAINTEXT"
    return _wants(settings, role, f"it hangs up on clients that do not say who they are (security.protocol={wanted})")


def _wants(
    settings: ClientSettings, role: Role, what: str, advice: str = "Say so, and who you are, in client settings"
) -> NotLetInError:
    protocol = settings.revealed(role).get("security.protocol", "PLAINTEXT")
    return NotLetInError(
        f"What listens at {settings} does not take clients with security.protocol={protocol}: {what}. {advice}: "
        "client_settings={...} in a program, --command-config FILE on a command line."
    )


def _any_speaks_tls(settings: ClientSettings) -> bool:
    return any(_speaks_tls(server) for server in settings.bootstrap_servers.split(","))


def _speaks_tls(server: str) -> bool:
    """Whether a port answers to the first words of TLS."""
    return _certificate_of(server) is not None


def _certificate_of(server: str) -> "Certificate | None":
    """Return the certificate that a port shows, whether or not one is to trust it; None if it speaks no TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nothing is said to it but hello
    try:
        host, port = host_and_port(server)
        with (
            socket.create_connection((host, port), timeout=1) as plain,
            context.wrap_socket(plain, server_hostname=host) as secured,
        ):
            shown = secured.getpeercert(binary_form=True)
    except (OSError, ValueError):
        return None
    from cryptography import x509

    return None if shown is None else x509.load_der_x509_certificate(shown)


def _plain(words: str) -> str:
    """Return librdkafka's words without its address and times, and without its own names of settings."""
    words = re.sub(r"^\S+/bootstrap: | \(after \d+ms in state [^)]*\)+| \(install ca-certificates package\)", "", words)
    return words.replace("ssl.ca.location", "ssl.truststore.location").strip().rstrip(".")


def _quoted(who: str) -> str:
    return f"'{who}'" if re.search(r"[^\w:.-]", who) and who != "User:..." else who
