"""A broker that encrypts, asks who one is, and allows what access control lists give; certificates are made here."""

import datetime
import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from streamskit.broker import EmbeddedBroker
from streamskit.broker.settings import free_ports
from streamskit.kafka.connection import admin_client
from streamskit.testing import wait_until

HOST = "127.0.0.1"
DAYS = (-1, 2)
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
KINDS = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional id": ResourceType.TRANSACTIONAL_ID,
    "cluster": ResourceType.CLUSTER,
}


class Authority:
    """Signs certificates, for a folder in which they lie as files in PEM and PKCS12."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        name = _name("streamskit test authority")
        builder = _begun(name, name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self._certificate = builder.sign(self._key, hashes.SHA256())
        self.ca = folder / "ca.pem"
        self.ca.write_bytes(self._certificate.public_bytes(Encoding.PEM))

    def issue(
        self,
        name: str,
        password: str | None = None,
        hosts: tuple[str, ...] = ("localhost",),
        days: tuple[int, int] = DAYS,
    ) -> Path:
        """Return a file in PEM with a certificate that is signed, and its key; the key is encrypted with a password.

        It is valid from so many days from now, to so many.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
        names += [x509.IPAddress(ipaddress.ip_address(HOST))] if "localhost" in hosts else []
        builder = _begun(_name(name), self._certificate.subject, key.public_key(), days)
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        path = self.folder / f"{name}.pem"
        path.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption) + certificate.public_bytes(Encoding.PEM)
        )
        store = pkcs12.serialize_key_and_certificates(
            name.encode(),
            key,
            certificate,
            [self._certificate],
            BestAvailableEncryption((password or "changeit").encode()),
        )
        path.with_suffix(".p12").write_bytes(store)
        return path


@dataclass(frozen=True)
class SecuredBroker:
    """A broker with three listeners beside the open one: its address for each, and who signs certificates.

    On the open listener everybody is `User:ANONYMOUS`, who may do all: that is how tests administer it.
    """

    open: EmbeddedBroker
    sasl_ssl: str
    ssl: str
    sasl_plaintext: str
    authority: Authority

    def user(self, name: str, password: str, mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
        """Make a user for SCRAM, and return the settings of his clients."""
        user = UserScramCredentialUpsertion(name, ScramMechanism[mechanism.replace("-", "_")], password, 4096)
        with admin_client(self.open.bootstrap_servers) as admin:
            said = admin.alter_user_scram_credentials([user])
        assert said == {name: None}
        return self.sasl(name, password, mechanism)

    def sasl(self, name: str, password: str, mechanism: str) -> dict[str, str]:
        """Return the settings of a user's clients over SASL_SSL."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.username": name,
            "sasl.password": password,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.ca),
        }

    def allow(self, principal: str, *rights: tuple[str, str, str]) -> None:
        """Give rights: the operation, the kind of what it is for, and the beginning of its name."""
        self._add(principal, rights, ACLPermissionType.ALLOW)

    def deny(self, principal: str, *rights: tuple[str, str, str]) -> None:
        """Take rights away, whoever has given them."""
        self._add(principal, rights, ACLPermissionType.DENY)

    def _add(self, principal: str, rights: tuple[tuple[str, str, str], ...], kind: ACLPermissionType) -> None:
        acls = [
            ACL(principal, "*", ACLOperation[operation], kind, _pattern(resource, name))
            for operation, resource, name in rights
        ]
        with admin_client(self.open.bootstrap_servers) as admin:
            assert not admin.create_acls(acls)["failed"]
            wait_until(lambda: all(_is_there(admin, acl) for acl in acls), "the rights that were given", 60)

    def allow_application(self, principal: str, name: str) -> None:
        """Give the rights that an application needs whose id, topics and groups begin so (docs/operations.md)."""
        self.allow(
            principal,
            *((operation, "topic", name) for operation in ("READ", "WRITE", "CREATE", "DELETE", "DESCRIBE_CONFIGS")),
            ("READ", "group", name),
            ("WRITE", "transactional id", name),
        )


@contextmanager
def secured_broker(folder: Path, plain_users: dict[str, str]) -> Iterator[SecuredBroker]:
    """Start a broker whose clients have to show who they are, with users for PLAIN."""
    folder.mkdir(parents=True, exist_ok=True)
    authority = Authority(folder)
    server = authority.issue("broker")
    port, controller, sasl_ssl, ssl, sasl_plaintext = free_ports(5)
    listeners = {
        "PLAINTEXT": port, "CONTROLLER": controller, "SASL_SSL": sasl_ssl, "SSL": ssl, "SASL_PLAINTEXT": sasl_plaintext,
    }  # fmt: skip
    users = " ".join(f'user_{name}="{password}"' for name, password in plain_users.items())
    settings = {
        "listeners": ",".join(f"{name}://{HOST}:{number}" for name, number in listeners.items()),
        "advertised.listeners": ",".join(
            f"{name}://{HOST}:{number}" for name, number in listeners.items() if name != "CONTROLLER"
        ),
        "listener.security.protocol.map": ",".join(f"{name}:{name}" for name in listeners if name != "CONTROLLER")
        + ",CONTROLLER:PLAINTEXT",
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(server),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.ca),
        "listener.name.ssl.ssl.client.auth": "required",
    }
    for listener in ("sasl_ssl", "sasl_plaintext"):
        settings[f"listener.name.{listener}.plain.sasl.jaas.config"] = f"{PLAIN} required {users};"
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            settings[f"listener.name.{listener}.{mechanism}.sasl.jaas.config"] = f"{SCRAM} required;"
    with EmbeddedBroker(folder / "data", port, settings=settings) as broker:
        yield SecuredBroker(
            broker, f"{HOST}:{sasl_ssl}", f"{HOST}:{ssl}", f"{HOST}:{sasl_plaintext}", authority
        )  # fmt: skip


def _is_there(admin: KafkaAdminClient, acl: ACL) -> bool:
    """Whether the broker goes by a list of access control: it hears of it a moment after the controller."""
    pattern = acl.resource_pattern
    like = ResourcePatternFilter(pattern.resource_type, pattern.resource_name, pattern.pattern_type)
    found, _ = admin.describe_acls(ACLFilter(acl.principal, acl.host, acl.operation, acl.permission_type, like))
    return bool(found)


def _pattern(kind: str, name: str) -> ResourcePattern:
    form = ACLResourcePatternType.LITERAL if kind == "cluster" else ACLResourcePatternType.PREFIXED
    return ResourcePattern(KINDS[kind], name, form)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: tuple[int, int] = DAYS
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + datetime.timedelta(days=days[0]))
        .not_valid_after(now + datetime.timedelta(days=days[1]))
    )
