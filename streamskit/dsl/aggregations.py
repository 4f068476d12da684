"""Aggregations of grouped records, with or without windows: `count`, `reduce`, `aggregate`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from streamskit.api.windows import AnyWindows, SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows
from streamskit.columns import type_inference
from streamskit.common.errors import TopologyError
from streamskit.dsl.abstract_stream import AbstractStream, ColumnFunction, PythonFunction
from streamskit.dsl.graph_builder import GraphBuilder
from streamskit.dsl.ktable import KTable
from streamskit.dsl.materialized import EmitStrategy, Materialized, table_store
from streamskit.dsl.repartition import RepartitionNames, repartition
from streamskit.serdes import Serde, Serdes
from streamskit.state.stores import Store
from streamskit.topology import nodes
from streamskit.topology.nodes import Node


@dataclass
class Grouping:
    """How records were grouped: what all aggregations of one grouped stream have in common.

    Args:
        graph: the program.
        node: the node that passes on the records.
        rekeyed: whether their key may have changed, so that they have to be repartitioned first.
        name: the user's name for the repartition topic.
        key: the serde of the keys in that topic and in stores.
        value: the serde of the values in that topic.

    Mirrors `org.apache.kafka.streams.kstream.internals.GroupedStreamAggregateBuilder`.
    """

    graph: GraphBuilder
    node: Node
    rekeyed: bool
    name: str | None
    key: Serde
    value: Serde
    _shared: tuple[RepartitionNames, Node] | None = None

    def parent(self, store_name: str) -> Node:
        """Return the node that passes the records to an aggregation, after a repartition where one is needed.

        A topic that the user named is shared by all aggregations; otherwise each has one named after its store.
        """
        if not self.rekeyed:
            return self.node
        names = self.names(store_name)
        if self._shared is not None:
            shared, source = self._shared
            self.graph.move_to_end([shared.filter, shared.sink])
            return source
        source = repartition(self.graph, self.node, names, self.key, self.value)
        if self.name is not None:
            self._shared = names, source
        return source

    def names(self, store_name: str) -> RepartitionNames:
        """Return the names of a repartition for an aggregation, which uses them up."""
        return RepartitionNames.of(self.graph, self.name or store_name)


class Aggregations(AbstractStream):
    """The aggregations of grouped records."""

    def __init__(self, grouping: Grouping, windows: AnyWindows | None = None, emit: EmitStrategy | None = None) -> None:
        super().__init__(grouping.graph, grouping.node)
        self._grouping = grouping
        self._windows = windows
        self._emit = emit or EmitStrategy.on_window_update()

    def count(self, materialized: str | Materialized | None = None, name: str | None = None) -> KTable:
        """Count the records of each key (and window).

        Args:
            materialized: the name of the store that holds the counts, to query it.
            name: a name of your own for this step.

        Raises:
            TopologyError: the store is for values of another type, or for windows of another retention.

        >>> trades.group_by(lambda v: v.symbol).count("trades-by-symbol")

        Mirrors `KGroupedStream#count`.
        """
        # Kafka Streams uses up the name of a store here, but not for sliding windows, which were added later.
        if not isinstance(self._windows, SlidingWindows):
            materialized = self._materialized(materialized, "KSTREAM-AGGREGATE-")
        materialized = Materialized.of(materialized)
        store_name, name, step = self._names(materialized, "KSTREAM-AGGREGATE", "count", name)
        value = type_inference.check_serde(materialized.value, Serdes.long(), "count", step)
        return self._add(nodes.Count, name, self._store(materialized, store_name, value, step))

    def reduce(
        self, reducer: PythonFunction, materialized: str | Materialized | None = None, name: str | None = None
    ) -> KTable:
        """Fold the values of each key (and window) into one of the same type.

        Args:
            reducer: a plain Python function of the aggregate so far and the next value; the first value is the first
                aggregate, and returning None deletes the row.
            materialized: the name of the store that holds the results, to query it.
            name: a name of your own for this step.

        Raises:
            TopologyError: the function does not take two arguments.

        >>> lines.group_by_key().reduce(lambda longest, line: line if len(line) > len(longest) else longest)

        Mirrors `KGroupedStream#reduce`.
        """
        materialized = Materialized.of(materialized)
        store_name, name, step = self._names(materialized, "KSTREAM-REDUCE", "reduce", name)
        type_inference.check_signature(reducer, "reducer", ("aggregate", "value"), step)
        value = type_inference.check_serde(materialized.value, self._grouping.value, "value", step)
        return self._add(nodes.Reduce, name, self._store(materialized, store_name, value, step), reducer=reducer)

    def aggregate(
        self,
        initializer: Callable[..., Any],
        aggregator: PythonFunction | str | Materialized | None = None,
        materialized: str | Materialized | None = None,
        *,
        merger: PythonFunction | None = None,
        value: Serde | None = None,
        name: str | None = None,
    ) -> KTable:
        """Aggregate the values of each key (and window), in one of two ways.

        Either with Spark's own functions, as in `aggregate(lambda v: F.max(v.price))`: one Column function of the value
        that returns an aggregate Column. Or with plain Python functions, called for one record at a time.

        Args:
            initializer: the Column function; or a function that returns the aggregate a key (and window) starts with.
            aggregator: a function of key, value and aggregate that returns the next aggregate; None deletes the row.
            materialized: the name of the store that holds the aggregates, to query it.
            merger: a function of the key and the aggregates of two sessions to be merged, that returns one aggregate.
            value: the serde of the aggregates; needed with Python functions, which say nothing about types.
            name: a name of your own for this step.

        Raises:
            TopologyError: a function is missing or of the wrong kind.

        >>> trades.group_by(lambda v: v.symbol).aggregate(lambda v: F.max(v.price), "highest")
        >>> grouped = lines.group_by_key()
        >>> grouped.aggregate(lambda: 0, lambda key, value, total: total + len(value), "letters", value=Serdes.long())

        Mirrors `KGroupedStream#aggregate`; Spark's `groupBy(...).agg(...)`.
        """
        if isinstance(aggregator, str | Materialized):
            aggregator, materialized = None, aggregator
        materialized = Materialized.of(materialized)
        store_name, name, step = self._names(materialized, "KSTREAM-AGGREGATE", "aggregate", name)
        serde = value or materialized.value
        if aggregator is None:
            store = self._store(materialized, store_name, self._column_aggregate(initializer, serde, name), step)
            return self._add(nodes.ColumnAggregate, name, store, aggregator=initializer)
        value = check_aggregate(initializer, aggregator, merger, serde, self._windows, step)
        functions = {"initializer": initializer, "aggregator": aggregator, "merger": merger}
        return self._add(nodes.Aggregate, name, self._store(materialized, store_name, value, step), **functions)

    def _names(self, materialized: Materialized, prefix: str, operator: str, name: str | None) -> tuple[str, str, str]:
        """Return the names of the store and of the node, and what an error calls the step."""
        # Kafka Streams numbers the store before the operator when it has to invent the store's name.
        store_name = materialized.name or self._graph.store_name(f"{prefix}-")
        name = self._graph.name_for(prefix, name)
        return store_name, name, self._step(operator, name)

    def _column_aggregate(self, function: ColumnFunction, serde: Serde | None, name: str) -> Serde:
        step = self._step("aggregate", name)
        if not (self._windows is None or isinstance(self._windows, TimeWindows)) or self._emit.on_close:
            is_unlimited = isinstance(self._windows, UnlimitedWindows)
            kinds = "in unlimited windows" if is_unlimited else "in sessions or sliding windows"
            where = "with EmitStrategy.on_window_close()" if self._emit.on_close else kinds
            raise TopologyError(
                f"{step}: Spark's own aggregate functions cannot run {where}. Write Python functions: "
                "aggregate(lambda: 0, lambda key, value, aggregate: aggregate + 1, value=Serdes.long()), "
                "for sessions also merger=lambda key, one, other: one + other."
            )
        # Spark groups by the key, and gives the function the values alone.
        inputs = {"value": self._inputs()["value"]}
        result = Serdes.for_type(type_inference.infer_type(function, inputs, step, aggregate=True))
        return type_inference.check_serde(serde, result, "aggregate", step)

    def _store(self, materialized: Materialized, name: str, value: Serde, step: str) -> Store:
        return table_store(materialized, name, self._grouping.key, value, self._windows, step)

    def _add(self, kind: Callable[..., Node], name: str, store: Store, **functions: PythonFunction | None) -> KTable:
        parents, key = (self._grouping.parent(store.name).name,), windowed_key(store.key, self._windows)
        store = replace(store, by_time=self._emit.on_close and store.kind == "window")
        fields = {"windows": self._windows, "store": store, "on_close": self._emit.on_close, **functions}
        return KTable(self._graph, self._graph.add(kind, name, parents, key, store.value, **fields))


def windowed_key(key: Serde, windows: AnyWindows | None) -> Serde:
    """Return the serde of an aggregation's keys, which include the window if there is one."""
    if windows is None:
        return key
    if isinstance(windows, SessionWindows):
        return Serdes.session_windowed(key)
    return Serdes.time_windowed(key, windows.size)


def check_windows(windows: object, step: str) -> None:
    """Check that these are windows to aggregate in.

    Raises:
        TopologyError: they are not.
    """
    if not isinstance(windows, TimeWindows | SlidingWindows | SessionWindows | UnlimitedWindows):
        hint = " JoinWindows are for joins." if type(windows).__name__ == "JoinWindows" else ""
        raise TopologyError(
            f"{step}: give TimeWindows, SlidingWindows, SessionWindows or UnlimitedWindows, such as "
            f"TimeWindows.of_size_with_no_grace('5 seconds'), not {windows!r}.{hint}"
        )
    if isinstance(windows, SlidingWindows) and windows.time_difference == 0:
        raise TopologyError(
            f"{step}: sliding windows with a time difference of 0 begin and end at the same time, which Kafka Streams "
            "refuses at the first record. Give 1 ms or more; to aggregate records of equal times, use "
            "TimeWindows.of_size_with_no_grace(1)."
        )


def check_aggregate(
    initializer: object, aggregator: object, merger: object, value: Serde | None, windows: AnyWindows | None, step: str
) -> Serde:
    """Check the Python functions of an aggregation, and return the serde of its aggregates.

    Raises:
        TopologyError: a function or the serde is missing, a function takes other arguments, or there is a merger
            but no sessions.
    """
    type_inference.check_signature(initializer, "initializer", (), step)
    type_inference.check_signature(aggregator, "aggregator", ("key", "value", "aggregate"), step)
    if isinstance(windows, SessionWindows):
        if merger is None:
            raise TopologyError(
                f"{step}: a record can join two sessions into one, so sessions need a merger= that makes one aggregate "
                "of two: merger=lambda key, one, other: one + other."
            )
        type_inference.check_signature(merger, "merger", ("key", "one", "other"), step)
    elif merger is not None:
        raise TopologyError(f"{step}: only session windows are merged and need a merger=; leave it out.")
    if value is None:
        raise TopologyError(
            f"{step}: say which serde writes the aggregates, as Python functions do not: value=Serdes.long(), "
            "value=Serdes.json('count long, total double')."
        )
    return value
