"""`ClientSettings`: where a Kafka cluster is, and how its clients connect, with Kafka's setting names.

Secret values are `Secret`s, which are not shown when printed. Another process that needs them gets the path of a file
that only this user can read: they appear in no command line, no Spark plan and no log.
"""

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from streamskit.api import jaas
from streamskit.api.client_setting_values import PRODUCER, PROTOCOLS, check
from streamskit.common.errors import StreamsError
from streamskit.common.names import unknown_name
from streamskit.common.private_files import can_be_referred_to, write_private
from streamskit.common.properties_files import is_ascii, lines
from streamskit.common.secret import Secret, Told, revealed

logger = logging.getLogger("streamskit")

ADDRESS_VARIABLE, FILE_VARIABLE = "STREAMSKIT_BOOTSTRAP_SERVERS", "STREAMSKIT_COMMAND_CONFIG"
"""The environment variables that name a cluster: its address, and a file with the settings of its clients."""

Role: TypeAlias = Literal["consumer", "producer", "admin"]
"""What a client is for; a setting that begins with this and a dot applies to such clients only."""

PREFIX = re.compile(r"(?:(main|restore|global)\.)?(consumer|producer|admin)\.")
"""The prefixes that a setting may have. Kafka Streams has several consumers, which are all the same here."""

OPEN = (
    "security.protocol", "client.id", "client.dns.lookup", "sasl.mechanism",
    "ssl.truststore.type", "ssl.truststore.location", "ssl.keystore.type", "ssl.keystore.location",
    "ssl.endpoint.identification.algorithm", "ssl.protocol", "ssl.enabled.protocols",
)  # fmt: skip
SECRETS = (
    "sasl.jaas.config", "sasl.username", "sasl.password", "ssl.truststore.password", "ssl.truststore.certificates",
    "ssl.keystore.password", "ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.key.password",
)  # fmt: skip
"""Settings of Kafka's type `password`, and what goes into `sasl.jaas.config`."""

CREDENTIALS = ("username", "password")
"""What a user shows: settings with `sasl.` in front, which become `sasl.jaas.config`."""

LAST_PORT = 2**16 - 1

SECURITY = re.compile(r"(security|sasl|ssl)\..*")

ADDRESSES = "host:port, such as 'localhost:9092', several with commas between them"
"""What an address of brokers is, as the object of a sentence."""

NO_BROKER = "none"
"""What stands in the place of an address in the config of a test driver, which needs no broker."""

Value: TypeAlias = str | Secret


def are_addresses(servers: str) -> bool:
    """Whether a text names brokers, each with its port, or says that there are none.

    >>> are_addresses("one:9092, [::1]:9092"), are_addresses("none"), are_addresses("PLAINTEXT://one:9092")
    (True, True, True)
    >>> are_addresses("localhost"), are_addresses("http://localhost:9092")
    (False, False)
    """
    if servers == NO_BROKER:
        return True
    parts = [server.strip() for server in servers.split(",") if server.strip()]
    return bool(parts) and all(map(_is_brokers_address, parts))


def _is_brokers_address(server: str) -> bool:
    protocol, found, address = server.rpartition("://")
    return is_address(address) and (not found or protocol in PROTOCOLS)  # librdkafka takes no other


def is_address(server: str) -> bool:
    """Whether a text names one host and its port.

    >>> is_address("127.0.0.1:8080"), is_address(":8080"), is_address("one:99999")
    (True, False, False)
    """
    host, _, port = server.rpartition(":")
    return bool(host) and port.isdecimal() and int(port) <= LAST_PORT


def host_and_port(server: str) -> tuple[str, int]:
    """Return the host and the port of an address; Kafka's clients pass over a protocol in front of it.

    Raises:
        ValueError: it has no port.

    >>> host_and_port("PLAINTEXT://one:9092"), host_and_port("[::1]:9092")
    (('one', 9092), ('::1', 9092))
    """
    host, _, port = server.strip().rpartition("://")[2].rpartition(":")
    return host.strip("[]"), int(port)


@dataclass(frozen=True)
class ClientSettings:
    """Where a Kafka cluster is, and how its clients connect to it.

    Args:
        bootstrap_servers: the brokers, as "host:port", several with commas between them.
        properties: settings under the names of Kafka's clients, checked by `of`.
        file: the properties file that they were read from, if every client can read the secrets from it: the file has
            the same values, is in ASCII, and has a path that Kafka can refer to.

    >>> settings = ClientSettings.of("broker:9093", {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN",
    ...                                              "sasl.username": "alice", "sasl.password": "hush"})
    >>> settings
    ClientSettings('broker:9093', SASL_SSL, PLAIN, 'User:alice')
    """

    bootstrap_servers: str
    properties: Mapping[str, Value] = field(default_factory=dict)
    file: Path | None = field(default=None, compare=False)

    @classmethod
    def of(
        cls,
        bootstrap_servers: "str | ClientSettings",
        settings: "Mapping[str, Any] | str | Path | ClientSettings | None" = None,
    ) -> "ClientSettings":
        """Return an address and settings as one value.

        An address alone gets the settings in the file that STREAMSKIT_COMMAND_CONFIG names, if it has a broker in
        common with STREAMSKIT_BOOTSTRAP_SERVERS.

        Args:
            bootstrap_servers: the brokers, as "host:port"; or an existing `ClientSettings`.
            settings: the settings by Kafka's names, or a properties file with them.

        Raises:
            StreamsError: an address has no port; or a setting is unknown, missing, or has a value that the clients do
                not accept. No message reveals the value of a secret.

        >>> ClientSettings.of("broker:9093", {"ssl.truststor.type": "PEM"})
        Traceback (most recent call last):
        ...
        streamskit.common.errors.StreamsError: There is no client setting 'ssl.truststor.type': did you mean \
'ssl.truststore.type'?
        """
        if isinstance(bootstrap_servers, ClientSettings):
            if settings is None:
                return bootstrap_servers
            bootstrap_servers = bootstrap_servers.bootstrap_servers
        if bootstrap_servers and not are_addresses(bootstrap_servers):
            raise StreamsError(f"bootstrap_servers is {bootstrap_servers!r}; give {ADDRESSES}.")
        if settings is None:
            settings = _file_of_environment(bootstrap_servers)
        if settings is None:
            return cls(bootstrap_servers)
        if isinstance(settings, ClientSettings):
            return replace(settings, bootstrap_servers=bootstrap_servers)
        if isinstance(settings, Mapping):
            return cls(bootstrap_servers, checked(settings))
        file = Path(settings).absolute()
        given = read_file(file)
        taken = checked(given)
        is_whole = all(given.get(name) == value for name, value in taken.items() if isinstance(value, Secret))
        return cls(bootstrap_servers, taken, file if is_whole and is_ascii(file) and can_be_referred_to(file) else None)

    def __str__(self) -> str:
        return self.bootstrap_servers

    def __repr__(self) -> str:
        words = [repr(self.bootstrap_servers)]
        if self.properties:
            own = self.revealed("admin")
            words += [own.get("security.protocol", "PLAINTEXT")]
            words += [own["sasl.mechanism"]] if "sasl.mechanism" in own else []
            words += [repr(self.principal)] if self.principal else []
        return f"ClientSettings({', '.join(words)})"

    def __hash__(self) -> int:
        return hash((self.bootstrap_servers, *sorted(self.properties.items())))

    def __reduce__(self) -> tuple[Any, ...]:
        # Only the file's path is sent to other processes: the bytes of a plan or function hold no secret.
        if not self.has_secrets:
            return ClientSettings, (self.bootstrap_servers, dict(self.properties))
        return _from_file, (self.bootstrap_servers, str(self.path), self.file is not None)

    @property
    def is_secured(self) -> bool:
        """Whether clients encrypt what they send, or say who they are."""
        return bool(self.properties) and any(
            self.revealed(role).get("security.protocol", "PLAINTEXT") != "PLAINTEXT"
            for role in ("admin", "consumer", "producer")
        )  # fmt: skip

    @property
    def has_secrets(self) -> bool:
        """Whether other processes need a file of them, rather than the settings themselves."""
        return any(isinstance(value, Secret) for value in self.properties.values())

    @property
    def path(self) -> Path:
        """A file with the properties, which only this user can read: the one they come from, or one written here."""
        return self.file or _written(self)

    @property
    def principal(self) -> str:
        """The principal that a broker sees, such as "User:alice"; "" where only the broker knows it."""
        own = self.revealed("admin")
        if "sasl.jaas.config" not in own:
            return ""
        return f"User:{jaas.credentials(own['sasl.jaas.config']).username}"

    def of_role(self, role: Role) -> dict[str, Value]:
        """Return the settings for one kind of client: those for all clients, overridden by those with its prefix."""
        plain = {name: value for name, value in self.properties.items() if PREFIX.match(name) is None}
        own = {
            name.removeprefix(f"{role}."): value
            for name, value in self.properties.items()
            if name.startswith(f"{role}.")
        }
        return plain | own

    def revealed(self, role: Role) -> dict[str, str]:
        """Return what `of_role` does, with secrets in plain text, to create a client."""
        settings = self.of_role(role).items()
        return {name: Told(value.reveal()) if isinstance(value, Secret) else value for name, value in settings}


BootstrapServers: TypeAlias = str | ClientSettings
"""Where a cluster is: its address alone, or together with the settings of its clients."""


def is_client_setting(name: str) -> bool:
    """Whether a key of a properties file is one of these settings, or a misspelling of one."""
    prefix, bare = _split(name)
    is_producers = prefix == "producer." and bare in PRODUCER
    return is_producers or bare in OPEN or SECURITY.fullmatch(bare) is not None


def check_name(name: str) -> None:
    """Make sure that there is such a setting.

    Raises:
        StreamsError: there is none.
    """
    prefix, bare = _split(name)
    known = (*OPEN, *SECRETS, *(PRODUCER if prefix == "producer." else ()))
    if bare not in known:
        raise StreamsError(unknown_name("client setting", name, [prefix + each for each in known]))


def is_secret(name: str) -> bool:
    """Whether a key of a properties file holds one of these secrets."""
    return PREFIX.sub("", name) in SECRETS


def checked(settings: Mapping[str, Any]) -> dict[str, Value]:
    """Return checked settings as they are kept: complete, under Kafka's own names, and with secrets hidden.

    Raises:
        StreamsError: one is unknown, missing, or has a value that the clients do not accept.
    """
    kept: dict[str, Value] = {}
    for name, value in settings.items():
        check_name(name)
        prefix, bare = _split(name)
        if isinstance(value, Path | Secret):
            value = str(value) if isinstance(value, Path) else value.reveal()
        if not isinstance(value, str):
            raise StreamsError(f"The client setting {name} is not text: Kafka's clients take text.")
        kept[prefix + bare] = Secret(value.strip()) if bare in SECRETS else value.strip()
    for_all = {part: kept.get(f"sasl.{part}") for part in CREDENTIALS}
    for prefix in dict.fromkeys(_split(name)[0] for name in kept):
        _write_credentials(kept, prefix, for_all)
    made = ClientSettings("", kept)
    for role in ("admin", "consumer", "producer"):
        check(made.revealed(role))
    return kept


def read_file(path: Path) -> dict[str, Value]:
    """Return the client settings in a properties file; its other settings are for other programs.

    Raises:
        StreamsError: there is no such file, or it cannot be read.
    """
    try:
        found = {each.name: each.value for each in lines(path) if is_client_setting(each.name)}
    except OSError as failure:
        raise StreamsError(f"The file with client settings, {path}, cannot be read: {failure.strerror}.") from failure
    return {name: Secret(value) if is_secret(name) else value for name, value in found.items()}


def _file_of_environment(bootstrap_servers: str) -> str | None:
    """Return the file with client settings that the environment names for these brokers."""
    file, named = os.environ.get(FILE_VARIABLE), os.environ.get(ADDRESS_VARIABLE, "")
    if not file or not bootstrap_servers:
        return None
    if _brokers(named) & _brokers(bootstrap_servers):
        return file
    if (bootstrap_servers, named) not in _told:
        _told.add((bootstrap_servers, named))
        logger.warning(
            "%s is set, and clients of the brokers at %s do not use it: it is for the brokers in %s, which %s.",
            FILE_VARIABLE, bootstrap_servers, ADDRESS_VARIABLE, f"are {named}" if named else "is not set",
        )  # fmt: skip
    return None


_told: set[tuple[str, str]] = set()
"""The brokers (and those that the environment names) for which the unused file was already reported."""


def _brokers(addresses: str) -> set[str]:
    return {each.strip().lower() for each in addresses.split(",") if each.strip()}


def _split(name: str) -> tuple[str, str]:
    """Return the kind of client that a setting is for, with a dot, and its name without that."""
    found = PREFIX.match(name)
    if found is None:
        return ("producer." if name in PRODUCER else "", name)
    return f"{found[2]}.", name[found.end() :]


def _write_credentials(kept: dict[str, Value], prefix: str, for_all: Mapping[str, Value | None]) -> None:
    """Put a user's name and password where Kafka has them, in `sasl.jaas.config`.

    Args:
        kept: the settings, which this changes.
        prefix: the kind of clients, or "" for all.
        for_all: the name and password of all clients, of which one kind may have only one of its own.
    """
    own = {part: kept.pop(f"{prefix}sasl.{part}", None) for part in CREDENTIALS}
    if all(value is None for value in own.values()):
        return
    username, password = (for_all[part] if own[part] is None else own[part] for part in CREDENTIALS)
    if username is None or password is None:
        missing = f"{prefix}sasl.{'username' if username is None else 'password'}"
        raise StreamsError(
            f"The client settings have one of {prefix}sasl.username and {prefix}sasl.password: {missing} is missing."
        )
    if f"{prefix}sasl.jaas.config" in kept:
        raise StreamsError("The client settings name a user twice: in sasl.username and in sasl.jaas.config.")
    mechanism = revealed(kept.get(f"{prefix}sasl.mechanism") or kept.get("sasl.mechanism", ""))
    kept[f"{prefix}sasl.jaas.config"] = Secret(jaas.line(mechanism, revealed(username), revealed(password)))


_files: dict[tuple[tuple[str, Value], ...], Path] = {}


def _written(settings: ClientSettings) -> Path:
    """Return a file with the settings, which this process has written."""
    import javaproperties

    key = tuple(sorted(settings.properties.items()))
    if (path := _files.get(key)) is None or not path.is_file():
        text = javaproperties.dumps({name: revealed(value) for name, value in key}, timestamp=False)  # it is ASCII
        path = _files[key] = write_private("client.properties", text)
    return path


def _from_file(bootstrap_servers: str, path: str, is_users: bool) -> ClientSettings:
    """Return settings that have come from another process."""
    made = ClientSettings.of(bootstrap_servers, path)
    return made if is_users else replace(made, file=None)  # the file goes when the other process ends
