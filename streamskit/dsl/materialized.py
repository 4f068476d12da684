"""How a step keeps and emits its results: `Materialized`, `EmitStrategy`, `Suppressed`; and the store it gets."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from streamskit.api.windows import AnyWindows, SessionWindows, SlidingWindows
from streamskit.common.durations import Duration, to_milliseconds
from streamskit.common.errors import TopologyError
from streamskit.common.names import check_name
from streamskit.serdes import Serde, require_serde
from streamskit.state.stores import Store


@dataclass(frozen=True)
class Materialized:
    """How a store is kept: its name, the serde of its values, and for how long.

    Args:
        name: the name to query the store by; without one, the store gets a generated name, or there is none.
        value: the serde of the values; by default the one that fits their type.
        retention: for how long a windowed store keeps a window.
        history: for how long a versioned store keeps old versions of a row; None makes an ordinary store.
        logged: whether the store's updates go to a changelog topic, so that it can be rebuilt.
        changelog: settings for the changelog topic by Kafka's names, such as `{"segment.bytes": 1_048_576}`. They apply
            when the topic is created.
        caching: whether the record cache, if the application has one, folds the updates of a key.

    Mirrors `org.apache.kafka.streams.kstream.Materialized`.

    >>> Materialized("counts", retention="1 hour")
    Materialized(name='counts', value=None, retention='1 hour', history=None, logged=True, changelog=None, caching=True)
    """

    name: str | None = None
    value: Serde | None = None
    retention: Duration | None = None
    history: Duration | None = None
    logged: bool = True
    changelog: Mapping[str, Any] | None = None
    caching: bool = True

    def __post_init__(self) -> None:
        if self.name is not None and not isinstance(self.name, str):
            raise TopologyError(
                f"A store cannot be called {self.name!r}: give materialized= a name such as 'counts', or a "
                "Materialized('counts', ...)."
            )
        if self.name is not None:
            check_name(self.name)
        if self.value is not None:
            require_serde(self.value, f"Materialized({self.name!r}): value=")

    def with_caching_enabled(self) -> "Materialized":
        """Return the same with the record cache, which is the default. Mirrors `Materialized#withCachingEnabled`.

        >>> Materialized("counts").with_caching_enabled() == Materialized("counts")
        True
        """
        return replace(self, caching=True)

    def with_caching_disabled(self) -> "Materialized":
        """Return the same without the record cache: each update is passed on and written to the changelog.

        An aggregate of Columns folds the updates of a key in any case, because Spark itself computes it.

        >>> Materialized("counts").with_caching_disabled().caching
        False

        Mirrors `Materialized#withCachingDisabled`.
        """
        return replace(self, caching=False)

    @classmethod
    def versioned(cls, name: str, history_retention: Duration, value: Serde | None = None) -> "Materialized":
        """Return a store that also keeps the old versions of a row.

        A stream that is joined with such a table finds the row as it was at the record's time.

        Args:
            name: the name to query the store by.
            history_retention: for how long it keeps old versions: "1 hour", a `timedelta`, or milliseconds.
            value: the serde of the values; by default the one that fits their type.

        >>> prices = builder.table("prices", materialized=Materialized.versioned("prices", "1 hour"))

        Mirrors `Stores#persistentVersionedKeyValueStore`.
        """
        return cls(name, value, history=history_retention)

    @classmethod
    def of(cls, materialized: "str | Materialized | None") -> "Materialized":
        """Return a step's argument `materialized=`, possibly just a store's name, as a `Materialized`.

        >>> Materialized.of("counts").name
        'counts'
        """
        return materialized if isinstance(materialized, Materialized) else cls(materialized)


def table_store(
    materialized: Materialized, name: str, key: Serde, value: Serde, windows: AnyWindows | None = None, step: str = ""
) -> Store:
    """Return the store of a table: one row for each key, or for each key and window; or the versions of a row.

    Args:
        materialized: how the store is kept.
        name: the name of the store.
        key: the serde of its keys, without the window.
        value: the serde of its values.
        windows: the windows of the table, if it has any.
        step: the operator and its line in the program, for the error.

    Raises:
        TopologyError: the store would lose windows that are still open, or would keep versions of windows.
    """
    kind, retention = "key-value", None
    if windows is not None:
        kind = "session" if isinstance(windows, SessionWindows) else "window"
        retention = _window_retention(materialized, windows, step)
    elif materialized.history is not None:
        kind, retention = "versioned", to_milliseconds(materialized.history, "history retention")
    queryable = materialized.name is not None
    store = Store(check_name(name), kind, key, value, windows, retention, queryable, cached=materialized.caching)
    return store.with_logging(materialized.logged, materialized.changelog)


def _window_retention(materialized: Materialized, windows: AnyWindows, step: str) -> int:
    if materialized.history is not None:
        raise TopologyError(f"{step}: a windowed table keeps a row for each window, not versions: leave history out.")
    if materialized.retention is None:
        return windows.retention
    retention = to_milliseconds(materialized.retention, "retention")
    if retention < windows.retention:
        if isinstance(windows, SessionWindows):
            open_for = f"{windows.gap}"
        else:  # a record can create the window after another record's, so sliding windows are kept for two sizes
            open_for = f"2 * {windows.size}" if isinstance(windows, SlidingWindows) else f"{windows.size}"
        raise TopologyError(
            f"{step}: a retention of {retention} ms is shorter than windows stay open with their grace "
            f"({open_for} + {windows.grace} ms), so windows would be lost while open. Keep at least that long."
        )
    return retention


@dataclass(frozen=True)
class EmitStrategy:
    """When a windowed aggregation emits its results: with every update, or once when a window closes.

    Mirrors `org.apache.kafka.streams.kstream.EmitStrategy`.
    """

    on_close: bool = False

    @classmethod
    def on_window_update(cls) -> "EmitStrategy":
        """Emit each update of a window's result as it happens; this is the default.

        >>> windowed.emit_strategy(EmitStrategy.on_window_update()).count()

        Mirrors `EmitStrategy#onWindowUpdate`.
        """
        return cls(False)

    @classmethod
    def on_window_close(cls) -> "EmitStrategy":
        """Emit each window's result once, when stream time has passed its end and grace.

        >>> windowed.emit_strategy(EmitStrategy.on_window_close()).count()

        Mirrors `EmitStrategy#onWindowClose`.
        """
        return cls(True)


@dataclass(frozen=True)
class BufferConfig:
    """How much `suppress` may hold back, and what happens when the buffer is full: fail, or `emit_early`.

    A buffer with a limit emits early, unless it is told to `shut_down_when_full`.

    Mirrors `org.apache.kafka.streams.kstream.Suppressed.BufferConfig`.

    >>> BufferConfig.max_records(1000).emit_early_when_full()
    BufferConfig(records=1000, bytes=None, emit_early=True)
    """

    records: int | None = None
    bytes: int | None = None
    emit_early: bool = False

    def __post_init__(self) -> None:
        for title, limit in (("max_records", self.records), ("max_bytes", self.bytes)):
            if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
                raise ValueError(f"{title} has to be a whole number, 0 or more, and is {limit!r}.")

    @classmethod
    def unbounded(cls) -> "BufferConfig":
        """Hold back any number of updates.

        >>> BufferConfig.unbounded()
        BufferConfig(records=None, bytes=None, emit_early=False)

        Mirrors `BufferConfig#unbounded`.
        """
        return cls()

    @classmethod
    def max_records(cls, records: int) -> "BufferConfig":
        """Hold back at most this many rows, and emit the oldest early when there are more.

        >>> BufferConfig.max_records(1000)
        BufferConfig(records=1000, bytes=None, emit_early=True)

        Mirrors `BufferConfig#maxRecords`.
        """
        return cls(records=records, emit_early=True)

    @classmethod
    def max_bytes(cls, size: int) -> "BufferConfig":
        """Hold back at most this many bytes of keys and values, and emit the oldest early when there are more.

        >>> BufferConfig.max_bytes(1_000_000)
        BufferConfig(records=None, bytes=1000000, emit_early=True)

        Mirrors `BufferConfig#maxBytes`.
        """
        return cls(bytes=size, emit_early=True)

    def with_max_records(self, records: int) -> "BufferConfig":
        """Return the same with a limit on the number of rows.

        >>> BufferConfig.max_bytes(1_000_000).with_max_records(1000)
        BufferConfig(records=1000, bytes=1000000, emit_early=True)

        Mirrors `BufferConfig#withMaxRecords`.
        """
        return replace(self, records=records)

    def with_max_bytes(self, size: int) -> "BufferConfig":
        """Return the same with a limit on the number of bytes.

        >>> BufferConfig.max_records(1000).with_max_bytes(1_000_000)
        BufferConfig(records=1000, bytes=1000000, emit_early=True)

        Mirrors `BufferConfig#withMaxBytes`.
        """
        return replace(self, bytes=size)

    def emit_early_when_full(self) -> "BufferConfig":
        """Return the same, emitting the oldest rows early when the buffer is full.

        >>> BufferConfig.max_records(1000).emit_early_when_full()
        BufferConfig(records=1000, bytes=None, emit_early=True)

        Mirrors `BufferConfig#emitEarlyWhenFull`.
        """
        return replace(self, emit_early=True)

    def shut_down_when_full(self) -> "BufferConfig":
        """Return the same, failing when the buffer is full.

        >>> BufferConfig.max_records(1000).shut_down_when_full()
        BufferConfig(records=1000, bytes=None, emit_early=False)

        Mirrors `BufferConfig#shutDownWhenFull`.
        """
        return replace(self, emit_early=False)


@dataclass(frozen=True)
class Suppressed:
    """Which updates of a table `suppress` holds back; `time_limit` in milliseconds, None until the window closes.

    Mirrors `org.apache.kafka.streams.kstream.Suppressed`.
    """

    time_limit: int | None
    buffer: BufferConfig
    name: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.buffer, BufferConfig):
            raise ValueError(
                "How much is held back is said by a BufferConfig, such as BufferConfig.unbounded() or "
                f"BufferConfig.max_records(1000), and not by {self.buffer!r}."
            )
        if self.time_limit is None and self.buffer.emit_early:
            raise ValueError(
                "until_window_closes promises one final result for each window, and a buffer with a limit emits early "
                "when it is full: add .shut_down_when_full() to it, or use BufferConfig.unbounded(). Updates that may "
                "come early are for Suppressed.until_time_limit."
            )
        if self.name is not None:
            check_name(self.name)

    @classmethod
    def until_window_closes(cls, buffer: BufferConfig | None = None) -> "Suppressed":
        """Hold back a window's updates until it closes, then emit the last one.

        Args:
            buffer: how much may be held back; by default without a limit.

        Raises:
            ValueError: the buffer emits early, so a result might not be the final one; or it is no `BufferConfig`.

        >>> counts.suppress(Suppressed.until_window_closes())

        Mirrors `Suppressed#untilWindowCloses`.
        """
        return cls(None, buffer or BufferConfig.unbounded())

    @classmethod
    def until_time_limit(cls, time_limit: Duration, buffer: BufferConfig | None = None) -> "Suppressed":
        """Hold back a row's updates for some stream time after the first one, then emit the last one.

        Args:
            time_limit: for how long: "5 seconds", a `timedelta`, or milliseconds.
            buffer: how much may be held back; by default without a limit.

        Raises:
            ValueError: the limit is not a duration, or the buffer no `BufferConfig`.

        >>> counts.suppress(Suppressed.until_time_limit("5 seconds", BufferConfig.max_records(1000)))

        Mirrors `Suppressed#untilTimeLimit`.
        """
        return cls(to_milliseconds(time_limit, "time limit"), buffer or BufferConfig.unbounded())

    def with_name(self, name: str) -> "Suppressed":
        """Return the same under a name of your own.

        Args:
            name: the name of the node; with "-store" appended, that of the buffer.

        Raises:
            TopologyError: it cannot be part of a topic's name.

        >>> counts.suppress(Suppressed.until_window_closes().with_name("final-counts"))

        Mirrors `Suppressed#withName`.
        """
        return replace(self, name=name)
