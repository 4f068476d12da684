"""Nodes of tables: their sources and steps, aggregations, suppress."""

from collections.abc import Mapping
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
    """Treats each record as the new value of its key's row; `store` is None if no step needs the rows kept.

    Mirrors `KTableSource`, for `builder.table()` and for `to_table()`.
    """

    is_table: ClassVar[bool] = True
    store: Store | None = None

    @property
    def old_value_store(self) -> Store | None:
        return self.row_store

    @property
    def label(self) -> str:
        return "to table" if self.name[:-11] == "KSTREAM-TOTABLE" else "table"


@dataclass(frozen=True)
class GlobalTableSource(Node):
    """Keeps a whole topic, with all its partitions, in a store in every instance."""

    is_table: ClassVar[bool] = True
    is_global: ClassVar[bool] = True
    label: ClassVar[str] = "global table"
    store: Store | None = None


@dataclass(frozen=True)
class TableFilter(Node):
    """Passes on the rows for which a Column function returns true, and a deletion for the others.

    If it has a row's old value, it need not send a deletion for a row that never passed: `sends_old_values` says that
    the table before it sent old values when this step was added. Every update of a `versioned` table is passed on.
    """

    is_table: ClassVar[bool] = True
    passes_old_values: ClassVar[bool] = True
    predicate: Function = lambda v: v
    negated: bool = False
    store: Store | None = None
    sends_old_values: bool = False
    versioned: bool = False

    @property
    def old_value_store(self) -> Store | None:
        return self.row_store

    @property
    def heeds_requests(self) -> bool:
        return self.skips_absent_rows

    @property
    def asks_for_old_values(self) -> bool:
        return self.sends_old_values  # it requested them when it was added, and the table before it can send them

    @property
    def skips_absent_rows(self) -> bool:
        return not self.versioned

    @property
    def label(self) -> str:
        return "filter not" if self.negated else "filter"


@dataclass(frozen=True)
class TableMapValues(Node):
    """Gives each row a new value by a Column function; a deletion stays one."""

    is_table: ClassVar[bool] = True
    passes_old_values: ClassVar[bool] = True
    label: ClassVar[str] = "map values"
    mapper: Function = lambda v: v
    store: Store | None = None

    @property
    def old_value_store(self) -> Store | None:
        return self.row_store


@dataclass(frozen=True)
class TableTransformValues(Node):
    """Gives each row, deleted ones too, a new value by a transformer, which `supplier` makes.

    `own_stores` are those of the transformer; `store` holds the rows that it makes, if they are to be queried.
    Without `store`, the old value of a row is what the transformer makes of the previous step's old value.
    """

    is_table: ClassVar[bool] = True
    is_stateful: ClassVar[bool] = True
    passes_old_values: ClassVar[bool] = True
    changes_old_values: ClassVar[bool] = True  # a transformer may return something else the second time
    heeds_requests: ClassVar[bool] = True
    label: ClassVar[str] = "transform values"
    supplier: Function = lambda: None
    own_stores: tuple[Store, ...] = ()
    store: Store | None = None

    @property
    def stores(self) -> tuple[Store, ...]:
        return (*super().stores, *self.own_stores)

    @property
    def row_store(self) -> Store | None:
        return self.store

    @property
    def old_value_store(self) -> Store | None:
        return self.store

    def state(self, nodes: Mapping[str, Node]) -> list[str]:
        return [
            self.types,
            *(f"store '{store.name}' ({store.kind}) of {store.key} and {store.value}" for store in self.own_stores),
        ]


@dataclass(frozen=True)
class TableGroupBy(Node):
    """Gives each row a new key and value (`KTable.group_by`), for the new and for the old value of the row."""

    is_table: ClassVar[bool] = True
    needs_old_values: ClassVar[bool] = True
    changes_keys: ClassVar[bool] = True
    label: ClassVar[str] = "group by"
    mapper: Function = lambda k, v: (k, v)


class AggregationFunctions(NamedTuple):
    """The plain Python functions of an aggregation: `aggregator(key, value, aggregate)`, `merger(key, one, other)`.

    Without an `initializer`, the first value is the first aggregate; only sessions have a `merger`.
    """

    initializer: Function | None
    aggregator: Function
    merger: Function | None


@dataclass(frozen=True)
class Aggregation(Node):
    """Keeps one aggregate for each key, or for each key and window, and passes on its updates.

    `on_close` says that a window's result is emitted once, when the window closes.
    """

    is_table: ClassVar[bool] = True
    is_stateful: ClassVar[bool] = True
    keeps_rows: ClassVar[bool] = True
    knows_old_values: ClassVar[bool] = True
    changes_old_values: ClassVar[bool] = True  # for a new row it sends the initial aggregate
    windows: AnyWindows | None = None
    store: Store | None = None
    on_close: bool = False

    @property
    def goes_by_time(self) -> bool:
        return self.windows is not None

    @property
    def python_functions(self) -> AggregationFunctions | None:
        """Its Python functions; None if it is made of Columns."""
        return None


@dataclass(frozen=True)
class ColumnAggregate(Aggregation):
    """Aggregates with Spark's own functions: `aggregator` takes the value and returns an aggregate Column."""

    knows_old_values: ClassVar[bool] = False  # Spark only gives the new ones
    changes_old_values: ClassVar[bool] = False
    label: ClassVar[str] = "aggregate"
    aggregator: Function = lambda v: v


@dataclass(frozen=True)
class Count(Aggregation):
    """Counts records."""

    @property
    def python_functions(self) -> AggregationFunctions:
        return AggregationFunctions(lambda: 0, lambda key, value, count: count + 1, lambda key, one, other: one + other)


@dataclass(frozen=True)
class Reduce(Aggregation):
    """Folds values with `reducer(aggregate, value)`, a plain Python function, starting with the first value."""

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

    label: ClassVar[str] = "aggregate"
    group: str = ""
    side: int = 0
    initializer: Function = lambda: None
    aggregator: Function = lambda key, value, aggregate: aggregate
    merger: Function | None = None

    @property
    def python_functions(self) -> AggregationFunctions:
        return AggregationFunctions(self.initializer, self.aggregator, self.merger)

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
    knows_old_values: ClassVar[bool] = True
    tells_given_old_values: ClassVar[bool] = True
    label: ClassVar[str] = "merge"
    store: Store | None = None

    @property
    def row_operator(self) -> str:
        return f"{self.name}-rows"  # the join's operator has the plain name

    @property
    def old_value_store(self) -> Store | None:
        # The join sends old values; only a store with versions has to say which update is the latest.
        return self.row_store if self.store is not None and self.store.kind == "versioned" else None


@dataclass(frozen=True)
class TableAggregate(Node):
    """Folds the rows of a grouped table: `adder` takes a row in, `subtractor` takes its old value out.

    `initializer` is None for a reduce, which starts with the first value. The functions take key, value and aggregate.
    `is_count` says that they are not the user's, but count.
    """

    is_table: ClassVar[bool] = True
    is_stateful: ClassVar[bool] = True
    needs_old_values: ClassVar[bool] = True
    keeps_rows: ClassVar[bool] = True
    knows_old_values: ClassVar[bool] = True
    initializer: Function | None = None
    adder: Function = lambda key, value, aggregate: aggregate
    subtractor: Function = lambda key, value, aggregate: aggregate
    store: Store | None = None
    is_count: bool = False

    @property
    def label(self) -> str:
        if self.is_count:
            return "count"
        return "reduce" if self.initializer is None else "aggregate"


@dataclass(frozen=True)
class Suppress(Node):
    """Holds updates back: until a window closes, or for a time. Null `time_limit` means until the window closes.

    Mirrors `KTableSuppressProcessorSupplier`; its store is a buffer.
    """

    is_table: ClassVar[bool] = True
    is_stateful: ClassVar[bool] = True
    uses_old_values: ClassVar[bool] = True
    passes_old_values: ClassVar[bool] = True
    changes_old_values: ClassVar[bool] = True  # it sends the one of the last update that it held back
    goes_by_time: ClassVar[bool] = True
    asks_for_old_values: ClassVar[bool] = True
    time_limit: int | None = None
    max_records: int | None = None
    max_bytes: int | None = None
    emit_early: bool = False
    windows: AnyWindows | None = None
    store: Store | None = None

    @property
    def buffered_until(self) -> str:
        return super().buffered_until if self.time_limit is None else f"waiting for {spell(self.time_limit)}"
