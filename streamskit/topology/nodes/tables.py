"""Nodes of tables: their sources and steps, aggregations, suppress."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from streamskit.api.windows import AnyWindows
from streamskit.common.durations import spell
from streamskit.state.stores import Store
from streamskit.topology.nodes.node import Function, Node, OperatorInput


@dataclass(frozen=True)
class ToStream(Node):
    """Turns a table's updates into records of a stream."""


@dataclass(frozen=True)
class TableSource(Node):
    """Takes each record for the new value of its key's row; `store` is None when nobody needs the table kept.

    Mirrors `KTableSource`, for `builder.table()` and for `to_table()`.
    """

    is_table: ClassVar[bool] = True
    can_store_latest: ClassVar[bool] = True
    store: Store | None = None

    @property
    def label(self) -> str:
        return "to table" if self.name[:-11] == "KSTREAM-TOTABLE" else "table"


@dataclass(frozen=True)
class GlobalTableSource(Node):
    """Keeps a whole topic, all partitions of it, in a store of every instance."""

    is_table: ClassVar[bool] = True
    is_global: ClassVar[bool] = True
    store: Store | None = None

    @property
    def label(self) -> str:
        return "global table"


@dataclass(frozen=True)
class TableFilter(Node):
    """Passes on the rows for which a Column function says true, and a deletion for the others.

    With the old value of a row it is spared the deletion of one that never passed.
    """

    is_table: ClassVar[bool] = True
    uses_old_values: ClassVar[bool] = True
    passes_old_values: ClassVar[bool] = True
    can_store_latest: ClassVar[bool] = True
    predicate: Function = lambda v: v
    negated: bool = False
    store: Store | None = None

    @property
    def label(self) -> str:
        return "filter not" if self.negated else "filter"


@dataclass(frozen=True)
class TableMapValues(Node):
    """Gives each row a new value by a Column function; a deletion stays one."""

    is_table: ClassVar[bool] = True
    passes_old_values: ClassVar[bool] = True
    can_store_latest: ClassVar[bool] = True
    mapper: Function = lambda v: v
    store: Store | None = None

    @property
    def label(self) -> str:
        return "map values"


@dataclass(frozen=True)
class TableGroupBy(Node):
    """Gives each row a new key and value (`KTable.group_by`), for the new and for the old value of the row."""

    is_table: ClassVar[bool] = True
    needs_old_values: ClassVar[bool] = True
    mapper: Function = lambda k, v: (k, v)

    @property
    def label(self) -> str:
        return "group by"


class AggregationFunctions(NamedTuple):
    """The plain Python functions of an aggregation: `aggregator(key, value, aggregate)`, `merger(key, one, other)`.

    Without an `initializer` the first value starts; only sessions have a `merger`.
    """

    initializer: Function | None
    aggregator: Function
    merger: Function | None


@dataclass(frozen=True)
class Aggregation(Node):
    """Keeps one aggregate for each key, or for each key and window, and passes on its updates.

    `on_close` says that a window's result goes out once, when the window closes.
    """

    is_table: ClassVar[bool] = True
    is_stateful: ClassVar[bool] = True
    knows_old_values: ClassVar[bool] = True
    windows: AnyWindows | None = None
    store: Store | None = None
    on_close: bool = False

    @property
    def python_functions(self) -> AggregationFunctions | None:
        """What it does in Python; None if it is made of Columns."""
        return None


@dataclass(frozen=True)
class ColumnAggregate(Aggregation):
    """Aggregates with Spark's own functions: `aggregator` takes the value and returns an aggregate Column."""

    aggregator: Function = lambda v: v

    @property
    def label(self) -> str:
        return "aggregate"


@dataclass(frozen=True)
class Count(Aggregation):
    """Counts records."""

    @property
    def python_functions(self) -> AggregationFunctions:
        return AggregationFunctions(lambda: 0, lambda key, value, count: count + 1, lambda key, one, other: one + other)


@dataclass(frozen=True)
class Reduce(Aggregation):
    """Folds values with `reducer(aggregate, value)`, a plain Python function; the first value starts."""

    reducer: Function = lambda aggregate, value: value

    @property
    def python_functions(self) -> AggregationFunctions:
        reducer = self.reducer
        return AggregationFunctions(
            None, lambda key, value, aggregate: reducer(aggregate, value), lambda key, one, other: reducer(one, other)
        )


@dataclass(frozen=True)
class Aggregate(Aggregation):
    """Folds values with plain Python functions: `initializer()`, `aggregator(key, value, aggregate)`.

    `merger(key, one, other)` joins the aggregates of two sessions.
    """

    initializer: Function = lambda: None
    aggregator: Function = lambda key, value, aggregate: aggregate
    merger: Function | None = None

    @property
    def python_functions(self) -> AggregationFunctions:
        return AggregationFunctions(self.initializer, self.aggregator, self.merger)


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
    def python_functions(self) -> AggregationFunctions:
        return AggregationFunctions(self.initializer, self.aggregator, self.merger)

    @property
    def label(self) -> str:
        return "aggregate"

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.store.name,) if self.store else ()

    @property
    def operator_input(self) -> OperatorInput | None:
        return OperatorInput(self.group, self.side)


@dataclass(frozen=True)
class TableMerge(Node):
    """Passes on the updates of the sides of a table-table join or a cogroup as one table."""

    is_table: ClassVar[bool] = True
    passes_old_values: ClassVar[bool] = True
    store: Store | None = None

    @property
    def label(self) -> str:
        return "merge"


@dataclass(frozen=True)
class TableAggregate(Node):
    """Folds the rows of a grouped table: `adder` takes a row in, `subtractor` takes its old value out.

    `initializer` is None for a reduce, whose first value starts. The functions take key, value and aggregate.
    """

    is_table: ClassVar[bool] = True
    is_stateful: ClassVar[bool] = True
    knows_old_values: ClassVar[bool] = True
    initializer: Function | None = None
    adder: Function = lambda key, value, aggregate: aggregate
    subtractor: Function = lambda key, value, aggregate: aggregate
    store: Store | None = None

    @property
    def label(self) -> str:
        return "aggregate"


@dataclass(frozen=True)
class Suppress(Node):
    """Holds updates back: until a window closes, or for a time. Null `time_limit` means until the window closes.

    Mirrors `KTableSuppressProcessorSupplier`; its store is a buffer.
    """

    is_table: ClassVar[bool] = True
    is_stateful: ClassVar[bool] = True
    passes_old_values: ClassVar[bool] = True
    time_limit: int | None = None
    max_records: int | None = None
    max_bytes: int | None = None
    emit_early: bool = False
    windows: AnyWindows | None = None
    store: Store | None = None

    @property
    def buffered_until(self) -> str:
        return super().buffered_until if self.time_limit is None else f"waiting for {spell(self.time_limit)}"
