"""The values that the settings of Kafka's clients may have, for the settings that all clients here support."""

import base64
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from streamskit.api import jaas
from streamskit.common.errors import StreamsError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
REFUSED = {
    "GSSAPI": "librdkafka, which reads stores and watches topics here, comes without Kerberos in confluent-kafka's "
    "wheel",
    "OAUTHBEARER": "streamskit does not hand tokens to its clients: Java's, kafka-python and librdkafka each want them "
    "in another way",
}
"""Why some of Kafka's mechanisms are refused."""

DNS_LOOKUPS = ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")

STORE_TYPES = ("JKS", "PKCS12", "PEM")

PRODUCER = {
    "compression.type": ("none", "gzip", "snappy", "lz4", "zstd"),
    **dict.fromkeys(("linger.ms", "batch.size", "buffer.memory", "delivery.timeout.ms", "max.block.ms"), ()),
}
"""Settings of Spark's producers, each with its values; () stands for a whole number. No other client has them."""

PBES2 = bytes.fromhex("06092a864886f70d01050d")
"""The bytes by which an encrypted key names its encryption scheme (RFC 8018)."""


def check(own: Mapping[str, str]) -> None:
    """Make sure that the settings for one kind of client can be used.

    Raises:
        StreamsError: they cannot; the message names the setting.
    """
    protocol = own.get("security.protocol", "")
    if not protocol and (needing := [name for name in own if name.startswith(("sasl.", "ssl."))]):
        raise StreamsError(
            f"The client settings have {needing[0]} and no security.protocol, without which Kafka's clients neither "
            "encrypt nor say who they are: set it to SASL_SSL, SSL or SASL_PLAINTEXT."
        )
    if protocol:
        _one_of("security.protocol", protocol, PROTOCOLS)
    if protocol.startswith("SASL"):
        _check_user(own)
    for store in ("truststore", "keystore"):
        _check_store(own, store)
    _check_producer(own)
    _one_of("client.dns.lookup", own.get("client.dns.lookup", DNS_LOOKUPS[0]), DNS_LOOKUPS)
    if own.get("ssl.endpoint.identification.algorithm", "https") not in ("https", ""):
        raise StreamsError(
            "ssl.endpoint.identification.algorithm has to be https, "
            "or empty if the brokers' certificates name other hosts."
        )
    for name in ("ssl.protocol", "ssl.enabled.protocols"):
        for version in own.get(name, "TLSv1.3").split(","):
            _one_of(name, version.strip(), ("TLSv1.2", "TLSv1.3"))


def _check_producer(own: Mapping[str, str]) -> None:
    for name in PRODUCER.keys() & own.keys():
        if PRODUCER[name]:
            _one_of(name, own[name], PRODUCER[name])
        elif not own[name].isdecimal():
            raise StreamsError(f"{name} is '{own[name]}'; give a whole number, 0 or more.")


def _check_user(own: Mapping[str, str]) -> None:
    mechanism = own.get("sasl.mechanism")
    if mechanism is None:
        raise StreamsError(f"sasl.mechanism is missing in the client settings: give {' or '.join(MECHANISMS)}.")
    if mechanism not in MECHANISMS:
        why = REFUSED.get(mechanism, "not all clients that streamskit has can show that to a broker")
        raise StreamsError(
            f"sasl.mechanism is '{mechanism}', and {why}: give {' or '.join(MECHANISMS)}, or certificates "
            "(security.protocol=SSL)."
        )
    if "sasl.jaas.config" not in own:
        raise StreamsError(
            f"The client settings do not say who to be with {mechanism}: give sasl.username and sasl.password, or "
            "sasl.jaas.config as Kafka's own clients have it."
        )
    jaas.credentials(own["sasl.jaas.config"])


def _check_store(own: Mapping[str, str], store: str) -> None:
    type_, location = own.get(f"ssl.{store}.type", "").upper(), own.get(f"ssl.{store}.location")
    if type_:
        _one_of(f"ssl.{store}.type", type_, STORE_TYPES)
    if location is not None:
        _check_file(store, Path(location), type_)
    inline = "ssl.truststore.certificates" if store == "truststore" else "ssl.keystore.key"
    if inline in own and type_ != "PEM":
        raise StreamsError(f"{inline} holds text in PEM: set ssl.{store}.type=PEM.")
    if inline in own and location is not None:
        raise StreamsError(f"{inline} and ssl.{store}.location say the same thing twice: leave one of them.")
    if store == "keystore" and ("ssl.keystore.key" in own) != ("ssl.keystore.certificate.chain" in own):
        raise StreamsError("ssl.keystore.key and ssl.keystore.certificate.chain belong together: give both.")
    if store == "keystore" and type_ == "PEM":
        _check_key(own.get(inline) or Path(location or os.devnull).read_text(encoding="latin-1"))
    if type_ == "PEM" and f"ssl.{store}.password" in own:
        raise StreamsError(
            f"A store in PEM has no password: leave ssl.{store}.password out. That of its key is ssl.key.password."
        )


def _check_file(store: str, path: Path, type_: str) -> None:
    if not path.is_file():
        raise StreamsError(f"ssl.{store}.location names {path}, and there is no such file.")
    try:
        is_pem = b"-----BEGIN" in path.read_bytes()
    except OSError as failure:
        raise StreamsError(f"ssl.{store}.location names {path}, which cannot be read: {failure.strerror}.") from failure
    if is_pem and type_ != "PEM":  # without a type Java takes it for one of its own stores
        raise StreamsError(f"ssl.{store}.location names {path}, which is in PEM: set ssl.{store}.type=PEM.")
    if type_ == "PEM" and not is_pem:
        raise StreamsError(f"ssl.{store}.type is PEM, and {path} is not in PEM: set it to PKCS12, if it is that.")


def _check_key(text: str) -> None:
    """Make sure that Java can read a key in PEM: its clients do not support OpenSSL's default key encryption."""
    found = re.search(r"-----BEGIN ENCRYPTED PRIVATE KEY-----([^-]*)-----END", text)
    if found is not None and PBES2 in _decoded(found[1]):
        raise StreamsError(
            "ssl.keystore.* has a key in PEM that is encrypted with PBES2, which Java's clients do not read. Keep the "
            "key and its certificate in PKCS12: openssl pkcs12 -export -in key-and-certificate.pem -out key.p12; then "
            "set ssl.keystore.type=PKCS12, ssl.keystore.location and ssl.keystore.password."
        )


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except ValueError:
        return b""  # whatever reads it reports what is wrong with it


def _one_of(name: str, value: str, values: Iterable[str]) -> None:
    if value not in values:
        raise StreamsError(f"{name} is '{value}'; give {' or '.join(values)}.")
