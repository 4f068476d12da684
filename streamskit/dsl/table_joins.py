"""Joins of a table with another: by the same key, or by a key in its rows."""

from typing import TYPE_CHECKING

from streamskit.columns import type_inference
from streamskit.columns.user_functions import type_text
from streamskit.common.errors import TopologyError
from streamskit.dsl.abstract_stream import AbstractStream, ColumnFunction
from streamskit.dsl.foreign_key_join import add_foreign_key_join
from streamskit.dsl.materialized import Materialized
from streamskit.dsl.materializing import key_value_store
from streamskit.dsl.windowed_join import OPERATORS
from streamskit.serdes import Serdes
from streamskit.topology import ForeignKeyJoin, TableJoinSide, TableMerge

if TYPE_CHECKING:
    from streamskit.dsl.ktable import KTable


class TableJoins(AbstractStream):
    """The joins of a `KTable`."""

    def join(
        self,
        other: AbstractStream,
        joiner: ColumnFunction,
        *,
        foreign_key: ColumnFunction | None = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> "KTable":
        """Join the rows of two tables; a row without a match gives none.

        Args:
            other: the other table.
            joiner: a Column function of the two values, or of key and the two values.
            foreign_key: makes the key of the other table's row that a row belongs to, of the value, or of key and
                value; by default the two tables are joined by the same key.
            materialized: the name of the store that keeps the result's rows, to query it.
            name: a name of your own, that the names of this step's nodes begin with.

        Raises:
            TopologyError: the other is no table, or its keys have another type.

        >>> orders.join(customers, lambda o, c: F.struct(o.total, c.name), foreign_key=lambda v: v.customer_id)

        Mirrors `KTable#join`.
        """
        return self._join(other, joiner, (False, False), foreign_key, materialized, name)

    def left_join(
        self,
        other: AbstractStream,
        joiner: ColumnFunction,
        *,
        foreign_key: ColumnFunction | None = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> "KTable":
        """Join the rows of two tables; a left row without a match is joined with null.

        Args are those of `join`. Mirrors `KTable#leftJoin`.
        """
        return self._join(other, joiner, (True, False), foreign_key, materialized, name)

    def outer_join(
        self,
        other: AbstractStream,
        joiner: ColumnFunction,
        *,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> "KTable":
        """Join the rows of two tables by the same key; a row of either without a match is joined with null.

        Args are those of `join`. Mirrors `KTable#outerJoin`.
        """
        return self._join(other, joiner, (True, True), None, materialized, name)

    def _join(
        self,
        other: AbstractStream,
        joiner: ColumnFunction,
        outer: tuple[bool, bool],
        foreign_key: ColumnFunction | None,
        materialized: str | Materialized | None,
        name: str | None,
    ) -> "KTable":
        from streamskit.dsl.ktable import GlobalKTable, KTable

        what = self._what(OPERATORS[outer], name or self._name)
        if not isinstance(other, KTable):
            hint = "a table" if not isinstance(other, GlobalKTable) else "a table (only streams join global tables)"
            raise TopologyError(
                f"{what}: a table can be joined with {hint}, not with a {type(other).__name__}. For a stream write "
                "stream.join(table, joiner); or make a table of it with to_table()."
            )
        if foreign_key is not None:
            return self._join_by_foreign_key(other, joiner, outer[0], foreign_key, materialized, name)
        return self._join_by_key(other, joiner, outer, materialized, name)

    def _join_by_key(
        self,
        other: "KTable",
        joiner: ColumnFunction,
        outer: tuple[bool, bool],
        materialized: str | Materialized | None,
        name: str | None,
    ) -> "KTable":
        """Have each side look up the row of the other; what both make is one table."""
        from streamskit.dsl.ktable import KTable

        builder, operator = self._builder, OPERATORS[outer]
        wanted = Materialized.of(materialized)
        if materialized is not None:
            store_name = wanted.name or builder._store_name("KTABLE-MERGE-")
        merge_name = builder._name_for("KTABLE-MERGE", name)
        this_name = builder._name_for("KTABLE-JOINTHIS", name and f"{name}-join-this")
        other_name = builder._name_for("KTABLE-JOINOTHER", name and f"{name}-join-other")
        self._check_same_key(other, operator, merge_name)
        key = self._node.key
        made = self._joined(joiner, self._node.value, other._node.value, operator, merge_name)
        value = type_inference.check_serde(wanted.value, made, "value", self._what(operator, merge_name))
        this_rows, other_rows = builder._rows_of(self._node), builder._rows_of(other._node)
        common = {"group": merge_name, "outer": outer, "joiner": joiner}
        builder._add(TableJoinSide, this_name, (self._name,), key, value, side=0, other_stores=other_rows, **common)
        builder._add(TableJoinSide, other_name, (other._name,), key, value, side=1, other_stores=this_rows, **common)
        store = key_value_store(wanted, store_name, key, value) if materialized is not None else None
        return KTable(builder, builder._add(TableMerge, merge_name, (this_name, other_name), key, value, store=store))

    def _join_by_foreign_key(
        self,
        other: "KTable",
        joiner: ColumnFunction,
        left: bool,
        foreign_key: ColumnFunction,
        materialized: str | Materialized | None,
        name: str | None,
    ) -> "KTable":
        from streamskit.dsl.ktable import KTable

        operator = "left_join" if left else "join"
        what = self._what(operator, name or self._name)
        made = Serdes.for_type(type_inference.infer_type(foreign_key, self._inputs(), f"{what}, foreign_key"))
        one, two = self._node, other._node
        if not type_inference.same_type(made, two.key):
            raise TopologyError(
                f"{what}: foreign_key makes a {type_text(made.data_type)}, and the keys of {other._name} "
                f"are {type_text(two.key.data_type)}."
            )
        value = self._joined(joiner, one.value, two.value, operator, name or self._name)
        wanted = Materialized.of(materialized)
        value = type_inference.check_serde(wanted.value, value, "value", what)
        join = ForeignKeyJoin("", left, foreign_key, joiner, one.key, one.value, two.key, two.value)
        return KTable(self._builder, add_foreign_key_join(self._builder, one, two, join, wanted, value, name))
