"""`StreamsConfig`: how an application runs, under the names that Kafka Streams has for it."""

import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypedDict, TypeVar, Unpack

from streamskit.api import config_keys
from streamskit.api.auto_offset_reset import AutoOffsetReset
from streamskit.api.client_settings import ClientSettings
from streamskit.api.config_keys import AUTO, DURATION, HANDLER, OFF, PATH, REAL_TIME, ConfigKey, Kind
from streamskit.api.error_handlers import Handler, Handlers
from streamskit.common.durations import Duration, spell
from streamskit.common.errors import StreamsError
from streamskit.common.names import unknown_name
from streamskit.common.paths import application_folder
from streamskit.common.secret import Secret, revealed

T = TypeVar("T")

TOKEN_VARIABLE = "STREAMSKIT_TOKEN"
"""The environment variable with the token: an argument of a command could be read by everybody on the machine."""

SHORTEST_REAL_TIME = 5_000
"""How many milliseconds Spark wants a real-time batch to take at least."""


def token_of_environment() -> str | None:
    """Return the token that the environment variable STREAMSKIT_TOKEN holds, or None."""
    return os.environ.get(TOKEN_VARIABLE) or None


class StreamsSettings(TypedDict, total=False):
    """The keys of a `StreamsConfig` as keywords of a function, but for the two that every application has to give."""

    state_dir: str | Path | None
    commit_interval: Duration
    statestore_cache_max_bytes: int
    processing_guarantee: str
    task_timeout: Duration
    ensure_explicit_internal_resource_naming: bool
    deserialization_handler: Handler | None
    processing_handler: Handler | None
    production_handler: Handler | None
    max_request_size: int
    application_server: str | None
    num_stream_threads: int | None
    num_standby_replicas: int
    session_timeout: Duration
    max_task_idle_ms: int
    auto_offset_reset: AutoOffsetReset | str
    replication_factor: int
    emit_interval: Duration
    real_time: Duration
    max_records_per_batch: int | None
    on_data_loss: str
    listen: str | None
    token: str | Secret | None
    client_settings: Mapping[str, Any] | str | Path | ClientSettings | None


def _key(kafka_name: str, kind: Kind, doc: str, unit: str = "") -> dict[str, ConfigKey]:
    """Return the metadata of a field that is a key."""
    return {"key": ConfigKey(kafka_name, kind, doc, unit or ("milliseconds" if kind is DURATION else ""))}


def _explained(cls: type[T]) -> type[T]:
    """Let the constructor of a dataclass answer a wrong keyword with a sentence, and its docstring list the keys."""
    construct: Callable[..., None] = cls.__init__
    keys: dict[str, ConfigKey] = {key.name: key for key in cls.settings()}  # type: ignore[attr-defined]
    needed = [key.name for key in keys.values() if key.default is MISSING]

    @functools.wraps(construct)
    def __init__(self: T, *values: Any, **settings: Any) -> None:  # noqa: N807
        for name in settings:
            if name not in keys:
                raise StreamsError(unknown_name("setting", name, keys))
        for name in needed[len(values) :]:
            if name not in settings:
                raise StreamsError(f"{name} is missing: give {keys[name].kind.advice}.")
        construct(self, *values, **settings)

    cls.__init__ = __init__  # type: ignore[assignment,method-assign]
    lines = [f"        {key.name}: {key.doc} {_facts(key)}" for key in keys.values()]
    cls.__doc__ = f"{cls.__doc__}\n    Args:\n" + "\n".join(lines)
    return cls


def _facts(key: ConfigKey) -> str:
    """Return a key's unit, default and name in Kafka, in brackets."""
    default = "needed" if key.default is MISSING else f"default {key.default!r}"
    origin = f"Kafka's `{key.kafka_name}`" if key.is_kafkas else f"only here, `{key.kafka_name}` in files"
    return f"({key.unit + ', ' if key.unit else ''}{default}; {origin})"


@_explained
@dataclass(frozen=True)
class StreamsConfig:
    """How an application runs.

    The keys are Kafka's in snake case; a duration carries its unit, "5 seconds", where Kafka's name ends in `.ms`. It
    is kept in milliseconds. `StreamsConfig.settings()` lists them, with what each means.

    >>> config = StreamsConfig("trades-app", "localhost:9092", commit_interval="1 second")
    >>> config.commit_interval
    1000
    >>> replace(config, num_standby_replicas=1).as_properties()["num.standby.replicas"]
    '1'

    Mirrors `org.apache.kafka.streams.StreamsConfig`.
    """

    application_id: str = field(
        metadata=_key(
            "application.id",
            config_keys.name_like("trades-app"),
            "The application's name; its topics, checkpoints and consumer groups are named after it.",
        )
    )
    bootstrap_servers: str = field(
        metadata=_key(
            "bootstrap.servers",
            config_keys.SERVERS,
            'The Kafka brokers, as "host:port", several with commas between them.',
        )
    )
    state_dir: str | Path | None = field(
        default=None,
        metadata=_key(
            "state.dir",
            PATH,
            "The folder for checkpoints and stores, in which each application has one of its own; "
            "`.streamskit/applications` of the project by default.",
        ),
    )
    commit_interval: Duration = field(
        default="100 ms",
        metadata=_key(
            "commit.interval.ms",
            DURATION,
            "How long a micro-batch gathers records before it runs; with its end they are committed. In real-time mode "
            "that the start has chosen (see `real_time`), how long a batch takes, but 5 seconds at least; records wait "
            "for none there. Kafka's own default is 30 seconds, and 100 ms for exactly once.",
        ),
    )
    statestore_cache_max_bytes: int = field(
        default=10 * 1024 * 1024,
        metadata=_key(
            "statestore.cache.max.bytes",
            config_keys.whole_number(0),
            "0 switches the record cache off, so that every update of a table goes out. With any other number the "
            "updates of a key are folded within a micro-batch, up to so many bytes of them, divided among the tasks of "
            "a query; a store that `Materialized.with_caching_disabled()` keeps lets every one out. Spark's own "
            "aggregations fold them in any case.",
            "bytes",
        ),
    )
    processing_guarantee: str = field(
        default="at_least_once",
        metadata=_key(
            "processing.guarantee",
            config_keys.one_of(
                at_least_once=", which may write records twice when a driver dies,",
                exactly_once=", which does not and takes somewhat longer",
                exactly_once_v2="",
            ),
            '"at_least_once", or "exactly_once" ("exactly_once_v2" is the same): then the records of a micro-batch '
            "are written in one transaction, and none twice. Readers have to read with "
            "`isolation.level=read_committed`.",
        ),
    )
    task_timeout: Duration = field(
        default="5 minutes",
        metadata=_key(
            "task.timeout.ms",
            DURATION,
            "How long the broker may be away. The queries wait for it that long and lose nothing; the state is "
            "REBALANCING meanwhile.",
        ),
    )
    ensure_explicit_internal_resource_naming: bool = field(
        default=False,
        metadata=_key(
            "ensure.explicit.internal.resource.naming",
            config_keys.BOOLEAN,
            "Refuses a topology in which a repartition topic, a store or its changelog has a name that the library "
            "made up. Such a name changes with the steps before it, and what is kept under it is lost then.",
        ),
    )
    deserialization_handler: Handler | None = field(
        default=None,
        metadata=_key(
            "deserialization.exception.handler",
            HANDLER,
            "Decides about records that cannot be read, such as `LogAndContinue('a-dead-letter-topic')`; "
            "`LogAndFail()` by default.",
        ),
    )
    processing_handler: Handler | None = field(
        default=None,
        metadata=_key("processing.exception.handler", HANDLER, "Likewise decides about records that a step fails on."),
    )
    production_handler: Handler | None = field(
        default=None,
        metadata=_key(
            "production.exception.handler", HANDLER, "Likewise decides about records that cannot be written."
        ),
    )
    max_request_size: int = field(
        default=1024 * 1024,
        metadata=_key(
            "max.request.size",
            config_keys.whole_number(1024),
            "The largest record that is written, as the producer's setting of that name.",
            "bytes",
        ),
    )
    application_server: str | None = field(
        default=None,
        metadata=_key(
            "application.server",
            config_keys.text_like("127.0.0.1:8080"),
            'Where to answer queries over REST, as "host:port"; port 0 takes a free one. The application is then one '
            "of the instances that share its stores, and has its share only; each needs an address of its own, at "
            "which the others reach it. Without it, it has all stores whole and answers nobody but this program.",
        ),
    )
    num_stream_threads: int | None = field(
        default=None,
        metadata=_key(
            "num.stream.threads",
            config_keys.whole_number(1),
            "How many slots of Spark's each query may use at a time; by default all that Spark has, as fewer only make "
            "it slower. A task then takes several partitions, one after the other. An application of several "
            "sub-topologies has a query for each, or more. `add_stream_thread()` and `remove_stream_thread()` change "
            "the number while it runs. Kafka's own default is 1. Not for `real_time`.",
        ),
    )
    num_standby_replicas: int = field(
        default=0,
        metadata=_key(
            "num.standby.replicas",
            config_keys.whole_number(0),
            "How many further instances keep a copy of each partition of the stores.",
        ),
    )
    session_timeout: Duration = field(
        default="6 seconds",
        metadata=_key(
            "session.timeout.ms",
            DURATION,
            "After how long without a sign of life the other instances take one for dead. Kafka's own default is 45 s.",
        ),
    )
    max_task_idle_ms: int = field(
        default=0,
        metadata=_key(
            "max.task.idle.ms",
            config_keys.whole_number(-1),
            "Records of several topics are taken in the order of their timestamps, a global table's before all others. "
            "With 0 that holds for all that is on the broker, whatever the limit of a micro-batch; a longer time also "
            "waits for a topic in which there is nothing to read. With -1 each micro-batch takes some of every topic, "
            "and records of several partitions come behind a repartition in any order.",
            "milliseconds",
        ),
    )
    auto_offset_reset: AutoOffsetReset | str = field(
        default="earliest",
        metadata=_key(
            "auto.offset.reset",
            config_keys.AUTO_OFFSET_RESET,
            "Where the application begins in its topics when it starts for the first time, or after `clean_up()`: at "
            'the first record; behind the last; some time ago; or not at all ("none"), so that it only goes on. A '
            "source may say something else. It holds for a topic, too, that is added to the program later. Global "
            "tables, partitions that are added, and topics that come to a pattern are read from the first record.",
        ),
    )
    replication_factor: int = field(
        default=-1,
        metadata=_key(
            "replication.factor",
            config_keys.REPLICATION,
            "How many brokers keep each partition of the application's own topics; -1 for as many as the cluster's "
            "`default.replication.factor` says. Topics that are there already stay as they are.",
        ),
    )
    emit_interval: Duration = field(
        default=0,
        metadata=_key(
            "streamskit.emit.interval.ms",
            DURATION,
            "How often unmatched results of outer joins and final results of windows are looked for, in wall-clock "
            "time; 0 for at every record. Kafka Streams has internal settings for that, of one second.",
        ),
    )
    real_time: Duration = field(
        default=AUTO,
        metadata=_key(
            "streamskit.real.time.ms",
            REAL_TIME,
            "Whether Spark's real-time mode (`trigger(realTime=)`) runs the program, where every record and every "
            'update goes on as it comes, or micro-batches do. `"auto"`, the default, has the start choose: real-time '
            "mode for programs that write the same records in it, only sooner. Those keep no state, or count and "
            "aggregate with Columns without a record cache (`statestore_cache_max_bytes=0`); they read one topic, "
            "call no Python, and run in this process. `explain()` says which it is, and why. A duration, of 5 seconds"
            " or more, chooses real-time mode, and says how long a batch takes, after which it notes how far it has "
            "come and what its state is (`await_processed` and `close` end a batch at once). Then aggregations, "
            "windows, `suppress` and processors run in it whatever the cache, those in Python, too. Sub-topologies "
            "whose operators take several topics in the order of their time (joins, unless `max_task_idle_ms=-1` does"
            " without it), read a global table, or schedule by the wall clock, run in micro-batches beside it. Real-"
            "time mode keeps a slot of Spark's busy for each partition that is read, and one for each in which state "
            "is kept: in this process they are added, on a cluster they have to be there. It is not for `F.udf`, or "
            'serdes and handlers in Python. `"off"` chooses micro-batches.',
            "milliseconds",
        ),
    )
    max_records_per_batch: int | None = field(
        default=None,
        metadata=_key(
            "streamskit.max.records.per.batch",
            config_keys.whole_number(1),
            "The most records that a micro-batch takes; by default all there are, or 500,000 where records are "
            "processed one by one in Python, and 2,000,000 in a transaction. Large records make it fewer: 32 MB.",
        ),
    )
    on_data_loss: str = field(
        default="stop",
        metadata=_key(
            "streamskit.on.data.loss",
            config_keys.one_of(
                stop=", which ends the application at records that were deleted before they were read,",
                **{"continue": ", which goes on behind them and counts them"},
            ),
            'What to do about records that were deleted before they were read: "stop", or "continue" behind them, '
            "with a warning; `metrics()` counts them.",
        ),
    )
    listen: str | None = field(
        default=None,
        metadata=_key(
            "streamskit.listen",
            config_keys.address_like("0.0.0.0:8080"),
            'Where to listen for queries, as "host:port", if that is not the address in `application_server`, at which '
            "the other instances and clients find this one: in a container, or behind a proxy.",
        ),
    )
    token: str | Secret | None = field(
        default=None,
        repr=False,
        metadata=_key(
            "streamskit.token",
            config_keys.secret_like("a long secret"),
            "What those who query over REST have to show; without it, the environment variable `STREAMSKIT_TOKEN` "
            "says it. Needed for any address but loopback. It is not shown: `config.token.reveal()` returns it.",
        ),
    )
    client_settings: Mapping[str, Any] | str | Path | ClientSettings | None = field(
        default=None,
        metadata=_key(
            "streamskit.client.settings",
            config_keys.CLIENT_SETTINGS,
            "What all clients show to be let into a secured cluster, by Kafka's own names: `security.protocol`, "
            "`sasl.*`, `ssl.*` and `client.id`, with `consumer.`, `producer.` or `admin.` in front for those alone; "
            "and how producers write, as in `producer.compression.type`; or a properties file with it. In a "
            "properties file they stand by themselves, as for Kafka Streams.",
        ),
    )

    def __post_init__(self) -> None:
        for key in self.settings():
            object.__setattr__(self, key.name, key.convert(getattr(self, key.name)))
        if self.client_settings is not None:
            known = ClientSettings.of(self.bootstrap_servers, self.client_settings)
            object.__setattr__(self, "client_settings", known)
        Handlers.of(self.deserialization_handler, self.processing_handler, self.production_handler)
        if not self.in_real_time:
            return
        if self.milliseconds("real_time") < SHORTEST_REAL_TIME:
            raise StreamsError(
                f"real_time={spell(self.milliseconds('real_time'))!r} is too short: Spark pauses between real-time "
                f"batches to note how far it has come, and wants them to take {spell(SHORTEST_REAL_TIME)} or more. No "
                "record waits for the end of a batch."
            )
        if self.exactly_once:
            raise StreamsError(
                "real_time passes each record on as it comes, and exactly-once output shows none before its whole "
                f"batch is written. Leave real_time out, or processing_guarantee={self.processing_guarantee!r}."
            )
        if self.num_stream_threads is not None:
            raise StreamsError(
                "num_stream_threads does not go with real_time, which keeps a slot of Spark's busy for each partition "
                "all the while: with fewer slots, some partitions would never be read. Leave one of the two out."
            )

    @classmethod
    def settings(cls) -> tuple[ConfigKey, ...]:
        """Return the keys with what each means, in the order of the constructor.

        >>> [key.name for key in StreamsConfig.settings() if not key.is_kafkas]
        ['emit_interval', 'real_time', 'max_records_per_batch', 'on_data_loss', 'listen', 'token', 'client_settings']
        """
        return tuple(replace(each.metadata["key"], name=each.name, default=each.default) for each in fields(cls))

    @classmethod
    def of(
        cls,
        config: "StreamsConfig | str | None" = None,
        bootstrap_servers: str | None = None,
        application_id: str | None = None,
        **settings: Unpack[StreamsSettings],
    ) -> "StreamsConfig":
        """Return a config that is made of another one, or of an application id, and of settings that go before it.

        Raises:
            StreamsError: a setting is unknown, missing, given twice or has a value that it does not take.

        >>> StreamsConfig.of("trades-app", "localhost:9092", commit_interval="1 second").commit_interval
        1000
        """
        if isinstance(config, str):
            if application_id is not None:
                raise StreamsError(f"The application id is given twice: {config!r} and {application_id!r}.")
            application_id = config
        named = {"application_id": application_id, "bootstrap_servers": bootstrap_servers}
        changes: dict[str, Any] = {name: value for name, value in named.items() if value is not None} | {**settings}
        return replace(config, **changes) if isinstance(config, StreamsConfig) else cls(**changes)

    @classmethod
    def from_properties(cls, properties: str | Path | Mapping[str, Any], **settings: Any) -> "StreamsConfig":
        """Return the config that a Java properties file holds, under Kafka's own names.

        A key that Spark has no counterpart for is refused if it would change what the application does, as
        `default.value.serde` would; if it is only about speed, as `rocksdb.config.setter`, a warning says so.

        Args:
            properties: the file, or what it would hold; there, numbers, True and False may stand for their text.
            settings: those that the file does not have, or that go before it.

        Raises:
            StreamsError: a key is unknown, or has a value that it does not take; the sentence names the line.

        >>> StreamsConfig.from_properties({"application.id": "trades-app"}, bootstrap_servers="b:9").application_id
        'trades-app'

        Mirrors `StreamsConfig(Map)`.
        """
        if isinstance(properties, Mapping):
            found = list(config_keys.of_mapping(properties))
        else:
            found = list(config_keys.load(Path(properties)))
        return cls(**(config_keys.read(found, cls.settings()) | settings))

    def as_properties(self) -> dict[str, str | Secret]:
        """Return the settings under Kafka's own names, as text; those that are None are left out.

        The token and passwords are not shown when they are printed; `.reveal()` returns one.

        Raises:
            StreamsError: a handler is a function, which no properties file can name.
        """
        return config_keys.write({key.name: getattr(self, key.name) for key in self.settings()}, self.settings())

    def to_properties(self, path: str | Path) -> None:
        """Write a Java properties file that `from_properties` reads, with what each key means; its secrets stand in it.

        Nobody else can read the file.

        Raises:
            StreamsError: a handler is a function, which no properties file can name.
        """
        path, text = Path(path), config_keys.dump(self.as_properties(), self.settings())
        path.touch(mode=0o600)
        path.chmod(0o600)  # it may have been there
        path.write_text(text, encoding="latin-1")

    @property
    def connection(self) -> ClientSettings:
        """Where the brokers are, and what clients show them to be let in."""
        assert self.client_settings is None or isinstance(self.client_settings, ClientSettings)
        return self.client_settings or ClientSettings.of(self.bootstrap_servers)

    @property
    def token_text(self) -> str | None:
        """The token in clear, or that of the environment, for those who ask for it or show it."""
        return token_of_environment() if self.token is None else revealed(self.token)

    @functools.cached_property
    def folder(self) -> Path:
        """Where the application keeps its checkpoints and stores; it stays, whatever the working directory becomes."""
        return application_folder(self.application_id, self.state_dir)

    @property
    def in_real_time(self) -> bool:
        """Whether it has to run in Spark's real-time mode: not where that is left to the start, or not wanted."""
        return self.real_time not in (AUTO, OFF)

    @property
    def exactly_once(self) -> bool:
        """Whether each record is written once, whatever fails."""
        return self.processing_guarantee != "at_least_once"

    @property
    def handlers(self) -> Handlers:
        """The handlers of records that fail."""
        return Handlers.of(
            self.deserialization_handler, self.processing_handler, self.production_handler, self.max_request_size
        )

    def milliseconds(self, name: str) -> int:
        """Return a setting that is a duration, in milliseconds."""
        value = getattr(self, name)
        assert isinstance(value, int)  # it was converted when the config was made
        return value
