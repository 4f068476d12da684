"""The nodes of a topology: what a program does, as plain immutable values. Nothing here knows how it runs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from streamskit.serdes import Serde
from streamskit.windows import TimeWindows


@dataclass(frozen=True)
class Store:
    """A named table of state that a node keeps: `kind` is "key-value" or "window"; `retention` in milliseconds.

    Mirrors what `org.apache.kafka.streams.state.StoreBuilder` builds.
    """

    name: str
    kind: str
    key: Serde
    value: Serde
    windows: TimeWindows | None = None
    retention: int | None = None
    queryable: bool = True


@dataclass(frozen=True)
class Node:
    """One step of a topology.

    `name` is Kafka Streams' name for it, `parents` are the names of the nodes that feed it, `key` and `value` are the
    serdes (and so the types) of what it passes on, `written_at` is the line of the program that made it.
    """

    kind: ClassVar[str] = "Processor"

    name: str
    parents: tuple[str, ...]
    key: Serde
    value: Serde
    written_at: str

    @property
    def stores(self) -> tuple[Store, ...]:
        """The stores this node keeps."""
        return ()

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        """The learner's functions in this node, so that a failure can be traced to it."""
        return ()


@dataclass(frozen=True)
class Source(Node):
    """Reads topics."""

    kind: ClassVar[str] = "Source"
    topics: tuple[str, ...] = ()


@dataclass(frozen=True)
class Filter(Node):
    """Passes the records on for which a Column function says true."""

    predicate: Callable[..., Any] = lambda v: v

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        return (self.predicate,)


@dataclass(frozen=True)
class MapValues(Node):
    """Gives each record a new value by a Column function."""

    mapper: Callable[..., Any] = lambda v: v

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        return (self.mapper,)


@dataclass(frozen=True)
class ToStream(Node):
    """Turns a table's updates into records of a stream."""


@dataclass(frozen=True)
class Aggregate(Node):
    """Keeps one aggregate for each key, or for each key and window, and passes on its updates.

    `aggregator` is a function of the value that returns an aggregate Column.
    """

    aggregator: Callable[..., Any] = lambda v: v
    windows: TimeWindows | None = None
    store: Store | None = None

    @property
    def stores(self) -> tuple[Store, ...]:
        return (self.store,) if self.store else ()

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        return (self.aggregator,)


@dataclass(frozen=True)
class Sink(Node):
    """Writes records to a topic."""

    kind: ClassVar[str] = "Sink"
    topic: str = ""
