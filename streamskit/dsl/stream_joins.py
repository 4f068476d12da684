"""Joins of a stream: with another stream in a window, with a table, with a global table."""

from typing import TYPE_CHECKING, Any

from streamskit.api.windows import JoinWindows
from streamskit.columns import type_inference
from streamskit.columns.user_functions import type_text
from streamskit.common.durations import Duration, to_milliseconds
from streamskit.common.errors import TopologyError
from streamskit.dsl.abstract_stream import AbstractStream, ColumnFunction
from streamskit.dsl.regrouping import Regrouping
from streamskit.dsl.windowed_join import OPERATORS, join_in_window
from streamskit.serdes import Serdes
from streamskit.topology import Store, StreamTableJoin

if TYPE_CHECKING:
    from streamskit.dsl.kstream import KStream


class StreamJoins(Regrouping):
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
    ) -> "KStream":
        """Join each record with those of the same key on the other side; a record without a match gives nothing.

        Args:
            other: a stream, a table or a global table.
            joiner: a Column function of the two values, or of key and the two values.
            windows: for a stream: how far apart in time two records may be.
            key_selector: for a global table: makes the key to look up, of the value, or of key and value.
            grace: for a versioned table: how long records wait, to be joined in the order of their time.
            name: a name of your own, that the names of this step's nodes begin with.
            store_name: for a stream: what the names of the join's stores begin with.

        Raises:
            TopologyError: the other side is something else, its keys have another type, or an argument is missing.

        >>> window = JoinWindows.of_time_difference_with_no_grace("1 hour")
        >>> orders.join(payments, lambda order, payment: F.struct(order.id, payment.amount), window)
        >>> plays.join(songs, lambda play, song: song.title)
        >>> orders.join(countries, lambda o, c: c.name, key_selector=lambda k, v: v.country)

        Mirrors `KStream#join`.
        """
        details = {"windows": windows, "key_selector": key_selector, "grace": grace, "store_name": store_name}
        return self._join(other, joiner, (False, False), name, **details)

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
    ) -> "KStream":
        """Join each record with those of the same key on the other side; one without a match is joined with null.

        Args are those of `join`. Mirrors `KStream#leftJoin`.
        """
        details = {"windows": windows, "key_selector": key_selector, "grace": grace, "store_name": store_name}
        return self._join(other, joiner, (True, False), name, **details)

    def outer_join(
        self,
        other: "KStream",
        joiner: ColumnFunction,
        windows: JoinWindows | None = None,
        *,
        name: str | None = None,
        store_name: str | None = None,
    ) -> "KStream":
        """Join the records of two streams; those of either side without a match are joined with null.

        Args are those of `join`, for a stream. Mirrors `KStream#outerJoin`.
        """
        details = {"windows": windows, "key_selector": None, "grace": None, "store_name": store_name}
        return self._join(other, joiner, (True, True), name, **details)

    def _join(
        self, other: AbstractStream, joiner: ColumnFunction, outer: tuple[bool, bool], name: str | None, **details: Any
    ) -> "KStream":
        from streamskit.dsl.kstream import KStream
        from streamskit.dsl.ktable import GlobalKTable, KTable

        what = self._what(OPERATORS[outer], name or self._name)
        windows, selector, grace = details["windows"], details["key_selector"], details["grace"]
        if isinstance(other, KStream):
            _refuse(what, "a stream", key_selector=selector, grace=grace)
            if not isinstance(windows, JoinWindows):
                raise TopologyError(
                    f"{what}: two streams are joined within a window of time; add "
                    f"JoinWindows.of_time_difference_with_no_grace('10 seconds') (given: {windows!r})."
                )
            return join_in_window(self, other, joiner, windows, outer, name, details["store_name"])
        if all(outer):
            raise TopologyError(f"{what}: only two streams, or two tables, can be outer-joined; use left_join.")
        if isinstance(other, KTable):
            _refuse(what, "a table", windows=windows, key_selector=selector, store_name=details["store_name"])
            return _join_table(self, other, joiner, outer[0], name, grace)
        if isinstance(other, GlobalKTable):
            _refuse(what, "a global table", windows=windows, grace=grace, store_name=details["store_name"])
            return _join_global(self, other, joiner, outer[0], name, selector)
        raise TopologyError(
            f"{what}: a stream can be joined with a stream, a table or a global table, not with a "
            f"{type(other).__name__}."
        )


def _join_table(
    stream: StreamJoins,
    table: AbstractStream,
    joiner: ColumnFunction,
    left: bool,
    name: str | None,
    grace: Duration | None,
) -> "KStream":
    """Look each record up in the table's rows."""
    from streamskit.dsl.kstream import KStream

    builder, operator = stream._builder, "left_join" if left else "join"
    stream._check_same_key(table, operator, name or stream._name)
    this = stream._for_join(name)
    node_name = builder._name_for("KSTREAM-LEFTJOIN" if left else "KSTREAM-JOIN", name)
    value = stream._joined(joiner, this._node.value, table._node.value, operator, node_name, this._node.key)
    stores = builder._rows_of(table._node)
    buffer, wait = None, None
    if grace is not None:
        wait = to_milliseconds(grace, "grace")
        _check_versions([builder._store(store) for store in stores], wait, stream._what(operator, node_name))
        buffer = Store(f"{node_name}-Buffer", "buffer", this._node.key, this._node.value, None, wait, queryable=False)
    node = this._after(
        StreamTableJoin,
        node_name,
        value=value,
        table=table._name,
        table_stores=stores,
        left=left,
        joiner=joiner,
        grace=wait,
        store=buffer,
    )
    return KStream(builder, node)


def _join_global(
    stream: StreamJoins,
    table: AbstractStream,
    joiner: ColumnFunction,
    left: bool,
    name: str | None,
    selector: ColumnFunction | None,
) -> "KStream":
    """Look each record up in the global table by a key of its own choice; the record keeps the key it has."""
    from streamskit.dsl.kstream import KStream

    operator = "left_join" if left else "join"
    # Kafka Streams calls the inner join of a global table a left join, too.
    name = stream._builder._name_for("KSTREAM-LEFTJOIN", name)
    what = stream._what(operator, name)
    if selector is None:
        raise TopologyError(
            f"{what}: say which key to look up in the global table: key_selector=lambda k, v: v.country."
        )
    made = Serdes.for_type(type_inference.infer_type(selector, stream._inputs(), f"{what}, key_selector"))
    if not type_inference.same_type(made, table._node.key):
        raise TopologyError(
            f"{what}: key_selector makes a {type_text(made.data_type)}, and the keys of the global table "
            f"are {type_text(table._node.key.data_type)}."
        )
    value = stream._joined(joiner, stream._node.value, table._node.value, operator, name)
    node = stream._after(
        StreamTableJoin, name, value=value, table=table._name, left=left, joiner=joiner, key_selector=selector
    )
    return KStream(stream._builder, node, stream._rekeyed)


def _check_versions(stores: list[Store], grace: int, what: str) -> None:
    if any(store.kind != "versioned" for store in stores):
        raise TopologyError(
            f"{what}: with grace= a record is joined with the row as it was at its time, so the table has to keep "
            "versions: builder.table(..., materialized=Materialized.versioned('rows', '1 hour'))."
        )
    for store in stores:
        if grace > (store.retention or 0):
            raise TopologyError(
                f"{what}: a grace of {grace} ms is longer than the table keeps old versions ({store.retention} ms); "
                "give it a longer history retention."
            )


def _refuse(what: str, other: str, **given: Any) -> None:
    for argument, value in given.items():
        if value is not None:
            raise TopologyError(f"{what}: a join with {other} has no {argument}=; leave it out.")
