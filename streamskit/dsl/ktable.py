"""`KTable`: changing tables, with one update for each change; and `KGroupedTable`, rows grouped by another key."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Self

from streamskit.api.processor import ValueTransformerWithKey
from streamskit.api.windows import AnyWindows, SessionWindows
from streamskit.columns import type_inference
from streamskit.common.errors import TopologyError
from streamskit.dsl.abstract_stream import AbstractStream, ColumnFunction, PythonFunction
from streamskit.dsl.graph_builder import GraphBuilder
from streamskit.dsl.materialized import Materialized, Suppressed, table_store
from streamskit.dsl.table_joins import TableJoins
from streamskit.serdes import Serde, Serdes, SessionWindowedSerde, TimeWindowedSerde
from streamskit.state.stores import Store
from streamskit.topology import nodes
from streamskit.topology.nodes import Node
from streamskit.topology.suppliers import check_supplier

if TYPE_CHECKING:
    from streamskit.dsl.kstream import KStream


class KTable(TableJoins):
    """A changing table: for each key the latest value.

    Every step takes a `name=` of your own for its node. Mirrors `org.apache.kafka.streams.kstream.KTable`.
    """

    def filter(
        self, predicate: ColumnFunction, materialized: str | Materialized | None = None, name: str | None = None
    ) -> Self:
        """Keep the rows for which the predicate is true; the others are deleted.

        Args:
            predicate: a Column function of the value, or of key and value, that makes a true-or-false Column; null
                counts as false.
            materialized: the name of the store that keeps the result's rows, to query it.
            name: a name of your own for this step.

        Raises:
            TopologyError: the function does not make a true-or-false Column.

        >>> customers.filter(lambda v: v.country == "NO", "norwegians")

        Mirrors `KTable#filter`; Spark's `where`.
        """
        return self._filtered(predicate, "filter", materialized, name)

    def filter_not(
        self, predicate: ColumnFunction, materialized: str | Materialized | None = None, name: str | None = None
    ) -> Self:
        """Keep the rows for which the predicate is not true: false or null; the others are deleted.

        Args:
            predicate: a Column function of the value, or of key and value, that makes a true-or-false Column.
            materialized: the name of the store that keeps the result's rows, to query it.
            name: a name of your own for this step.

        Raises:
            TopologyError: the function does not make a true-or-false Column.

        >>> customers.filter_not(lambda v: v.country == "NO", "foreigners")

        Mirrors `KTable#filterNot`.
        """
        return self._filtered(predicate, "filter_not", materialized, name)

    def map_values(
        self, mapper: ColumnFunction, materialized: str | Materialized | None = None, name: str | None = None
    ) -> Self:
        """Give each row a new value; a deleted row stays deleted.

        Args:
            mapper: a Column function of the value, or of key and value, that makes the new value.
            materialized: the name of the store that keeps the result's rows, to query it.
            name: a name of your own for this step.

        Raises:
            TopologyError: the function does not make a Column, or the store's serde is for another type.

        >>> customers.map_values(lambda v: F.upper(v.city), "cities")

        Mirrors `KTable#mapValues`; Spark's `select`.
        """
        materialized = self._materialized(materialized, "KTABLE-MAPVALUES-")
        name = self._graph.name_for("KTABLE-MAPVALUES", name)
        value = Serdes.for_type(self._result_type(mapper, "map_values", name))
        return self._kept(nodes.TableMapValues, name, materialized, value, "map_values", mapper=mapper)

    def transform_values(
        self,
        transformer: Callable[[], ValueTransformerWithKey],
        stores: Sequence[Store | str] = (),
        materialized: str | Materialized | None = None,
        value: Serde | None = None,
        name: str | None = None,
    ) -> Self:
        """Give each row a new value with your own transformer, which may keep state from update to update.

        Unlike the function of `map_values`, it is also called for deleted rows, with the value None. If a later step
        needs the old values of rows (a `group_by`, a left or outer join, a `suppress`), it is called for those as well,
        unless `materialized` keeps the rows.

        Args:
            transformer: a subclass of `ValueTransformerWithKey`, or a function that makes a new one each time, as each
                task has its own. It may bring stores along, as in `KStream.process`.
            stores: what it may use: stores made by `Stores`, or names of those that were added to the builder.
            materialized: the name of the store that keeps the result's rows, to query it.
            value: the serde of the new values; by default that of this table.
            name: a name of your own for this step.

        Raises:
            TopologyError: `transformer` does not make a new `ValueTransformerWithKey` each time it is called, there is
                no such store, or the store is a table's.

        >>> counts = Stores.persistent_key_value_store("counts", Serdes.string(), Serdes.long())
        >>> customers.map_values(lambda v: v.city).transform_values(Numbered, [counts], "numbered-cities")

        Mirrors `KTable#transformValues`; Spark's `transformWithState`.
        """
        materialized = Materialized.of(materialized)
        name = self._graph.name_for("KTABLE-TRANSFORMVALUES", name)
        step = self._step("transform_values", name)
        check_supplier(transformer, ValueTransformerWithKey, step)
        given = self._graph.stores_for(transformer, stores, step)
        if tables := given["reads"]:
            raise TopologyError(
                f"{step}: '{tables[0]}' is the store of a table, and a transformer uses stores of its own only. Join "
                "the two tables, or read that table in a processor."
            )
        fields: dict[str, Any] = {"supplier": transformer, "own_stores": given["own_stores"]}
        kind, value = nodes.TableTransformValues, value or materialized.value or self._node.value
        return self._kept(kind, name, materialized, value, "transform_values", **fields)

    def to_stream(self, selector: ColumnFunction | None = None, name: str | None = None) -> "KStream":
        """Return the table's updates as a stream; a deletion is a record with a null value.

        Args:
            selector: a Column function of the value, or of key and value, that returns another key for each record.
            name: a name of your own for this step.

        Raises:
            TopologyError: the function does not make a Column.

        >>> counts.to_stream().to("counts")

        Mirrors `KTable#toStream`.
        """
        name = self._graph.name_for("KTABLE-TOSTREAM", name)
        stream: KStream = self._graph.stream_of(self._graph, self._after(nodes.ToStream, name))
        return stream if selector is None else stream.select_key(selector)

    def group_by(
        self, selector: ColumnFunction, name: str | None = None, key: Serde | None = None, value: Serde | None = None
    ) -> "KGroupedTable":
        """Give each row a new key and value, to aggregate the rows by that key.

        Args:
            selector: a Column function of key and value that returns the two Columns; a row whose new key is null
                belongs to no group.
            name: the rows go through `<application id>-<name>-repartition`; by default it is named after the store.
            key: the serde of the keys in that topic and in stores; by default the one that fits their type.
            value: the serde of the values in that topic, likewise.

        Raises:
            TopologyError: the function does not make two Columns, or a serde is for another type.

        >>> customers.group_by(lambda k, v: (v.city, v)).count("by-city")

        Mirrors `KTable#groupBy(selector, Grouped)`; Spark's `groupBy`.
        """
        step_name = self._graph.name_for("KTABLE-SELECT", name)
        step = self._step("group_by", step_name)
        key_type, value_type = type_inference.infer_pair(selector, self._inputs(), step)
        key = type_inference.check_serde(key, Serdes.for_type(key_type), "key", step)
        value = type_inference.check_serde(value, Serdes.for_type(value_type), "value", step)
        node = self._after(nodes.TableGroupBy, step_name, key=key, value=value, mapper=selector)
        self._graph.lookup_stores(self._node)  # the old row is needed to take it out of its group
        return KGroupedTable(self._graph, node, name)

    def suppress(self, suppressed: Suppressed) -> Self:
        """Hold updates back so that fewer are emitted: until a window closes, or for some time.

        Args:
            suppressed: until when, and how many updates may be held back.

        Raises:
            TopologyError: the table is not windowed and so has no windows that close, or it keeps versions.

        >>> counts.suppress(Suppressed.until_window_closes())

        Mirrors `KTable#suppress`.
        """
        if not isinstance(suppressed, Suppressed):
            raise TopologyError(f"suppress: give Suppressed.until_window_closes() or the like, not {suppressed!r}.")
        graph, buffer = self._graph, suppressed.buffer
        name = graph.name_for("KTABLE-SUPPRESS") if suppressed.name is None else suppressed.name
        store_name = f"{name}-store" if suppressed.name else graph.store_name("KTABLE-SUPPRESS-")
        step = self._step("suppress", name)
        graph.lookup_stores(self._node)  # it looks up the rows before it for the updates that it holds back
        if graph.is_versioned(self._node):
            raise TopologyError(f"{step}: a versioned table cannot be suppressed; materialize it without history.")
        is_windowed = isinstance(self._node.key, TimeWindowedSerde | SessionWindowedSerde)
        windows = _windows_before(graph.nodes, self._node) if is_windowed else None
        if suppressed.time_limit is None and windows is None:
            raise TopologyError(
                f"{step}: this table's rows have no windows that could close. Aggregate in windows first "
                "(windowed_by) and keep the windowed keys, or hold updates back for some time: "
                "Suppressed.until_time_limit('5 seconds')."
            )
        return self._next(
            nodes.Suppress,
            name,
            time_limit=suppressed.time_limit,
            max_records=buffer.records,
            max_bytes=buffer.bytes,
            emit_early=buffer.emit_early,
            windows=windows if suppressed.time_limit is None else None,
            store=Store(store_name, "buffer", self._node.key, self._node.value, queryable=False),
        )

    def _filtered(
        self, predicate: ColumnFunction, operator: str, materialized: str | Materialized | None, name: str | None
    ) -> Self:
        materialized, negated = self._materialized(materialized, "KTABLE-FILTER-"), operator == "filter_not"
        name = self._graph.name_for("KTABLE-FILTER", name)
        self._check_predicate(predicate, operator, name)
        graph, table = self._graph, self._node
        fields: dict[str, Any] = {"predicate": predicate, "negated": negated}
        fields |= {"sends_old_values": graph.tells_old_values(table), "versioned": graph.is_versioned(table)}
        return self._kept(nodes.TableFilter, name, materialized, self._node.value, operator, **fields)

    def _kept(
        self,
        kind: Callable[..., Node],
        name: str,
        materialized: Materialized,
        value: Serde,
        operator: str,
        **functions: Any,
    ) -> Self:
        """Add a node that makes rows from this table's rows, and keeps them only if the store has a name."""
        value = type_inference.check_serde(materialized.value, value, "value", self._step(operator, name))
        store = None
        if materialized.name is not None:
            store = table_store(materialized, materialized.name, self._node.key, value)
        return self._next(kind, name, value=value, store=store, **functions)


def _windows_before(graph: Mapping[str, Node], node: Node) -> AnyWindows | None:
    """Return the windows of the nearest windowed aggregations that the node's rows come from; None if any has none.

    If there are several, as before a join, the first windows are returned, with the longest grace.
    Mirrors `org.apache.kafka.streams.kstream.internals.graph.GraphGraceSearchUtil`.
    """
    if isinstance(node, nodes.Aggregation) and node.windows is not None:
        return node.windows
    found = [_windows_before(graph, graph[parent]) for parent in node.parents]
    known = [windows for windows in found if windows is not None]
    if not known or len(known) < len(found):
        return None
    gap = known[0].gap if isinstance(known[0], SessionWindows) else 0
    return replace(known[0], grace=max(map(_closing_time, known)) - gap)


def _closing_time(windows: AnyWindows) -> int:
    """Return how long after its end a window closes, in milliseconds."""
    return windows.grace + (windows.gap if isinstance(windows, SessionWindows) else 0)


class KGroupedTable(AbstractStream):
    """Rows grouped by another key. When a row changes, its old value is removed from its group and the new one added.

    Mirrors `org.apache.kafka.streams.kstream.KGroupedTable`.
    """

    def __init__(self, graph: GraphBuilder, node: Node, topic_name: str | None) -> None:
        super().__init__(graph, node)
        self._topic_name = topic_name
        self._shared: tuple[str, nodes.Source] | None = None

    def count(self, materialized: str | Materialized | None = None, name: str | None = None) -> KTable:
        """Count the rows of each group.

        Args:
            materialized: the name of the store that holds the counts, to query it.
            name: a name of your own for this step.

        Raises:
            TopologyError: the store is for values of another type.

        >>> customers.group_by(lambda k, v: (v.city, v)).count("by-city")

        Mirrors `KGroupedTable#count`.
        """
        materialized, store_name = self._stored(materialized)
        step = self._step("count", name or "KTABLE")
        value = type_inference.check_serde(materialized.value, Serdes.long(), "count", step)
        store = table_store(materialized, store_name, self._node.key, value)
        return self._aggregated("KTABLE-AGGREGATE", store, name, _zero, _one_more, _one_less, is_count=True)

    def reduce(
        self,
        adder: PythonFunction,
        subtractor: PythonFunction,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable:
        """Fold the values of each group into one of the same type.

        Args:
            adder: a plain Python function of the aggregate and a row's new value, which adds the value.
            subtractor: a plain Python function of the aggregate and a row's old value, which removes the value.
            materialized: the name of the store that holds the results, to query it.
            name: a name of your own for this step.

        Raises:
            TopologyError: a function does not take two arguments.

        >>> grouped = customers.group_by(lambda k, v: (v.city, F.lit(1)))
        >>> grouped.reduce(lambda total, one: total + one, lambda total, one: total - one, "by-city")

        Mirrors `KGroupedTable#reduce`.
        """
        materialized, store_name = self._stored(materialized)
        step = self._step("reduce", name or store_name)
        for role, function in (("adder", adder), ("subtractor", subtractor)):
            type_inference.check_signature(function, role, ("aggregate", "value"), step)
        value = type_inference.check_serde(materialized.value, self._node.value, "value", step)
        store = table_store(materialized, store_name, self._node.key, value)
        return self._aggregated("KTABLE-REDUCE", store, name, None, _without_key(adder), _without_key(subtractor))

    def aggregate(
        self,
        initializer: PythonFunction,
        adder: PythonFunction,
        subtractor: PythonFunction,
        materialized: str | Materialized | None = None,
        *,
        value: Serde | None = None,
        name: str | None = None,
    ) -> KTable:
        """Aggregate the rows of each group with plain Python functions.

        Args:
            initializer: returns the aggregate that a group starts with.
            adder: returns the next aggregate, given the group's key, a row's new value and the aggregate.
            subtractor: returns the next aggregate, given the group's key, a row's old value and the aggregate.
            materialized: the name of the store that holds the aggregates, to query it.
            value: the serde of the aggregates; needed, as Python functions say nothing about types.
            name: a name of your own for this step.

        Raises:
            TopologyError: a function takes other arguments, or the serde is missing.

        >>> names = customers.group_by(lambda k, v: (v.city, v.name)).aggregate(
        ...     lambda: [],
        ...     lambda city, name, names: [*names, name],
        ...     lambda city, name, names: [each for each in names if each != name],
        ...     value=Serdes.json("array<string>"),
        ... )

        Mirrors `KGroupedTable#aggregate`.
        """
        materialized, store_name = self._stored(materialized)
        step = self._step("aggregate", name or store_name)
        type_inference.check_signature(initializer, "initializer", (), step)
        for role, function in (("adder", adder), ("subtractor", subtractor)):
            type_inference.check_signature(function, role, ("key", "value", "aggregate"), step)
        value = value or materialized.value
        if value is None:
            raise TopologyError(f"{step}: say which serde writes the aggregates: value=Serdes.json('array<string>').")
        store = table_store(materialized, store_name, self._node.key, value)
        return self._aggregated("KTABLE-AGGREGATE", store, name, initializer, adder, subtractor)

    def _stored(self, materialized: str | Materialized | None) -> tuple[Materialized, str]:
        """Return how the aggregates are kept, and the name of the store."""
        materialized = Materialized.of(materialized)
        return materialized, materialized.name or self._graph.store_name("KTABLE-AGGREGATE-")

    def _aggregated(
        self,
        prefix: str,
        store: Store,
        name: str | None,
        initializer: PythonFunction | None,
        adder: PythonFunction,
        subtractor: PythonFunction,
        is_count: bool = False,
    ) -> KTable:
        sink = self._graph.name_for("KSTREAM-SINK", name, "-sink")
        source = self._graph.name_for("KSTREAM-SOURCE", name, "-source")
        name = self._graph.name_for(prefix, name)
        parents = (self._repartitioned(sink, source, f"{self._topic_name or store.name}-repartition").name,)
        functions = {"initializer": initializer, "adder": adder, "subtractor": subtractor}
        fields: dict[str, Any] = {**functions, "store": store, "is_count": is_count}
        node = self._graph.add(nodes.TableAggregate, name, parents, store.key, store.value, **fields)
        return KTable(self._graph, node)

    def _repartitioned(self, sink: str, source: str, topic: str) -> nodes.Source:
        """Send the rows, each with its old value, through a topic; one that the user named is shared."""
        if self._shared is not None and self._topic_name is not None:
            self._graph.move_to_end([self._shared[0]])
            return self._shared[1]
        key, value = self._node.key, self._node.value
        reader = self._graph.add_topic(topic, sink, source, (self._name,), key, value, changes=True)
        self._shared = sink, reader
        return reader


def _without_key(function: PythonFunction) -> PythonFunction:
    @wraps(function)
    def folded(key: Any, value: Any, aggregate: Any) -> Any:
        return function(aggregate, value)

    return folded


def _zero() -> int:
    return 0


def _one_more(key: Any, value: Any, count: int) -> int:
    return count + 1


def _one_less(key: Any, value: Any, count: int) -> int:
    return count - 1
