"""How client settings are given to the three libraries that talk to a broker: Java's, kafka-python and librdkafka.

Java's names are the ones that a user writes. What each library takes:

| | Java (Spark's source and sinks) | kafka-python | librdkafka (confluent-kafka) |
|---|---|---|---|
| user | `sasl.jaas.config` | `sasl_plain_username`, `sasl_plain_password` | `sasl.username`, `sasl.password` |
| certificates | JKS, PKCS12, PEM | an `SSLContext`, of files in PEM | files in PEM |
| another name of the broker | `ssl.endpoint.identification.algorithm=` | `check_hostname` | the same, `none` |
| secrets | by reference to a file | by value | by value |
"""

import json
import logging
import ssl
from collections.abc import Mapping
from typing import Any

from streamskit.api import jaas
from streamskit.api.client_setting_values import PRODUCER
from streamskit.api.client_settings import OPEN, BootstrapServers, ClientSettings, Role
from streamskit.common.secret import Told
from streamskit.kafka.key_material import key_material
from streamskit.kafka.several_brokers import OneOfSeveral

client_log = logging.getLogger("streamskit.librdkafka")
"""librdkafka says there that a connection is lost; what matters is raised or shown as a state."""

client_log.addHandler(logging.NullHandler())
client_log.propagate = False

PLAIN = ("security.protocol", "client.id", "client.dns.lookup")
"""Settings that all three libraries have, with the same values."""

PROVIDER = {
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
}
"""Kafka's own way (KIP-297) to have a client read a value from a file when it is made: `${file:path:name}`."""


def for_java(servers: BootstrapServers, role: Role) -> dict[str, str]:
    """Return the settings of a Java client; secrets are replaced by references to the file that holds them.

    Anyone may see the settings: in Spark's plans, in its logs and in the bytes that it sends to its executors. These
    have to find the file under the same path.

    >>> for_java("broker:9092", "admin")
    {'bootstrap.servers': 'broker:9092'}
    """
    settings = ClientSettings.of(servers)
    told = {"bootstrap.servers": settings.bootstrap_servers}
    for name, value in settings.revealed(role).items():
        own = f"{role}.{name}"
        written = own if own in settings.properties else name
        told[name] = value if name in OPEN or name in PRODUCER else f"${{file:{settings.path}:{written}}}"
    return told | (PROVIDER if any(value.startswith("${file:") for value in told.values()) else {})


def java_text(servers: BootstrapServers, role: Role) -> str:
    """Return the settings of a Java client as one text: the address, or JSON (`streamskit/jvm/ClientSettings.scala`).

    >>> java_text("broker:9092", "admin")
    'broker:9092'
    """
    told = for_java(servers, role)
    return told["bootstrap.servers"] if len(told) == 1 else json.dumps(told)


def for_kafka_python(servers: BootstrapServers, role: Role, **defaults: Any) -> dict[str, Any]:
    """Return the settings of a client of kafka-python.

    Args:
        servers: the broker's address, with what clients show to be let in.
        role: which client it is.
        defaults: what holds where those settings do not say otherwise.

    Raises:
        StreamsError: a store of certificates cannot be read.

    >>> for_kafka_python("a:9092", "admin")
    {'bootstrap_servers': ['a:9092']}
    """
    settings = ClientSettings.of(servers)
    own = settings.revealed(role)
    told: dict[str, Any] = defaults | {"bootstrap_servers": settings.bootstrap_servers.split(",")}
    if len(told["bootstrap_servers"]) > 1:
        told["kafka_client"] = OneOfSeveral
    told |= {name.replace(".", "_"): own[name] for name in PLAIN if name in own}
    protocol = own.get("security.protocol", "")
    if protocol.startswith("SASL"):
        username, password = jaas.credentials(own["sasl.jaas.config"])
        told |= {"sasl_mechanism": own["sasl.mechanism"], "sasl_plain_username": username}
        told["sasl_plain_password"] = Told(password.reveal())
    if protocol.endswith("SSL"):
        told["ssl_context"] = _context(own)
    return told


def for_librdkafka(servers: BootstrapServers, role: Role) -> dict[str, Any]:
    """Return the settings of a client of confluent-kafka.

    Raises:
        StreamsError: a store of certificates cannot be read.

    >>> for_librdkafka("broker:9092", "consumer")
    {'bootstrap.servers': 'broker:9092'}
    """
    settings = ClientSettings.of(servers)
    own = settings.revealed(role)
    told: dict[str, Any] = {"bootstrap.servers": settings.bootstrap_servers}
    told |= {name: own[name] for name in PLAIN if name in own}
    protocol = own.get("security.protocol", "")
    if protocol.startswith("SASL"):
        username, password = jaas.credentials(own["sasl.jaas.config"])
        told |= {"sasl.mechanism": own["sasl.mechanism"], "sasl.username": username}
        told["sasl.password"] = Told(password.reveal())
    if protocol.endswith("SSL"):
        files = key_material(own)
        named = {
            "ssl.ca.location": files.ca,
            "ssl.certificate.location": files.certificates,
            "ssl.key.location": files.key,
        }
        told |= {name: str(value) for name, value in named.items() if value is not None}
        told |= {} if files.key_password is None else {"ssl.key.password": Told(files.key_password)}
        told["ssl.endpoint.identification.algorithm"] = "https" if _names_matter(own) else "none"
    return told


def _context(own: Mapping[str, str]) -> ssl.SSLContext:
    files = key_material(own)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = _names_matter(own)
    if files.ca is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(files.ca)
    if files.certificates is not None:
        context.load_cert_chain(files.certificates, files.key, files.key_password)
    return context


def _names_matter(own: Mapping[str, str]) -> bool:
    return own.get("ssl.endpoint.identification.algorithm", "https") != ""
