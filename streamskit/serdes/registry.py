"""A schema registry: where the schemas of records live, each with a number that the records carry.

Credentials are secret, as in `streamskit.api.client_settings`: another process gets the path of a file that only this
user can read.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from streamskit.common.errors import StreamsError
from streamskit.common.private_files import write_private
from streamskit.common.properties_files import lines
from streamskit.common.secret import Secret, revealed
from streamskit.serdes.compatibility import why_incompatible
from streamskit.serdes.serde import RegistryError


class RegisteredSchema(NamedTuple):
    """A schema as a registry keeps it: `kind` is AVRO, PROTOBUF or JSON."""

    kind: str
    text: str


PREFIX, URL = "schema.registry.", "schema.registry.url"

CREDENTIALS = (
    "basic.auth.user.info", "bearer.auth.credentials.source", "bearer.auth.token", "bearer.auth.logical.cluster",
    "bearer.auth.identity.pool.id",
)  # fmt: skip
CERTIFICATES = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.key.password")
"""Settings of Confluent's clients, by their names; Java's serdes need `PREFIX` before those of certificates."""

SECRETS = ("basic_auth_user_info", "bearer_auth_token", "bearer_auth_client_secret", "ssl_key_password")
"""Settings that are not shown, by their names here."""

_clients: dict[tuple[Any, ...], Any] = {}
_fetched: dict[str, dict[int, RegisteredSchema]] = {}
"""The schemas from real registries, by address and id: the schema of an id never changes."""


class SchemaRegistry:
    """A thin handle on a schema registry; Confluent's own client (`client`) does the work.

    `mock://<name>` is a registry in this process, the same one for each handle of that name. Spark's workers are other
    processes: they get what such a registry holds when the query starts. They query a real registry themselves.

    Args:
        url: `mock://course`, or the address of a registry, like `http://localhost:8081`.
        settings: more settings of Confluent's client, `_` for each dot, as in `basic_auth_user_info="name:password"`;
            name and password may also be in the address.

    >>> registry = SchemaRegistry("mock://lesson")
    >>> registry.register("trades-value", '"string"', "AVRO")
    1
    >>> SchemaRegistry("https://registry:8081", basic_auth_user_info="name:password")
    SchemaRegistry('https://registry:8081')

    Mirrors `io.confluent.kafka.schemaregistry.client.SchemaRegistryClient`.
    """

    def __init__(self, url: str, **settings: Any) -> None:
        self.url, user_info = _parted(url)
        if user_info and "basic_auth_user_info" not in settings:
            settings["basic_auth_user_info"] = user_info
        self._settings = {name: _hidden(name, value) for name, value in settings.items()}
        self._file: Path | None = None
        self._known = {} if self.is_mock else _fetched.setdefault(self.url, {})
        self._is_copy = False

    def __repr__(self) -> str:
        return f"SchemaRegistry({self.url!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SchemaRegistry) and self.url == other.url

    def __hash__(self) -> int:
        return hash(self.url)

    def __reduce__(self) -> tuple[Any, ...]:
        known = self._all() if self.is_mock and not self._is_copy else self._known
        return _carried, (self.url, self._open, known, self._path_text)

    @property
    def _open(self) -> dict[str, Any]:
        """The settings that are not secret."""
        return {name: value for name, value in self._settings.items() if not isinstance(value, Secret)}

    @property
    def _has_secrets(self) -> bool:
        return self._open != self._settings

    @property
    def _path_text(self) -> str:
        """The file with the settings that are secret, which only this user can read; "" if there are none."""
        secrets = {name: value.reveal() for name, value in self._settings.items() if isinstance(value, Secret)}
        if secrets and (self._file is None or not self._file.is_file()):
            import javaproperties

            text = {name.replace("_", "."): value for name, value in secrets.items()}
            self._file = write_private("registry.properties", javaproperties.dumps(text, timestamp=False))
        return str(self._file or "")

    def describe(self) -> dict[str, Any]:
        """Return it as JSON, for another process: a mock registry with all its schemas, a real one with its settings.

        It contains no password, but the path of a file with the password: the one that `from_properties` read, or one
        that is deleted when this process ends.

        Raises:
            ValueError: a setting is not text or a number.
        """
        if wrong := [name for name, value in self._open.items() if not isinstance(value, str | int | float)]:
            raise ValueError(f"The setting '{wrong[0]}' of {self} is not text or a number, and cannot be written down.")
        known = (self._known if self._is_copy else self._all()) if self.is_mock else {}
        schemas = [[id_, *each] for id_, each in known.items()]
        return {"url": self.url, "settings": self._open, "secrets": self._path_text, "schemas": schemas}

    @staticmethod
    def from_properties(properties: Mapping[str, Any] | str | Path) -> "SchemaRegistry":
        """Return the registry that the settings of Java's serdes and tools name, with its credentials.

        Args:
            properties: a dict, or the path of a properties file, with `schema.registry.url`, `basic.auth.user.info` and
                the like, by Confluent's names. Other settings, such as those of a Kafka client, are ignored.

        Raises:
            RegistryError: there is no `schema.registry.url`, no such file, or a source of credentials that Python's
                client does not support.

        >>> SchemaRegistry.from_properties({"schema.registry.url": "http://registry:8081",
        ...                                 "basic.auth.credentials.source": "USER_INFO",
        ...                                 "basic.auth.user.info": "name:password"})
        SchemaRegistry('http://registry:8081')

        Mirrors `AbstractKafkaSchemaSerDeConfig`.
        """
        given = dict(properties) if isinstance(properties, Mapping) else _read(Path(properties))
        if not given.get(URL):
            has = ", ".join(sorted(given)) or "nothing"
            raise RegistryError(f"The settings of a schema registry lack its address, {URL}; they have: {has}.")
        source = given.get("basic.auth.credentials.source", "USER_INFO")
        if source not in ("USER_INFO", "URL"):
            raise RegistryError(
                f"basic.auth.credentials.source is {source}; here it can be USER_INFO, with basic.auth.user.info, or "
                "URL, with name and password in the address."
            )
        settings: dict[str, Any] = {}
        for name, value in given.items():
            short = name.removeprefix(PREFIX)
            if short in CREDENTIALS or (short in CERTIFICATES and short != name):
                settings[short.replace(".", "_")] = str(value)
            elif name.startswith(PREFIX) and name != URL:
                raise RegistryError(
                    f"{name} is not a known setting; those with this beginning are: "
                    f"{', '.join(PREFIX + each for each in ('url', *CERTIFICATES))}."
                )
        registry = SchemaRegistry(str(given[URL]), **settings)
        if not isinstance(properties, Mapping) and set(SECRETS) & registry._settings.keys() <= settings.keys():
            registry._file = Path(properties).absolute() if registry._has_secrets else None
        return registry

    @staticmethod
    def described(said: Mapping[str, Any]) -> "SchemaRegistry":
        """Return the registry that `describe` wrote down; a mock one has the schemas of that time."""
        known = {int(id_): RegisteredSchema(kind, text) for id_, kind, text in said["schemas"]}
        return _carried(said["url"], said["settings"], known, said.get("secrets", ""))

    @property
    def is_mock(self) -> bool:
        """Whether this registry lives in the process that made it."""
        return self.url.startswith("mock://")

    @property
    def client(self) -> Any:
        """Confluent's `SchemaRegistryClient`."""
        from confluent_kafka.schema_registry import SchemaRegistryClient

        own = self._settings
        if self._file is not None and not self._has_secrets:  # it has come from another process
            own = own | _secrets(self.url, self._file)
        at = (self.url, *sorted(own.items(), key=lambda setting: setting[0]))
        if at not in _clients:
            told = {name.replace("_", "."): revealed(value) for name, value in own.items()}
            _clients[at] = SchemaRegistryClient.new_client({"url": self.url, **told})
        return _clients[at]

    def register(self, subject: str, text: str, kind: str) -> int:
        """Register a schema and return its id; a registered schema keeps its id.

        Args:
            subject: the name under which the schema's versions are kept, by convention `<topic>-value`.
            text: the schema; for Protobuf the base64 of its FileDescriptorProto.
            kind: AVRO, PROTOBUF or JSON.

        Raises:
            RegistryError: the registry does not answer, or refuses a schema that cannot read what the subject's latest
                one wrote. A mock registry always applies that rule (BACKWARD), a real one the rule it is set to.
        """
        from confluent_kafka.schema_registry import Schema

        if self.is_mock:
            self._check(subject, text, kind)
        doing = f"register a schema as '{subject}'"
        return int(self._ask(doing, lambda: self.client.register_schema(subject, Schema(text, kind))))

    def schema(self, schema_id: int, kind: str) -> str:
        """Return the text of the schema with a number.

        Raises:
            ValueError: there is none, or it is of another kind.
            RegistryError: the registry does not answer.
        """
        if schema_id not in self._known and not self._is_copy:
            found = self._ask(f"find schema {schema_id}", lambda: self._find(schema_id, kind))
            if found is not None:
                self._known[schema_id] = found
        if schema_id not in self._known:
            when = ", as it was when the query started" if self._is_copy else ""
            raise ValueError(f"its schema id is {schema_id}, and {self} has no such schema{when}")
        found = self._known[schema_id]
        if found.kind != kind:
            raise ValueError(f"its schema id is {schema_id}, a schema of kind {found.kind}, not {kind}")
        return found.text

    def _find(self, schema_id: int, kind: str) -> RegisteredSchema | None:
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        try:
            # A registry keeps Protobuf as a .proto file; its compiled form is what can be read here.
            found = self.client.get_schema(schema_id, fmt="serialized" if kind == "PROTOBUF" else None)
        except SchemaRegistryError as failure:
            if failure.http_status_code == 404:
                return None
            raise
        return RegisteredSchema(found.schema_type or "AVRO", found.schema_str)

    def _all(self) -> dict[int, RegisteredSchema]:
        versions = [
            self.client.get_version(subject, number)
            for subject in self.client.get_subjects()
            for number in self.client.get_versions(subject)
        ]
        return {
            each.schema_id: RegisteredSchema(each.schema.schema_type or "AVRO", each.schema.schema_str)
            for each in versions
        }

    def _check(self, subject: str, text: str, kind: str) -> None:
        """Check what a real registry checks before it accepts a schema, but the mock of Confluent's client does not."""
        versions = [self.client.get_version(subject, number) for number in self.client.get_versions(subject)]
        if not versions or text in [each.schema.schema_str for each in versions]:
            return
        latest = max(versions, key=lambda each: int(each.version))
        old_kind = latest.schema.schema_type or "AVRO"
        why = (
            f"the subject's schemas are of kind {old_kind}, and this is {kind}"
            if old_kind != kind
            else why_incompatible(kind, text, latest.schema.schema_str)
        )
        if why is not None:
            raise RegistryError(
                f"{self} refuses the schema for '{subject}': it cannot read what version {latest.version} has "
                f"written: {why}. Give an added field a default, or take another subject."
            )

    def _ask(self, doing: str, question: Callable[[], Any]) -> Any:
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        try:
            return question()
        except SchemaRegistryError as failure:
            reason = f"the registry answered {failure.http_status_code}: {failure.error_message}"
            if failure.http_status_code in (401, 403):
                reason += ". Give credentials: SchemaRegistry(url, basic_auth_user_info='name:password')"
        except RegistryError:
            raise
        except Exception as failure:
            reason = f"no answer ({type(failure).__name__}: {failure}). Is it running at that address?"
        raise RegistryError(f"{self} could not {doing}: {reason}")


def _parted(url: str) -> tuple[str, str]:
    """Return an address, or several with commas between them, without name and password, and these as "name:password".

    >>> _parted("https://me:s%3Acret@registry:8081")
    ('https://registry:8081', 'me:s:cret')
    """
    addresses, user_info = [], ""
    for address in url.split(","):
        scheme, there, rest = address.partition("://")
        place, slash, path = rest.partition("/")
        user, _, host = place.rpartition("@")
        user_info = user_info or (unquote(user) if ":" in user else "")
        addresses.append(f"{scheme}{there}{host}{slash}{path}")
    return ",".join(addresses), user_info


def _hidden(name: str, value: Any) -> Any:
    return Secret(value) if name in SECRETS and isinstance(value, str) else value


def _read(file: Path) -> dict[str, str]:
    try:
        return {line.name: line.value for line in lines(file)}
    except OSError as failure:
        raise RegistryError(f"The settings of a schema registry cannot be read: {failure.strerror}: {file}.") from None
    except StreamsError as failure:
        raise RegistryError(str(failure)) from None


def _secrets(url: str, file: Path) -> dict[str, Secret]:
    """Return the settings of a registry that are secret, from the file that has them."""
    try:
        said = _read(file)
    except RegistryError:
        raise RegistryError(
            f"The credentials for the schema registry at {url} were in {file}, which cannot be read. A file for "
            "credentials in the code is deleted when the program ends: keep them in a file of your own, as in "
            "SchemaRegistry.from_properties('client.properties'), and start the application once more."
        ) from None
    found = {name.removeprefix(PREFIX).replace(".", "_"): value for name, value in said.items()}
    return {name: Secret(value) for name, value in found.items() if name in SECRETS}


def _carried(
    url: str, settings: dict[str, Any], known: dict[int, RegisteredSchema], secrets: str = ""
) -> SchemaRegistry:
    """Return the handle as it arrives in another process, which reads the secrets from a file when it needs them."""
    registry = SchemaRegistry(url, **settings)
    registry._file = Path(secrets) if secrets else None
    registry._known.update(known)
    registry._is_copy = registry.is_mock
    return registry
