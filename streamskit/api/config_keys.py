"""The keys of a configuration: what each is called here and in Kafka, what values it takes, and what it means.

Kafka's properties files hold more keys than Spark has counterparts for. `read` refuses those that would change what an
application computes or to whom it connects, and reports those that are only about speed: none is dropped in silence.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import javaproperties

from streamskit.api.auto_offset_reset import AutoOffsetReset
from streamskit.api.client_settings import (
    ADDRESSES,
    ClientSettings,
    Value,
    are_addresses,
    check_name,
    is_client_setting,
)
from streamskit.api.error_handlers import LogAndContinue, LogAndFail
from streamskit.common.durations import to_milliseconds
from streamskit.common.errors import StreamsError
from streamskit.common.names import LONGEST_NAME, is_topic_name, unknown_name
from streamskit.common.properties_files import lines as lines_of
from streamskit.common.secret import Secret, revealed

logger = logging.getLogger("streamskit")

DEAD_LETTERS = "errors.dead.letter.queue.topic.name"
"""Kafka's key for the topic that those handlers write to which go on."""

EMPTY_MEANS_OFF = "ssl.endpoint.identification.algorithm"
"""The setting of a client that says something when it is empty: that brokers' certificates may name other hosts."""

CLIENT_PREFIX = re.compile(r"(main\.consumer|consumer|producer)\.")
"""What may stand before the name of a setting of Kafka's clients."""


@dataclass(frozen=True)
class Kind:
    """A kind of value.

    Args:
        advice: what to write, as the object of a sentence.
        convert: returns a value as it is kept, or raises ValueError or TypeError.
        parse: returns the value that a text in a properties file stands for, or raises ValueError.
        text: returns a value as it stands in a properties file, a secret as a `Secret`, or raises ValueError.
        advice_in_files: what to write in a properties file, where that differs.
        is_secret: whether an error must not show a value that is refused.
    """

    advice: str
    convert: Callable[[Any], Any]
    parse: Callable[[str], Any] = str
    text: Callable[[Any], Value] = str
    advice_in_files: str = ""
    is_secret: bool = False


@dataclass(frozen=True)
class ConfigKey:
    """A key of `StreamsConfig`, described.

    Args:
        kafka_name: its name in a properties file: Kafka's own, or one that begins with "streamskit.".
        kind: what values it takes.
        doc: what it means here, in a sentence or more.
        unit: the unit of a number, such as "bytes".
        name: its name in Python.
        default: its value where none is given; None for "none".
    """

    kafka_name: str
    kind: Kind
    doc: str
    unit: str = ""
    name: str = ""
    default: Any = None

    @property
    def is_kafkas(self) -> bool:
        """Whether Kafka has this key too; the others exist on Spark only."""
        return not self.kafka_name.startswith("streamskit.")

    def convert(self, value: Any) -> Any:
        """Return a value as it is kept.

        Raises:
            StreamsError: the key does not take it.
        """
        if value is None and self.default is None:
            return None
        try:
            return self.kind.convert(value)
        except (ValueError, TypeError):
            shown = f"of type {type(value).__name__}" if self.kind.is_secret else repr(value)
            raise StreamsError(f"{self.name} is {shown}; give {self.kind.advice}.") from None

    def parse(self, text: str) -> Any:
        """Return the value that a text in a properties file stands for.

        Raises:
            StreamsError: it stands for none.
        """
        try:
            return self.kind.convert(self.kind.parse(text))
        except (ValueError, TypeError):
            advice = self.kind.advice_in_files or self.kind.advice
            shown = "cannot be taken" if self.kind.is_secret else f"is '{text}'"
            raise StreamsError(f"{self.kafka_name} {shown}; give {advice}.") from None


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _parse_boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"


BOOLEAN = Kind("True or False", _boolean, _parse_boolean, lambda value: str(value).lower(), "true or false")


def text_like(example: str) -> Kind:
    """Return the kind of a text that is not empty."""
    return Kind(f"text, such as '{example}'", _text)


def _addresses(value: Any) -> str:
    if not are_addresses(_text(value)):
        raise ValueError
    return str(value)


SERVERS = Kind(ADDRESSES, _addresses)


def address_like(example: str) -> Kind:
    """Return the kind of one address."""

    def convert(value: Any) -> str:
        if "," in _text(value):
            raise ValueError
        return _addresses(value)

    return Kind(f"an address as host:port, such as '{example}'", convert)


def secret_like(example: str) -> Kind:
    """Return the kind of a text that is not shown."""

    def convert(value: Any) -> Secret:
        return value if isinstance(value, Secret) else Secret(_text(value))

    return Kind(f"text, such as '{example}'", convert, text=convert, is_secret=True)


def name_like(example: str) -> Kind:
    """Return the kind of a name after which topics and folders are named."""

    def convert(value: Any) -> str:
        if not is_topic_name(_text(value)):
            raise ValueError
        return str(value)

    return Kind(f"a name of at most {LONGEST_NAME} letters, digits, '.', '_' and '-', such as '{example}'", convert)


def whole_number(least: int) -> Kind:
    """Return the kind of a whole number that is not below the least."""

    def convert(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError
        return value

    return Kind(f"a whole number, {least} or more", convert, int)


def _replication(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or (value != -1 and not 1 <= value < 2**15):
        raise ValueError
    return value


REPLICATION = Kind("a whole number, 1 or more, or -1 for what the cluster's settings say", _replication, int)


def one_of(**meanings: str) -> Kind:
    """Return the kind of a value that is one of several words, each with what it does ("" if that is clear)."""

    def convert(value: Any) -> str:
        if value not in meanings:
            raise ValueError
        return str(value)

    return Kind(" or ".join(f"'{word}'{meaning}" for word, meaning in meanings.items() if meaning), convert)


def _path(value: Any) -> Path:
    try:
        # Absolute: Spark's Java keeps the working directory that it started in, and Python's may change.
        return Path(_text(value) if isinstance(value, str) else value).expanduser().absolute()
    except RuntimeError:  # a home that nobody has, as in "~ann/state"
        raise ValueError from None


def _handler(class_name: str) -> LogAndFail | LogAndContinue:
    for kind in (LogAndFail, LogAndContinue):
        # DefaultProductionExceptionHandler is the one of Kafka's that has a name of its own.
        if re.fullmatch(rf"([\w.]*\.)?({kind.__name__}|DefaultProduction)(\w*ExceptionHandler)?", class_name):
            return kind()
    raise ValueError


def _class_name(handler: Any) -> str:
    if not isinstance(handler, LogAndFail | LogAndContinue):
        raise ValueError
    return f"streamskit.{type(handler).__name__}"


DURATION = Kind(
    "a duration: '5 seconds', a timedelta, or milliseconds as a whole number",
    to_milliseconds,
    int,
    advice_in_files="a whole number of milliseconds, without a unit",
)


AUTO, OFF = "auto", "off"
"""The values of `real_time` that leave the choice to the start, and that mean micro-batches."""

REAL_TIME = Kind(
    f"{DURATION.advice}; or '{AUTO}', or '{OFF}'",
    lambda value: value if value in (AUTO, OFF) else to_milliseconds(value),
    lambda text: text if text in (AUTO, OFF) else int(text),
    advice_in_files=f"{DURATION.advice_in_files}, or {AUTO}, or {OFF}",
)
PATH = Kind("a folder, as text or a Path", _path)
HANDLER = Kind(
    "LogAndContinue(), LogAndFail(), or a function of context, record and exception",
    lambda handler: handler,
    _handler,
    _class_name,
    "LogAndContinueExceptionHandler, LogAndFailExceptionHandler or another class of Kafka's with LogAndContinue, "
    "LogAndFail or DefaultProduction in its name. A class of Java's own cannot run here: write it as a function of "
    "context, record and exception, and give it to KafkaStreams",
)


def _client_settings(value: Any) -> Mapping[str, Any] | Path | ClientSettings:
    if isinstance(value, str):
        return Path(_text(value))
    if not isinstance(value, (Mapping, Path, ClientSettings)):
        raise ValueError
    return value


CLIENT_SETTINGS = Kind(
    "the settings of Kafka's clients as a dict, {'security.protocol': 'SSL', ...}, or a properties file",
    _client_settings,
    advice_in_files="the path of a properties file",
    is_secret=True,
)


AUTO_OFFSET_RESET = Kind(
    "'earliest', 'latest', 'none' or AutoOffsetReset.by_duration('1 hour')",
    AutoOffsetReset.of,
    advice_in_files="earliest, latest, none or by_duration:PT1H",
)


class Foreign(NamedTuple):
    """Keys of Kafka's that streamskit does not have: a pattern of their names, and why.

    `agreed` is a pattern of the values that are what happens here in any case. Any other is refused or, where
    `is_harmless`, reported.
    """

    names: str
    why: str
    agreed: str = r"(?!)"
    is_harmless: bool = False


FOREIGN = (
    Foreign(
        r"(default\.(key|value|list\.(key|value))\.serde.*|windowed\.inner\.class\.serde|window\.size\.ms)",
        "name serdes where records are read and written, as in builder.stream('orders', value=Serdes.json()); text is "
        "the default",
        agreed=r"(.*\.)?Serdes\$StringSerde",
    ),
    Foreign(
        r"default\.timestamp\.extractor",
        "give it to the source: builder.stream('orders', timestamps=...)",
        agreed=r"(.*\.)?FailOnInvalidTimestamp",
    ),
    Foreign(r"topology\.optimization", "repartition topics are not merged here", agreed="none"),
    Foreign(
        r"isolation\.level",
        "processing_guarantee decides that: with 'exactly_once' only what is committed is read",
        agreed="read_uncommitted",
    ),
    Foreign(
        r"poll\.ms|max\.poll\..*|buffered\.records\.per\.partition|input\.buffer\.max\.bytes|fetch\..*",
        "max_records_per_batch says how much a micro-batch takes",
        is_harmless=True,
    ),
    Foreign(
        r"acceptable\.recovery\.lag|max\.warmup\.replicas|probing\.rebalance\.interval\.ms|rack\.aware\..*"
        r"|group\.protocol|task\.assignor\.class|upgrade\.from",
        "instances agree by themselves who has which partition, and catch up before they take one over",
        is_harmless=True,
    ),
    Foreign(
        r"default\.dsl\.store|dsl\.store\.suppliers\.class|rocksdb\.config\.setter|state\.cleanup\.delay\.ms"
        r"|allow\.os\.group\.write\.access",
        "Spark keeps the state of queries, in its own state store",
        is_harmless=True,
    ),
    Foreign(
        r"topic\..*|repartition\.purge\.interval\.ms|windowstore\.changelog\.additional\.retention\.ms",
        "streamskit decides how its internal topics are kept",
        is_harmless=True,
    ),
    Foreign(
        r"metrics?\..*|built\.in\.metrics\.version|enable\.metrics\.push|log\.summary\.interval\.ms",
        "KafkaStreams.metrics() and Spark's progress reports have the numbers",
        is_harmless=True,
    ),
    Foreign(
        r"retries|(retry|reconnect|request|connections|metadata|receive|send|default\.client|default\.api"
        r"|socket|bootstrap\.controllers|client\.dns|heartbeat|linger|batch|delivery|compression|acks|buffer"
        r"|enable)\b.*|(admin|restore\.consumer|global\.consumer|producer|consumer|main\.consumer)\..*",
        "Spark and streamskit choose the settings of their Kafka clients",
        is_harmless=True,
    ),
)
"""What Kafka Streams and its clients know and streamskit does not, the first that fits."""


class Property(NamedTuple):
    """A line of a properties file: `place` begins a sentence about it, as "streams.properties, line 3: "."""

    name: str
    value: str
    place: str = ""


def load(path: Path) -> Iterator[Property]:
    """Yield what a properties file says.

    Raises:
        StreamsError: there is no such file, or it cannot be read.
    """
    try:
        for line in lines_of(path):
            yield Property(line.name, line.value.strip(), f"{path.name}, line {line.number}: ")
    except OSError as failure:
        raise StreamsError(f"{path} cannot be read: {failure.strerror}.") from failure


def of_mapping(properties: Mapping[str, Any]) -> Iterator[Property]:
    """Yield what a mapping says, its values as they would stand in a file; one that is None is left out."""
    for name, value in properties.items():
        if value is not None:
            yield Property(name, _in_a_file(value))


def _in_a_file(value: Any) -> str:
    if isinstance(value, Secret):
        return value.reveal()
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def read(properties: Iterable[Property], keys: Sequence[ConfigKey]) -> dict[str, Any]:
    """Return the settings that properties stand for, by their names in Python; what is only reported is logged.

    Args:
        properties: those of a file, or of a mapping.
        keys: the keys that there are.

    Raises:
        StreamsError: a key is unknown, is set twice, has a value that it does not take, or cannot be had on Spark.
    """
    known = {key.kafka_name: key for key in keys}
    settings: dict[str, Any] = {}
    dead_letters: Property | None = None
    client_settings: list[Property] = []
    for found in properties:
        kafka_name = _kafka_name(found.name, known)
        key = known.get(kafka_name)
        if kafka_name == DEAD_LETTERS:
            dead_letters = found
        elif key is None and is_client_setting(found.name):
            client_settings.append(found)
        elif key is None:
            _answer_foreign(found, CLIENT_PREFIX.sub("", found.name), known)
        elif key.name in settings:
            raise StreamsError(f"{found.place}{found.name} is set a second time: leave one of the two.")
        elif found.value:  # Kafka takes an empty value for none
            try:
                settings[key.name] = key.parse(found.value)
            except StreamsError as failure:
                raise StreamsError(f"{found.place}{failure}") from None
    if client_settings:
        _add_client_settings(settings, client_settings)
    return settings if dead_letters is None else _with_dead_letters(settings, dead_letters)


def write(values: Mapping[str, Any], keys: Iterable[ConfigKey]) -> dict[str, Value]:
    """Return values as properties, under Kafka's names; those that are secret do not show.

    Raises:
        StreamsError: one is a handler that no properties file can name.
    """
    properties: dict[str, Value] = {}
    topics = {value.dead_letter_topic for value in values.values() if isinstance(value, LogAndContinue)}
    if len(topics) > 1:
        raise StreamsError(
            f"A properties file has one topic for dead letters ({DEAD_LETTERS}), and the handlers here do not have the "
            "same: give all that go on the same one, or give the handlers to KafkaStreams."
        )
    for key in keys:
        value = values[key.name]
        if isinstance(value, ClientSettings):
            properties |= value.properties
        elif value is not None:
            try:
                properties[key.kafka_name] = key.kind.text(value)
            except ValueError:
                raise StreamsError(
                    f"{key.name} is {value!r}, which no properties file can name: give it to KafkaStreams."
                ) from None
    if topic := next(iter(topics), None):
        properties[DEAD_LETTERS] = topic
    return properties


def dump(properties: Mapping[str, Value], keys: Iterable[ConfigKey]) -> str:
    """Return properties as the text of a file that says what each means; what is secret stands there in clear."""
    docs = {key.kafka_name: key.doc for key in keys}
    lines = []
    for kafka_name, value in properties.items():
        lines += [javaproperties.to_comment(f" {docs[kafka_name]}")] if kafka_name in docs else []
        lines.append(javaproperties.join_key_value(kafka_name, revealed(value)))
    return "\n".join([*lines, ""])


def _kafka_name(name: str, known: Mapping[str, ConfigKey]) -> str:
    """Return the name that a key has now: some have older ones, or the prefix of the client that they are for."""
    older = {"cache.max.bytes.buffering": "statestore.cache.max.bytes"}
    bare = CLIENT_PREFIX.sub("", name)
    candidates = (name, older.get(name, name), name.removeprefix("default."), bare)
    return next((each for each in candidates if each in known), name)


def _answer_foreign(found: Property, bare: str, known: Iterable[str]) -> None:
    """Report a key that has no counterpart, or refuse it.

    Raises:
        StreamsError: it would change what the application does, or nobody knows it.
    """
    foreign = next((each for name in (bare, found.name) for each in FOREIGN if re.fullmatch(each.names, name)), None)
    if foreign is None:
        raise StreamsError(f"{found.place}{unknown_name('setting', found.name, known)}")
    if re.fullmatch(foreign.agreed, found.value):
        return
    # Its value stays unsaid: an interceptor's or a serializer's may be a password.
    said = f"{found.place}{found.name} has no counterpart on Spark: {foreign.why}."
    if not foreign.is_harmless:
        raise StreamsError(f"{said} Take it out of the properties.")
    logger.warning("%s It is not used.", said)


def _add_client_settings(settings: dict[str, Any], found: Sequence[Property]) -> None:
    """Add what a file says of its clients to its settings.

    Raises:
        StreamsError: a setting of a client is unknown, missing, or has a value that it does not take.
    """
    given = {each.name: each.value for each in found if each.value or each.name.endswith(EMPTY_MEANS_OFF)}
    if given == {"security.protocol": "PLAINTEXT"}:
        return
    if "client_settings" in settings:
        raise StreamsError(f"{found[0].place}{found[0].name} is set beside a file with client settings: leave one.")
    for each in found:
        try:
            check_name(each.name)
        except StreamsError as failure:
            raise StreamsError(f"{each.place}{failure}") from None
    try:
        settings["client_settings"] = ClientSettings.of("", given)
    except StreamsError as failure:
        raise StreamsError(f"{found[0].place}{failure}") from None


def _with_dead_letters(settings: dict[str, Any], topic: Property) -> dict[str, Any]:
    """Return settings whose handlers write to a topic, those that go on."""
    handlers = {name: value for name, value in settings.items() if isinstance(value, LogAndContinue)}
    if not handlers:
        raise StreamsError(
            f"{topic.place}{topic.name} names a topic for dead letters, and no handler goes on that would write there: "
            "set deserialization.exception.handler or processing.exception.handler, such as "
            "org.apache.kafka.streams.errors.LogAndContinueExceptionHandler."
        )
    return settings | {name: replace(handler, dead_letter_topic=topic.value) for name, handler in handlers.items()}
