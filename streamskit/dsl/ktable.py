"""`KTable` and `GlobalKTable`: tables that change, one update for each change."""

from streamskit.api.windows import AnyWindows
from streamskit.columns import type_inference
from streamskit.common.errors import TopologyError
from streamskit.dsl.abstract_stream import AbstractStream, ColumnFunction
from streamskit.dsl.grouped_table import KGroupedTable
from streamskit.dsl.kstream import KStream
from streamskit.dsl.materialized import Materialized, Suppressed
from streamskit.dsl.materializing import key_value_store
from streamskit.dsl.table_joins import TableJoins
from streamskit.serdes import Serde, Serdes
from streamskit.topology import (
    Aggregation,
    Node,
    Store,
    Suppress,
    TableFilter,
    TableGroupBy,
    TableMapValues,
    ToStream,
)


class KTable(TableJoins):
    """A changing table: for each key the latest value.

    Every step takes a `name=` of your own for its node. Mirrors `org.apache.kafka.streams.kstream.KTable`.
    """

    def filter(
        self, predicate: ColumnFunction, materialized: str | Materialized | None = None, name: str | None = None
    ) -> "KTable":
        """Keep the rows for which `predicate(value)` or `predicate(key, value)` is true; the others are deleted.

        Args:
            predicate: makes a true-or-false Column; null counts as false.
            materialized: the name of the store that keeps the result's rows, to query it.

        Raises:
            TopologyError: the function does not make a true-or-false Column.

        >>> customers.filter(lambda v: v.country == "NO")

        Mirrors `KTable#filter`.
        """
        return self._filtered(predicate, "filter", materialized, name)

    def filter_not(
        self, predicate: ColumnFunction, materialized: str | Materialized | None = None, name: str | None = None
    ) -> "KTable":
        """Keep the rows for which the predicate is not true. Args are those of `filter`. Mirrors `KTable#filterNot`."""
        return self._filtered(predicate, "filter_not", materialized, name)

    def map_values(
        self, mapper: ColumnFunction, materialized: str | Materialized | None = None, name: str | None = None
    ) -> "KTable":
        """Give each row the value `mapper(value)` or `mapper(key, value)`; a deleted row stays deleted.

        Args:
            mapper: makes the new value.
            materialized: the name of the store that keeps the result's rows, to query it.

        >>> stats.map_values(lambda v: v.sum_price / v["count"])

        Mirrors `KTable#mapValues`.
        """
        wanted = self._burnt(materialized, "KTABLE-MAPVALUES-")
        name = self._builder._name_for("KTABLE-MAPVALUES", name)
        made = Serdes.for_type(self._result(mapper, "map_values", name))
        value = type_inference.check_serde(wanted.value, made, "value", self._what("map_values", name))
        store = self._store(wanted, value)
        return KTable(self._builder, self._after(TableMapValues, name, value=value, mapper=mapper, store=store))

    def to_stream(self, selector: ColumnFunction | None = None, name: str | None = None) -> KStream:
        """Return the table's updates as a stream; a deletion is a record with a null value.

        Args:
            selector: makes another key for each record, of the value, or of key and value.

        >>> counts.to_stream().to("counts")

        Mirrors `KTable#toStream`.
        """
        name = self._builder._name_for("KTABLE-TOSTREAM", name)
        stream = KStream(self._builder, self._after(ToStream, name))
        return stream if selector is None else stream.select_key(selector)

    def group_by(
        self,
        selector: ColumnFunction,
        name: str | None = None,
        key: Serde | None = None,
        value: Serde | None = None,
    ) -> KGroupedTable:
        """Give each row a new key and value, to aggregate the rows by that key.

        Args:
            selector: a Column function of key and value that returns the two Columns; a row whose new key is null
                belongs to no group.
            name: the rows go through `<application id>-<name>-repartition`; named after the store when not given.
            key: the serde of the keys in that topic and in stores.
            value: the serde of the values in that topic.

        Raises:
            TopologyError: the function does not make two Columns.

        >>> customers.group_by(lambda k, v: (v.city, v)).count("by-city")

        Mirrors `KTable#groupBy(selector, Grouped)`.
        """
        node_name = self._builder._name_for("KTABLE-SELECT", name)
        what = self._what("group_by", node_name)
        made_key, made_value = (
            Serdes.for_type(made) for made in type_inference.infer_pair(selector, self._inputs(), what)
        )
        key, value = (
            type_inference.check_serde(key, made_key, "key", what),
            type_inference.check_serde(value, made_value, "value", what),
        )
        node = self._after(TableGroupBy, node_name, key=key, value=value, mapper=selector)
        self._builder._rows_of(self._node)  # the old row has to be known, to take it out of its group
        return KGroupedTable(self._builder, node, name)

    def suppress(self, suppressed: Suppressed) -> "KTable":
        """Hold updates back, so that fewer go out: until a window closes, or for some time.

        Raises:
            TopologyError: the table is not windowed and so has no windows that close, or it keeps versions.

        >>> counts.suppress(Suppressed.until_window_closes())

        Mirrors `KTable#suppress`.
        """
        if not isinstance(suppressed, Suppressed):
            raise TopologyError(f"suppress: give Suppressed.until_window_closes() or the like, not {suppressed!r}.")
        name = suppressed.name or self._builder._name_for("KTABLE-SUPPRESS")
        store_name = f"{name}-store" if suppressed.name else self._builder._store_name("KTABLE-SUPPRESS-")
        what = self._what("suppress", name)
        if any(self._builder._store(store).kind == "versioned" for store in self._builder._rows_of(self._node)):
            raise TopologyError(f"{what}: a versioned table cannot be suppressed; materialize it without history.")
        windows = _windows_before(self._builder._nodes, self._node)
        if suppressed.time_limit is None and windows is None:
            raise TopologyError(
                f"{what}: this table has no windows that could close. Aggregate in windows first "
                "(windowed_by), or hold updates back for some time: Suppressed.until_time_limit('5 seconds')."
            )
        node = self._after(
            Suppress,
            name,
            time_limit=suppressed.time_limit,
            max_records=suppressed.buffer.records,
            max_bytes=suppressed.buffer.bytes,
            emit_early=suppressed.buffer.emit_early,
            windows=windows if suppressed.time_limit is None else None,
            store=Store(store_name, "buffer", self._node.key, self._node.value, queryable=False),
        )
        return KTable(self._builder, node)

    def _filtered(
        self,
        predicate: ColumnFunction,
        operator: str,
        materialized: str | Materialized | None,
        name: str | None,
    ) -> "KTable":
        wanted = self._burnt(materialized, "KTABLE-FILTER-")
        name = self._builder._name_for("KTABLE-FILTER", name)
        self._check_predicate(predicate, operator, name)
        value = type_inference.check_serde(wanted.value, self._node.value, "value", self._what(operator, name))
        store, negated = self._store(wanted, value), operator == "filter_not"
        node = self._after(TableFilter, name, value=value, predicate=predicate, negated=negated, store=store)
        return KTable(self._builder, node)

    def _burnt(self, materialized: str | Materialized | None, prefix: str) -> Materialized:
        wanted = Materialized.of(materialized)
        if materialized is not None and wanted.name is None:
            self._builder._store_name(prefix)  # Kafka Streams, too, uses up a name here, and makes no store
        return wanted

    def _store(self, wanted: Materialized, value: Serde) -> Store | None:
        return key_value_store(wanted, wanted.name, self._node.key, value) if wanted.name is not None else None


class GlobalKTable(AbstractStream):
    """A table that every instance holds whole, for streams to be joined with by any key.

    Mirrors `org.apache.kafka.streams.kstream.GlobalKTable`.
    """


def _windows_before(nodes: dict[str, Node], node: Node) -> AnyWindows | None:
    """Return the windows of the nearest windowed aggregation that the node's rows come from."""
    if isinstance(node, Aggregation) and node.windows is not None:
        return node.windows
    found = (_windows_before(nodes, nodes[parent]) for parent in node.parents)
    return next((windows for windows in found if windows is not None), None)
