"""`Stores`: the state stores that a processor may keep, as plain values that say what they hold and for how long."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from streamskit.api.windows import AnyWindows, JoinWindows, TimeWindows
from streamskit.common.durations import Duration, to_milliseconds
from streamskit.common.errors import TopologyError
from streamskit.serdes import Serde, require_serde


class KeyValue(NamedTuple):
    """One row of a store. Mirrors `org.apache.kafka.streams.KeyValue`."""

    key: Any
    value: Any


class ValueAndTimestamp(NamedTuple):
    """A value and the time of the record it came from, in milliseconds.

    Mirrors `org.apache.kafka.streams.state.ValueAndTimestamp`.
    """

    value: Any
    timestamp: int


def topic_config(config: Mapping[str, Any] | None) -> tuple[tuple[str, str], ...]:
    """Return settings of a topic as Kafka takes them: text, and `true` or `false`.

    >>> topic_config({"segment.bytes": 1024, "preallocate": False})
    (('segment.bytes', '1024'), ('preallocate', 'false'))
    """
    spelled = {True: "true", False: "false"}
    return tuple(
        (name, spelled[value] if isinstance(value, bool) else str(value)) for name, value in (config or {}).items()
    )


@dataclass(frozen=True)
class Store:
    """A named table of state: `kind` is "key-value", "window", "session", "versioned" or "buffer".

    `retention` is in milliseconds; `queryable` says whether the user gave it a name; a store that is not `logged`
    has no changelog topic, and one that is not `cached` writes every single update to it. `timestamped` stores keep a
    time beside each value; `max_entries` is for those that forget the least recently used key. A `by_time` store has
    the windows of `EmitStrategy.on_window_close()` in order of their time, and shows them a millisecond longer.
    `changelog` has the settings of the changelog topic that differ from the defaults; they do not affect the rows.

    Mirrors what `org.apache.kafka.streams.state.StoreBuilder` builds.
    """

    name: str
    kind: str
    key: Serde
    value: Serde
    windows: AnyWindows | JoinWindows | None = None
    retention: int | None = None
    queryable: bool = True
    logged: bool = True
    cached: bool = True
    persistent: bool = True
    timestamped: bool = False
    max_entries: int | None = None
    by_time: bool = field(default=False, compare=False)
    changelog: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        require_serde(self.key, f"Store '{self.name}': the serde of its keys")
        require_serde(self.value, f"Store '{self.name}': the serde of its values")

    @property
    def shown_for(self) -> int:
        """How far before the latest time a row is no longer shown, in milliseconds; 0 without a retention."""
        return (self.retention or 0) + self.by_time

    def with_caching(self, enabled: bool = True) -> "Store":
        """Return the same store; with caching, its changelog gets only a key's last value in each micro-batch.

        This is the default: a micro-batch corresponds to a commit in Kafka Streams. The changelog of a versioned store
        always gets every version.
        Mirrors `StoreBuilder#withCachingEnabled`.

        Raises:
            TopologyError: caching is to be switched on for a versioned store.
        """
        if enabled and self.kind == "versioned":
            raise TopologyError(f"Store '{self.name}' is versioned and cannot be cached: leave with_caching() out.")
        return replace(self, cached=enabled)

    def with_logging(self, enabled: bool = True, config: Mapping[str, Any] | None = None) -> "Store":
        """Return the same store with or without a changelog topic; without one it cannot be queried from outside.

        Its rows are safe either way: Spark keeps them with its checkpoint.

        Args:
            enabled: whether there is a changelog.
            config: settings for the changelog topic by Kafka's names, such as `segment.bytes`. They apply when the
                topic is created; for an existing topic, Kafka's own tools change them.

        Raises:
            TopologyError: there are settings for a changelog that is switched off.

        >>> Stores.persistent_key_value_store("totals", Serdes.string(), Serdes.long()).with_logging(
        ...     config={"segment.bytes": 1_048_576}
        ... ).changelog
        (('segment.bytes', '1048576'),)

        Mirrors `StoreBuilder#withLoggingEnabled`.
        """
        if config and not enabled:
            raise TopologyError(
                f"Store '{self.name}' has no changelog, so settings for one have no effect: "
                "leave them out, or keep logging on."
            )
        return replace(self, logged=enabled, changelog=topic_config(config))


class Stores:
    """Makes stores for processors. Mirrors `org.apache.kafka.streams.state.Stores`, its suppliers and builders in one.

    A store "in memory" is lost with its process in Kafka Streams and read again from its changelog. Here all stores are
    in Spark's state store and its checkpoint. The two kinds differ in two things, as in Kafka Streams: window and
    session stores give the rows of many keys by key or by time, and a loop over a key-value store in memory sees what
    has become of its rows meanwhile, where one over a persistent store goes through the rows as they were.

    >>> totals = Stores.persistent_key_value_store("totals", Serdes.string(), Serdes.long())
    >>> builder.stream("sales").process(RunningTotal, stores=[totals])
    """

    @staticmethod
    def persistent_key_value_store(name: str, key: Serde, value: Serde) -> Store:
        """A table of keys and values."""
        return Store(name, "key-value", key, value)

    @staticmethod
    def in_memory_key_value_store(name: str, key: Serde, value: Serde) -> Store:
        """A table of keys and values."""
        return Store(name, "key-value", key, value, persistent=False)

    @staticmethod
    def persistent_timestamped_key_value_store(name: str, key: Serde, value: Serde) -> Store:
        """A table of keys and values, each with its time: rows are `ValueAndTimestamp`."""
        return Store(name, "key-value", key, value, timestamped=True)

    @staticmethod
    def in_memory_timestamped_key_value_store(name: str, key: Serde, value: Serde) -> Store:
        """A table of keys and values, each with its time: rows are `ValueAndTimestamp`."""
        return Store(name, "key-value", key, value, persistent=False, timestamped=True)

    @staticmethod
    def lru_map(name: str, max_entries: int, key: Serde, value: Serde) -> Store:
        """A table of at most `max_entries` keys, which forgets the one that was read or written longest ago.

        Raises:
            TopologyError: it could hold no key at all, or the number is no whole one.
        """
        if not isinstance(max_entries, int) or isinstance(max_entries, bool):
            raise TopologyError(
                f"lru_map('{name}'): max_entries is {max_entries!r}; give how many keys it holds as a whole number."
            )
        if max_entries < 1:
            raise TopologyError(f"lru_map('{name}'): max_entries is {max_entries}; a store holds at least one key.")
        return Store(name, "key-value", key, value, persistent=False, max_entries=max_entries)

    @staticmethod
    def persistent_versioned_key_value_store(name: str, history_retention: Duration, key: Serde, value: Serde) -> Store:
        """A table of keys and values with their versions, so that a row can be read as of an earlier time.

        Its `put` takes the time from which the value is valid, and returns until when it is: -1 for the latest version,
        and the smallest long, -9223372036854775808, for one that came too late to be kept. `get(key, as_of)` and
        `delete(key, timestamp)` return a `VersionedRecord`, or None.

        Args:
            name: of the store.
            history_retention: for how long old versions are kept, from the latest time that the store has seen.
            key: the serde of the keys.
            value: the serde of the values.

        >>> prices = Stores.persistent_versioned_key_value_store("prices", "1 hour", Serdes.string(), Serdes.double())

        Mirrors `Stores#persistentVersionedKeyValueStore` and `Stores#versionedKeyValueStoreBuilder`.
        """
        history = to_milliseconds(history_retention, "history_retention")
        return Store(name, "versioned", key, value, retention=history, cached=False)

    @staticmethod
    def persistent_window_store(
        name: str, retention: Duration, window_size: Duration, key: Serde, value: Serde, timestamped: bool = False
    ) -> Store:
        """A table of keys, windows and values, which forgets windows that begin a retention before the latest one.

        Raises:
            TopologyError: the retention is shorter than a window.
        """
        size, kept = to_milliseconds(window_size, "window_size"), to_milliseconds(retention, "retention")
        if kept < size:
            raise TopologyError(
                f"persistent_window_store('{name}'): a retention of {kept} ms is shorter than a window of {size} ms. "
                "Give a retention of at least the window's size."
            )
        windows = TimeWindows.of_size_with_no_grace(size)
        return Store(name, "window", key, value, windows, kept, timestamped=timestamped)

    @staticmethod
    def in_memory_window_store(
        name: str, retention: Duration, window_size: Duration, key: Serde, value: Serde, timestamped: bool = False
    ) -> Store:
        """A table of keys, windows and values, like `persistent_window_store`."""
        store = Stores.persistent_window_store(name, retention, window_size, key, value, timestamped)
        return replace(store, persistent=False)

    @staticmethod
    def persistent_session_store(name: str, retention: Duration, key: Serde, value: Serde) -> Store:
        """A table of keys, sessions and values, which forgets sessions that ended a retention before the latest one."""
        return Store(name, "session", key, value, None, to_milliseconds(retention, "retention"))

    @staticmethod
    def in_memory_session_store(name: str, retention: Duration, key: Serde, value: Serde) -> Store:
        """A table of keys, sessions and values, like `persistent_session_store`."""
        return replace(Stores.persistent_session_store(name, retention, key, value), persistent=False)
