"""Joins of a stream: with another stream in a window, with a table, with a global table."""

from typing import Any, NamedTuple, Self

from streamskit.api.windows import JoinWindows
from streamskit.common.durations import Duration, to_milliseconds
from streamskit.common.errors import TopologyError
from streamskit.dsl.abstract_stream import JOIN_OPERATORS, AbstractStream, ColumnFunction
from streamskit.dsl.graph_builder import GraphBuilder
from streamskit.dsl.ktable import KTable
from streamskit.dsl.repartition import RepartitionableStream
from streamskit.dsl.table_joins import GlobalKTable
from streamskit.serdes import Serde, Serdes
from streamskit.state.stores import Store
from streamskit.topology import nodes


class StreamJoins(RepartitionableStream):
    """The joins of a `KStream`."""

    def join(
        self,
        other: AbstractStream,
        joiner: ColumnFunction,
        windows: JoinWindows | None = None,
        *,
        key_selector: ColumnFunction | None = None,
        grace: Duration | None = None,
        name: str | None = None,
        store_name: str | None = None,
    ) -> Self:
        """Join each record with those of the same key on the other side; a record without a match produces no result.

        Args:
            other: a stream, a table or a global table.
            joiner: a Column function of the two values, or of key and the two values.
            windows: with a stream, how far apart in time two records may be.
            key_selector: with a global table, a Column function of the value, or of key and value: the key to look up.
            grace: with a versioned table, how long records wait so that they are joined in order of their time.
            name: a prefix of your own for the names of this step's nodes.
            store_name: with a stream, a prefix for the names of the join's stores; they cannot be queried.

        Raises:
            TopologyError: the other side is something else or belongs to another builder, its keys have another type,
                or an argument is missing.

        >>> window = JoinWindows.of_time_difference_with_no_grace("1 hour")
        >>> trades.join(lines, lambda trade, line: F.struct(trade.price, line), window).to("remarks")
        >>> trades.join(customers, lambda trade, customer: F.struct(trade.price, customer.city)).to("sales")
        >>> trades.join(countries, lambda trade, country: country, key_selector=lambda v: v.symbol).to("markets")

        Mirrors `KStream#join`; Spark's `join`.
        """
        arguments = {"windows": windows, "key_selector": key_selector, "grace": grace, "store_name": store_name}
        return self._join(other, joiner, (False, False), name, **arguments)

    def left_join(
        self,
        other: AbstractStream,
        joiner: ColumnFunction,
        windows: JoinWindows | None = None,
        *,
        key_selector: ColumnFunction | None = None,
        grace: Duration | None = None,
        name: str | None = None,
        store_name: str | None = None,
    ) -> Self:
        """Join each record with those of the same key on the other side; one without a match is joined with null.

        Args:
            other: a stream, a table or a global table.
            joiner: a Column function of the two values, or of key and the two values.
            windows: with a stream, how far apart in time two records may be.
            key_selector: with a global table, a Column function of the value, or of key and value: the key to look up.
            grace: with a versioned table, how long records wait so that they are joined in order of their time.
            name: a prefix of your own for the names of this step's nodes.
            store_name: with a stream, a prefix for the names of the join's stores; they cannot be queried.

        Raises:
            TopologyError: the other side is something else or belongs to another builder, its keys have another type,
                or an argument is missing.

        >>> trades.left_join(customers, lambda trade, customer: F.struct(trade.price, customer.city)).to("sales")

        Mirrors `KStream#leftJoin`.
        """
        arguments = {"windows": windows, "key_selector": key_selector, "grace": grace, "store_name": store_name}
        return self._join(other, joiner, (True, False), name, **arguments)

    def outer_join(
        self,
        other: "StreamJoins",
        joiner: ColumnFunction,
        windows: JoinWindows | None = None,
        *,
        name: str | None = None,
        store_name: str | None = None,
    ) -> Self:
        """Join the records of two streams; those of either side without a match are joined with null.

        Args:
            other: the other stream.
            joiner: a Column function of the two values, or of key and the two values.
            windows: how far apart in time two records may be.
            name: a prefix of your own for the names of this step's nodes.
            store_name: a prefix for the names of the join's stores, which cannot be queried.

        Raises:
            TopologyError: the other side is not a stream of this builder, its keys have another type, or the windows
                are missing.

        >>> window = JoinWindows.of_time_difference_and_grace("1 hour", "10 minutes")
        >>> trades.outer_join(lines, lambda trade, line: F.struct(trade.price, line), window).to("remarks")

        Mirrors `KStream#outerJoin`.
        """
        return self._join(other, joiner, (True, True), name, windows=windows, store_name=store_name)

    def _join(
        self,
        other: AbstractStream,
        joiner: ColumnFunction,
        outer: tuple[bool, bool],
        name: str | None,
        **arguments: Any,
    ) -> Self:
        operator = JOIN_OPERATORS[outer]
        step = self._step(operator, name or self._name)
        if isinstance(other, AbstractStream):
            self._check_same_builder(other, step)
        if isinstance(other, StreamJoins):
            _refuse(step, "a stream", arguments, "key_selector", "grace")
            if not isinstance(windows := arguments["windows"], JoinWindows):
                raise TopologyError(
                    f"{step}: two streams are joined within a window of time; add "
                    f"JoinWindows.of_time_difference_with_no_grace('10 seconds') (given: {windows!r})."
                )
            return self._join_stream(other, joiner, windows, outer, name, arguments["store_name"])
        if all(outer):
            raise TopologyError(f"{step}: only two streams, or two tables, can be outer-joined; use left_join.")
        if isinstance(other, KTable):
            _refuse(step, "a table", arguments, "windows", "key_selector", "store_name")
            return self._join_table(other, joiner, operator, name, arguments["grace"])
        if isinstance(other, GlobalKTable):
            if callable(arguments["windows"]) and arguments["key_selector"] is None:
                raise TopologyError(
                    f"{step}: a join with a global table takes the joiner second, and the key to look up by its name: "
                    f"{operator}(table, lambda value, row: ..., key_selector=lambda k, v: ...). In Java it is the "
                    "other way round."
                )
            _refuse(step, "a global table", arguments, "windows", "grace", "store_name")
            return self._join_global(other, joiner, operator, name, arguments["key_selector"])
        raise TopologyError(
            f"{step}: a stream can be joined with a stream, a table or a global table, not with a "
            f"{type(other).__name__}."
        )

    def _join_stream(
        self,
        other: "StreamJoins",
        joiner: ColumnFunction,
        windows: JoinWindows,
        outer: tuple[bool, bool],
        name: str | None,
        store_name: str | None,
    ) -> Self:
        """Add for each side a window node that keeps its records, and a join node that looks into the other side's."""
        graph, operator = self._graph, JOIN_OPERATORS[outer]
        self._check_same_key(other, operator, name or self._name)
        this = self._partitioned_by_key(name and f"{name}-left")
        other = other._partitioned_by_key(name and f"{name}-right")
        sides, names = (this._node, other._node), JoinNames.of(graph, name, store_name, outer)
        key, value = this._node.key, this._joined_serde(joiner, other, operator, names.merge)

        def store(name: str, kind: str, value: Serde, windows_kept: JoinWindows | None = None) -> Store:
            return Store(name, kind, key, value, windows_kept, windows.retention, queryable=False)

        # Records that wait for a match are kept once, for both sides.
        shared = store(names.shared_store, "buffer", Serdes.byte_array()) if outer[0] else None
        for parent, window, window_store in zip(sides, names.windows, names.stores, strict=True):
            fields: dict[str, Any] = {"store": store(window_store, "window", parent.value, windows)}
            graph.add(nodes.PassThrough, window, (parent.name,), key, parent.value, **fields)
        for side, join in enumerate(names.joins):
            other_stores = (names.stores[1 - side], *((shared.name,) if shared else ()))
            fields = {"group": names.merge, "side": side, "windows": windows, "outer": outer, "joiner": joiner}
            fields |= {"store": shared if side == 0 else None, "reads": other_stores}
            graph.add(nodes.StreamJoinSide, join, (names.windows[side],), key, value, **fields)
        return self._at(graph.add(nodes.Merge, names.merge, names.joins, key, value), rekeyed=False)

    def _join_table(
        self, table: KTable, joiner: ColumnFunction, operator: str, name: str | None, grace: Duration | None
    ) -> Self:
        """Look each record up in the table's rows."""
        self._check_same_key(table, operator, name or self._name)
        this, left = self._partitioned_by_key(name), operator == "left_join"
        name = self._graph.name_for("KSTREAM-LEFTJOIN" if left else "KSTREAM-JOIN", name)
        fields: dict[str, Any] = {"table": table._name, "left": left, "joiner": joiner}
        fields["value"] = this._joined_serde(joiner, table, operator, name)
        fields["reads"] = self._graph.lookup_stores(table._node)
        if grace is not None:
            wait = to_milliseconds(grace, "grace")
            stores = [self._graph.store(store) for store in fields["reads"]]
            _check_versions(stores, wait, self._step(operator, name))
            key, value = this._node.key, this._node.value
            buffer = Store(f"{name}-Buffer", "buffer", key, value, None, wait, queryable=False)
            fields |= {"grace": wait, "store": buffer}
        return this._at(this._after(nodes.StreamTableJoin, name, **fields), rekeyed=False)

    def _join_global(
        self,
        table: GlobalKTable,
        joiner: ColumnFunction,
        operator: str,
        name: str | None,
        selector: ColumnFunction | None,
    ) -> Self:
        """Look each record up in the global table by a selected key; the record keeps its own key."""
        # Kafka Streams also calls the inner join with a global table a left join.
        name = self._graph.name_for("KSTREAM-LEFTJOIN", name)
        step = self._step(operator, name)
        if selector is None:
            raise TopologyError(
                f"{step}: say which key to look up in the global table: key_selector=lambda k, v: v.country."
            )
        self._check_selects_key(selector, "key_selector", table, "the global table", step)
        fields = {"table": table._name, "left": operator == "left_join", "joiner": joiner, "key_selector": selector}
        value = self._joined_serde(joiner, table, operator, name)
        return self._next(nodes.StreamTableJoin, name, value=value, **fields)


class JoinNames(NamedTuple):
    """What the nodes and stores of a join of two streams are called; in each pair the first is this stream's."""

    windows: tuple[str, str]
    joins: tuple[str, str]
    merge: str
    stores: tuple[str, str]
    shared_store: str

    @classmethod
    def of(cls, graph: GraphBuilder, name: str | None, store_name: str | None, outer: tuple[bool, bool]) -> "JoinNames":
        """Return the names that Kafka Streams gives, in the order in which it numbers them."""
        left, right = outer
        this_window = graph.name_for("KSTREAM-WINDOWED", name, "-this-windowed")
        other_window = graph.name_for("KSTREAM-WINDOWED", name, "-other-windowed")
        this = graph.name_for("KSTREAM-OUTERTHIS" if right else "KSTREAM-JOINTHIS")
        other = graph.name_for("KSTREAM-OUTEROTHER" if left else "KSTREAM-JOINOTHER")
        merge = graph.name_for("KSTREAM-MERGE", name, "-merge")
        this_ending = "-outer-this-join" if right else "-this-join"
        other_ending = "-outer-other-join" if left else "-other-join"
        shared_ending = "-outer-shared-join" if right else "-left-shared-join"
        joins = (name + this_ending, name + other_ending) if name else (this, other)
        stores, shared = (this, other), f"KSTREAM-OUTERSHARED-{this[-10:]}"
        if store_name:
            stores, shared = (store_name + this_ending, store_name + other_ending), store_name + shared_ending
        windows = this_window, other_window
        return cls(windows, joins, merge, (f"{stores[0]}-store", f"{stores[1]}-store"), f"{shared}-store")


def _check_versions(stores: list[Store], grace: int, step: str) -> None:
    if any(store.kind != "versioned" for store in stores):
        raise TopologyError(
            f"{step}: with grace= a record is joined with the row as it was at its time, so the table has to keep "
            "versions: builder.table(..., materialized=Materialized.versioned('rows', '1 hour'))."
        )
    for store in stores:
        if grace > (store.retention or 0):
            raise TopologyError(
                f"{step}: a grace of {grace} ms is longer than the table keeps old versions ({store.retention} ms); "
                "give it a longer history retention."
            )


def _refuse(step: str, other: str, arguments: dict[str, Any], *refused: str) -> None:
    for argument in refused:
        if arguments.get(argument) is not None:
            raise TopologyError(f"{step}: a join with {other} has no {argument}=; leave it out.")
