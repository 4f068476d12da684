"""Nodes of streams: sources, steps from record to record, processors, sinks."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from streamskit.api.auto_offset_reset import AutoOffsetReset
from streamskit.api.stream_partitioner import Partition
from streamskit.api.timestamp_extractor import TimestampExtractor
from streamskit.state.stores import Store
from streamskit.topology.nodes.node import Function, Node, OperatorInput

CHOSEN_BY_RECORD = "chosen by record"
"""The placeholder for a sink's topic where a function names one for each record."""


@dataclass(frozen=True)
class Source(Node):
    """Reads topics, or all whose names match a `pattern`; an `internal` one is named after the application."""

    kind: ClassVar[str] = "Source"
    topics: tuple[str, ...] = ()
    internal: bool = False
    timestamps: TimestampExtractor | None = None
    pattern: str = ""
    auto_offset_reset: AutoOffsetReset | None = None

    @property
    def topic_names(self) -> tuple[str, ...]:
        return (self.pattern,) if self.pattern else self.topics

    def reads_topic(self, topic: str) -> bool:
        """Return whether it reads a topic."""
        return topic in self.topics or bool(self.pattern and re.fullmatch(self.pattern, topic))

    @property
    def functions_called_later(self) -> tuple[Function, ...]:
        extract = None if self.timestamps is None else self.timestamps.extract
        return () if extract is None else (extract,)

    @property
    def needs_partition_time(self) -> bool:
        """Whether it gives a record without a time the latest time of its partition."""
        return self.timestamps is not None and "partition time" in (self.timestamps.invalid, self.timestamps.missing)

    @property
    def operator_input(self) -> OperatorInput | None:
        return OperatorInput(self.name, 0) if self.needs_partition_time else None


@dataclass(frozen=True)
class Filter(Node):
    """Passes on the records for which a Column function returns true (or does not, if `negated`)."""

    changes_records: ClassVar[bool] = True
    predicate: Function = lambda v: v
    negated: bool = False

    @property
    def label(self) -> str:
        return "filter not" if self.negated else "filter"


@dataclass(frozen=True)
class Map(Node):
    """Gives each record a new key and value by a Column function that returns both."""

    changes_records: ClassVar[bool] = True
    changes_keys: ClassVar[bool] = True
    mapper: Function = lambda k, v: (k, v)


@dataclass(frozen=True)
class MapValues(Node):
    """Gives each record a new value by a Column function."""

    mapper: Function = lambda v: v


@dataclass(frozen=True)
class SelectKey(Node):
    """Gives each record a new key by a Column function."""

    changes_records: ClassVar[bool] = True
    changes_keys: ClassVar[bool] = True
    mapper: Function = lambda k, v: k


@dataclass(frozen=True)
class FlatMap(Node):
    """Turns each record into any number of records, with a Column function that returns an array of structs.

    `fields` are the names of the struct's fields with the new key and the new value.
    """

    flattens: ClassVar[bool] = True
    changes_records: ClassVar[bool] = True
    changes_keys: ClassVar[bool] = True
    mapper: Function = lambda k, v: v
    fields: tuple[str, str] = ("key", "value")


@dataclass(frozen=True)
class FlatMapValues(Node):
    """Turns each record into any number of records, with a Column function that returns an array of values."""

    flattens: ClassVar[bool] = True
    changes_records: ClassVar[bool] = True
    mapper: Function = lambda v: v


@dataclass(frozen=True)
class SideEffect(Node):
    """Calls a Python function with each record's key and value (`peek`, `foreach`, `print`), then passes it on."""

    is_visible: ClassVar[bool] = True
    action: Function = lambda k, v: None

    @property
    def functions_called_later(self) -> tuple[Function, ...]:
        return ()  # it runs where it was written, and is meant to see its variables

    @property
    def label(self) -> str:
        kinds = {"KSTREAM-PEEK": "peek", "KSTREAM-FOREACH": "foreach", "KSTREAM-PRINTER": "print"}
        return kinds.get(self.name[:-11], "side effect")  # only Kafka's name shows which it is


@dataclass(frozen=True)
class Merge(Node):
    """Passes on the records of several streams."""


@dataclass(frozen=True)
class PassThrough(Node):
    """Passes its records on as they are: the root of a split, the window of a join."""

    store: Store | None = None

    @property
    def label(self) -> str:
        return "keep for join" if self.stores else "split"


@dataclass(frozen=True)
class Branch(Node):
    """Passes on the records for which predicate number `index` is true and no earlier one is; -1 takes the rest."""

    changes_records: ClassVar[bool] = True
    predicates: tuple[Function, ...] = ()
    index: int = 0

    @property
    def label(self) -> str:
        return "default branch" if self.index < 0 else "branch"


@dataclass(frozen=True)
class Process(Node):
    """Gives its records to a processor, which `supplier` makes.

    `own_stores` belong to it alone or to several processors; `reads` names stores of tables; `connected` names both as
    far as they were given together. It may read every global store that has a name, without naming it.
    """

    is_stateful: ClassVar[bool] = True
    changes_records: ClassVar[bool] = True
    changes_keys: ClassVar[bool] = True
    has_own_keys: ClassVar[bool] = True
    goes_by_time: ClassVar[bool] = True
    supplier: Function = lambda: None
    own_stores: tuple[Store, ...] = ()
    reads: tuple[str, ...] = ()
    connected: tuple[str, ...] = ()

    @property
    def stores(self) -> tuple[Store, ...]:
        return self.own_stores

    @property
    def store_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.connected, *super().store_names)))

    def looks_into(self, table: Node) -> bool:
        if table.is_global:
            return any(store.queryable for store in table.stores)
        return table.is_table and any(store.name in self.reads for store in table.stores)

    def state(self, nodes: Mapping[str, Node]) -> list[str]:
        return [f"store '{store.name}' ({store.kind}) of {store.key} and {store.value}" for store in self.own_stores]


@dataclass(frozen=True)
class GlobalProcess(Node):
    """Fills a global store with all records of a topic by a processor, which `supplier` makes."""

    is_global: ClassVar[bool] = True
    label: ClassVar[str] = "fill global store"
    supplier: Function = lambda: None
    store: Store | None = None


@dataclass(frozen=True)
class RepartitionFilter(Node):
    """Keeps records with a null key out of a repartition topic, unless a left or outer join follows (`null_keys`)."""

    changes_records: ClassVar[bool] = True
    null_keys: bool = False

    @property
    def label(self) -> str:
        return "keep null keys" if self.null_keys else "drop null keys"


@dataclass(frozen=True)
class Sink(Node):
    """Writes records to a topic, or to the one that a Column function names for each record.

    An `internal` one is named after the application, and created by it with `partitions` (None: as many as the
    topics that feed it). `changes` says that both the new and the old value of a table's row are written. A
    `partitioner`, if given, chooses the partitions of each record.
    """

    kind: ClassVar[str] = "Sink"
    is_visible: ClassVar[bool] = True
    topic: str | Function = ""
    internal: bool = False
    partitions: int | None = None
    changes: bool = False
    partitioner: Partition | None = None

    @property
    def topic_names(self) -> tuple[str, ...]:
        return (self.topic if isinstance(self.topic, str) else CHOSEN_BY_RECORD,)
