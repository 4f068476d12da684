"""The nodes of a topology: what a program does, as plain immutable values. Nothing here knows how it runs."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from streamskit.api.timestamp_extractor import TimestampExtractor
from streamskit.api.windows import AnyWindows, JoinWindows
from streamskit.serdes import Serde
from streamskit.state.stores import Store

Function = Callable[..., Any]


@dataclass(frozen=True)
class Node:
    """One step of a topology.

    `name` is Kafka Streams' name for it, `parents` are the names of the nodes that feed it, `key` and `value` are the
    serdes (and so the types) of what it passes on, `call_site` is the line of the program that made it.
    """

    kind: ClassVar[str] = "Processor"
    is_table: ClassVar[bool] = False
    """Whether it passes on the updates of a table: a null value deletes a row, and the old value may travel along."""

    name: str
    parents: tuple[str, ...]
    key: Serde
    value: Serde
    call_site: str

    @property
    def stores(self) -> tuple[Store, ...]:
        """The stores this node keeps."""
        store = getattr(self, "store", None)
        return (store,) if store is not None else ()

    @property
    def reads(self) -> tuple[str, ...]:
        """The names of the stores that other nodes keep and this one looks into."""
        return ()

    @property
    def functions(self) -> tuple[Function, ...]:
        """The learner's functions in this node, so that a failure can be traced to it."""
        values = (getattr(self, field.name) for field in fields(self) if field.name not in ("key", "value"))
        return tuple(each for value in values for each in (value if isinstance(value, tuple) else (value,))
                     if callable(each) and not isinstance(each, type))  # fmt: skip


# ---- streams, without state ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source(Node):
    """Reads topics; an `internal` one is named after the application when it runs."""

    kind: ClassVar[str] = "Source"
    topics: tuple[str, ...] = ()
    internal: bool = False
    timestamps: TimestampExtractor | None = None


@dataclass(frozen=True)
class Filter(Node):
    """Passes the records on for which a Column function says true (or, `negated`, does not)."""

    predicate: Function = lambda v: v
    negated: bool = False


@dataclass(frozen=True)
class Map(Node):
    """Gives each record a new key and value by a Column function that returns both."""

    mapper: Function = lambda k, v: (k, v)


@dataclass(frozen=True)
class MapValues(Node):
    """Gives each record a new value by a Column function."""

    mapper: Function = lambda v: v


@dataclass(frozen=True)
class SelectKey(Node):
    """Gives each record a new key by a Column function."""

    mapper: Function = lambda k, v: k


@dataclass(frozen=True)
class FlatMap(Node):
    """Makes any number of records of each one, by a Column function that returns an array of structs.

    `fields` are the names of the struct's fields with the new key and the new value.
    """

    mapper: Function = lambda k, v: v
    fields: tuple[str, str] = ("key", "value")


@dataclass(frozen=True)
class FlatMapValues(Node):
    """Makes any number of records of each one, by a Column function that returns an array of values."""

    mapper: Function = lambda v: v


@dataclass(frozen=True)
class SideEffect(Node):
    """Calls a Python function with each record's key and value (`peek`, `foreach`, `print`), then passes it on."""

    action: Function = lambda k, v: None


@dataclass(frozen=True)
class Merge(Node):
    """Passes on the records of several streams."""


@dataclass(frozen=True)
class PassThrough(Node):
    """Passes its records on as they are: the root of a split, the window of a join."""

    store: Store | None = None


@dataclass(frozen=True)
class Branch(Node):
    """Passes on the records for which predicate number `index` says true and no earlier one does; -1 takes the rest."""

    predicates: tuple[Function, ...] = ()
    index: int = 0


@dataclass(frozen=True)
class Process(Node):
    """Gives its records to a processor, which `supplier` makes.

    `kept` are the stores it keeps, alone or together with other processors; `looked_up` are those of tables that it
    reads, and `global_stores` those of global tables.
    """

    supplier: Function = lambda: None
    kept: tuple[Store, ...] = ()
    looked_up: tuple[str, ...] = ()
    global_stores: tuple[str, ...] = ()

    @property
    def tables(self) -> tuple[str, ...]:
        """The stores of tables that it reads, global ones too."""
        return (*self.looked_up, *self.global_stores)

    @property
    def stores(self) -> tuple[Store, ...]:
        return self.kept

    @property
    def reads(self) -> tuple[str, ...]:
        return self.looked_up


@dataclass(frozen=True)
class RepartitionFilter(Node):
    """Keeps records with a null key out of a repartition topic, unless a left or outer join follows (`null_keys`)."""

    null_keys: bool = False


@dataclass(frozen=True)
class Sink(Node):
    """Writes records to a topic, or to the one that a Column function names for each record.

    An `internal` one is named after the application, and created by it with so many `partitions` (None: as many as the
    topics that feed it). `changes` says that both the new and the old value of a table's row are written.
    """

    kind: ClassVar[str] = "Sink"
    topic: str | Function = ""
    internal: bool = False
    partitions: int | None = None
    changes: bool = False


# ---- tables, without state of their own ------------------------------------------------------------------------------


@dataclass(frozen=True)
class ToStream(Node):
    """Turns a table's updates into records of a stream."""


@dataclass(frozen=True)
class TableSource(Node):
    """Takes each record for the new value of its key's row; `store` is None when nobody needs the table kept.

    Mirrors `KTableSource`, for `builder.table()` and for `to_table()`.
    """

    is_table: ClassVar[bool] = True
    store: Store | None = None


@dataclass(frozen=True)
class GlobalTableSource(Node):
    """Keeps a whole topic, all partitions of it, in a store of every instance."""

    is_table: ClassVar[bool] = True
    store: Store | None = None


@dataclass(frozen=True)
class TableFilter(Node):
    """Passes on the rows for which a Column function says true, and a deletion for the others."""

    is_table: ClassVar[bool] = True
    predicate: Function = lambda v: v
    negated: bool = False
    store: Store | None = None


@dataclass(frozen=True)
class TableMapValues(Node):
    """Gives each row a new value by a Column function; a deletion stays one."""

    is_table: ClassVar[bool] = True
    mapper: Function = lambda v: v
    store: Store | None = None


@dataclass(frozen=True)
class TableGroupBy(Node):
    """Gives each row a new key and value (`KTable.group_by`), for the new and for the old value of the row."""

    is_table: ClassVar[bool] = True
    mapper: Function = lambda k, v: (k, v)


# ---- aggregations ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Aggregation(Node):
    """Keeps one aggregate for each key, or for each key and window, and passes on its updates.

    `on_close` says that a window's result goes out once, when the window closes.
    """

    is_table: ClassVar[bool] = True
    windows: AnyWindows | None = None
    store: Store | None = None
    on_close: bool = False


@dataclass(frozen=True)
class ColumnAggregate(Aggregation):
    """Aggregates with Spark's own functions: `aggregator` takes the value and returns an aggregate Column."""

    aggregator: Function = lambda v: v


@dataclass(frozen=True)
class Count(Aggregation):
    """Counts records."""


@dataclass(frozen=True)
class Reduce(Aggregation):
    """Folds values with `reducer(aggregate, value)`, a plain Python function; the first value starts."""

    reducer: Function = lambda aggregate, value: value


@dataclass(frozen=True)
class Aggregate(Aggregation):
    """Folds values with plain Python functions: `initializer()`, `aggregator(key, value, aggregate)`.

    `merger(key, one, other)` joins the aggregates of two sessions.
    """

    initializer: Function = lambda: None
    aggregator: Function = lambda key, value, aggregate: aggregate
    merger: Function | None = None


@dataclass(frozen=True)
class CogroupAggregate(Aggregation):
    """One of several streams that are folded into one store: side number `side` of the cogroup named `group`.

    Each has its own `aggregator`; `initializer` and `merger` are the same in all.
    """

    group: str = ""
    side: int = 0
    initializer: Function = lambda: None
    aggregator: Function = lambda key, value, aggregate: aggregate
    merger: Function | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.store.name,) if self.store else ()


@dataclass(frozen=True)
class TableMerge(Node):
    """Passes on the updates of the sides of a table-table join or a cogroup as one table."""

    is_table: ClassVar[bool] = True
    store: Store | None = None


@dataclass(frozen=True)
class TableAggregate(Node):
    """Folds the rows of a grouped table: `adder` takes a row in, `subtractor` takes its old value out.

    `initializer` is None for a reduce, whose first value starts. The functions take key, value and aggregate.
    """

    is_table: ClassVar[bool] = True
    initializer: Function | None = None
    adder: Function = lambda key, value, aggregate: aggregate
    subtractor: Function = lambda key, value, aggregate: aggregate
    store: Store | None = None


@dataclass(frozen=True)
class Suppress(Node):
    """Holds updates back: until a window closes, or for a time. Null `time_limit` means until the window closes.

    Mirrors `KTableSuppressProcessorSupplier`; its store is a buffer.
    """

    is_table: ClassVar[bool] = True
    time_limit: int | None = None
    max_records: int | None = None
    max_bytes: int | None = None
    emit_early: bool = False
    windows: AnyWindows | None = None
    store: Store | None = None


# ---- joins -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StreamJoinSide(Node):
    """One side of a stream-stream join: side 0 is the left stream, 1 the right; both share the join's `group` name.

    `joiner` takes (left, right) or (key, left, right) Columns; `outer` says for each side whether its unmatched
    records go out. `store` (left side only) holds the records that wait for a match.
    """

    group: str = ""
    side: int = 0
    windows: JoinWindows | None = None
    outer: tuple[bool, bool] = (False, False)
    joiner: Function = lambda left, right: left
    store: Store | None = None
    other_stores: tuple[str, ...] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        return self.other_stores


@dataclass(frozen=True)
class StreamTableJoin(Node):
    """Looks each record of a stream up in a table; `left` keeps those without a row.

    `table` is the name of the node that makes the table, `table_stores` the stores it is read from. With a `grace`
    (milliseconds) records wait in `store` and are joined in order of time. `key_selector` is given for a global table.
    """

    table: str = ""
    table_stores: tuple[str, ...] = ()
    left: bool = False
    joiner: Function = lambda value, row: value
    key_selector: Function | None = None
    grace: int | None = None
    store: Store | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        return self.table_stores


@dataclass(frozen=True)
class TableJoinSide(Node):
    """One side of a table-table join: side 0 is the left table, 1 the right; both share the join's `group` name."""

    is_table: ClassVar[bool] = True
    group: str = ""
    side: int = 0
    outer: tuple[bool, bool] = (False, False)
    joiner: Function = lambda left, right: left
    other_stores: tuple[str, ...] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        return self.other_stores


@dataclass(frozen=True)
class ForeignKeyJoin:
    """What the nodes of one foreign-key join have in common; `name` is that of its registration node."""

    name: str
    left: bool
    foreign_key: Function
    joiner: Function
    left_key: Serde
    left_value: Serde
    right_key: Serde
    right_value: Serde


@dataclass(frozen=True)
class ForeignKeyStep(Node):
    """One node of a foreign-key join.

    `role` is "register" (an order subscribes at its customer), "subscribe" (keeps the subscription), "answer" (to a new
    subscription), "notify" (all subscribers, when the customer changes), "resolve" (an answer comes back) or "output".
    """

    is_table: ClassVar[bool] = True
    role: str = ""
    join: ForeignKeyJoin | None = None
    store: Store | None = None
    other_stores: tuple[str, ...] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        return self.other_stores

    @property
    def functions(self) -> tuple[Function, ...]:
        return (self.join.foreign_key, self.join.joiner) if self.join else ()
