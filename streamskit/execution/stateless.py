"""Operators without state: each is a function from a record's Columns to a record's Columns."""

from dataclasses import replace
from functools import singledispatch, wraps

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit.columns import user_functions
from streamskit.common.errors import TopologyError
from streamskit.execution.record_columns import Datum, RecordColumns
from streamskit.operators import OUT_OF_ORDER
from streamskit.topology.nodes import (
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    ForeignKeyStep,
    GlobalProcess,
    GlobalTableSource,
    Map,
    MapValues,
    Merge,
    Node,
    PassThrough,
    RepartitionFilter,
    SelectKey,
    SideEffect,
    TableFilter,
    TableGroupBy,
    TableMapValues,
    TableMerge,
    TableSource,
    ToStream,
)

NO_PAIR = "its array has a null where a struct of key and value belongs. Leave it out: F.array_compact(...)."
"""What is wrong with an element of a flat map's array."""


@singledispatch
def transform(node: Node, record: RecordColumns, parent: Node) -> RecordColumns:
    """Return what `node` makes of one record of its parent.

    Raises:
        TopologyError: streamskit has no way to run this kind of node on Spark.
    """
    raise _cannot_run(node)


@transform.register
def _(node: Filter, record: RecordColumns, parent: Node) -> RecordColumns:
    return record.where(_holds(record.call(node, node.predicate, parent), node.negated))


@transform.register
def _(node: RepartitionFilter, record: RecordColumns, parent: Node) -> RecordColumns:
    return record if node.null_keys else record.where(record.key.typed.isNotNull())


@transform.register
def _(node: Branch, record: RecordColumns, parent: Node) -> RecordColumns:
    asked = len(node.predicates) if node.index < 0 else node.index + 1
    return record.where(branch_number(node, record, parent, asked) == node.index)


@transform.register
def _(node: MapValues, record: RecordColumns, parent: Node) -> RecordColumns:
    return replace(record, value=Datum(record.call(node, node.mapper, parent)))


@transform.register
def _(node: SelectKey, record: RecordColumns, parent: Node) -> RecordColumns:
    return replace(record, key=Datum(record.call(node, node.mapper, parent)))


@transform.register
def _(node: Map, record: RecordColumns, parent: Node) -> RecordColumns:
    key, value = key_and_value(node, record, parent)
    return replace(record, key=Datum(key), value=Datum(value))


@transform.register(ForeignKeyStep)
@transform.register(GlobalProcess)
@transform.register(Merge)
@transform.register(PassThrough)
@transform.register(SideEffect)
@transform.register(TableMerge)
def _(node: Node, record: RecordColumns, parent: Node) -> RecordColumns:
    return record


@transform.register(GlobalTableSource)
@transform.register(TableSource)
def _(node: Node, record: RecordColumns, parent: Node) -> RecordColumns:
    return record.where(record.key.typed.isNotNull())


@transform.register
def _(node: ToStream, record: RecordColumns, parent: Node) -> RecordColumns:
    return replace(record, old=None)


@transform.register
def _(node: TableFilter, record: RecordColumns, parent: Node) -> RecordColumns:
    def passing(value: Datum) -> Datum:
        holds = _holds(record.call(node, node.predicate, parent, value.typed), node.negated)
        raw = None if value.raw is None else F.when(holds, value.raw)
        return Datum(F.when(value.typed.isNotNull() & holds, value.typed), raw, value.serde)

    new = passing(record.value)
    if record.old is None:
        return replace(record, value=new)
    old = passing(record.old)
    made = replace(record, value=new, old=old)
    # A row that neither passed before nor passes now is not an update.
    return made.where(new.typed.isNotNull() | old.typed.isNotNull()) if node.skips_absent_rows else made


@transform.register
def _(node: TableMapValues, record: RecordColumns, parent: Node) -> RecordColumns:
    def mapped(value: Datum) -> Datum:
        return Datum(record.call(node, node.mapper, parent, value.typed))

    return replace(record, value=mapped(record.value), old=mapped(record.old) if record.old else None)


def branch_number(node: Branch, record: RecordColumns, parent: Node, asked: int) -> Column:
    """Return the number of the branch that a record takes, or -1, as far as the first `asked` predicates say."""
    with record.asking_udfs():
        step = f"{node.name} at {node.call_site}"
        return user_functions.first_true(node.predicates[:asked], record.dressed(parent), step)


def elements_of(node: Node, record: RecordColumns, parent: Node) -> Column:
    """Return the array of structs `key` and `value` that a flat map makes of one record.

    Raises:
        TopologyError: the node does not make several records of one.
    """
    if isinstance(node, FlatMapValues):
        values = record.call(node, node.mapper, parent)
        return F.transform(values, lambda value: F.struct(record.key.typed.alias("key"), value.alias("value")))
    if not isinstance(node, FlatMap):
        raise _cannot_run(node)
    key, value = node.fields

    @wraps(node.mapper)
    def checked(*arguments: Column) -> Column:
        # Where the array's type has no nulls, Spark leaves the check out.
        return F.transform(node.mapper(*arguments), lambda pair: F.when(pair.isNull(), missing).otherwise(pair))

    missing = F.raise_error(F.lit(f"{node.name}: {NO_PAIR}"))
    pairs = record.call(node, checked, parent)
    return F.transform(pairs, lambda pair: F.struct(pair[key].alias("key"), pair[value].alias("value")))


def one_of_many(record: RecordColumns, element: Column) -> RecordColumns:
    """Return the record for one element of the array that `flat_map` made."""
    return replace(record, key=Datum(element["key"]), value=Datum(element["value"]), condition=None)


def key_and_value(
    node: Map | TableGroupBy, record: RecordColumns, parent: Node, value: Column | None = None
) -> tuple[Column, Column]:
    """Return the new key and value that a user's function makes of a record, or of its key and another value."""
    given = None if value is None else value.isNotNull()
    with record.asking_udfs(given):
        return user_functions.apply_pair(
            node.mapper, record.dressed(parent, value), f"{node.name} at {node.call_site}", given
        )


def _holds(answer: Column, negated: bool) -> Column:
    return ~F.coalesce(answer, F.lit(False)) if negated else F.coalesce(answer, F.lit(False))


# ---- a table that is grouped ----------------------------------------------------------------------------------------


def regrouped(node: TableGroupBy, record: RecordColumns, parent: Node) -> list[RecordColumns]:
    """Return the records that a group_by makes of an update; each is dropped where it would change nothing.

    The first removes the old value from its group and, if the row stays in that group, also adds the new one. The
    second adds the new value to another group. An update that came out of order changes nothing.
    """
    if record.note is not None:
        record = record.where(~record.note.eqNullSafe(F.lit(OUT_OF_ORDER)))
    nothing = F.lit(None).cast(parent.value.data_type)
    new_key, new_value, has_new = _selection(node, record, parent, record.value.typed)
    old_key, old_value, has_old = _selection(node, record, parent, record.old.typed if record.old else nothing)
    stays = has_new & has_old & (node.key.to_bytes(new_key) == node.key.to_bytes(old_key))
    leaving = replace(record, key=Datum(old_key), value=Datum(F.when(stays, new_value)), old=Datum(old_value))
    none = Datum(F.lit(None).cast(node.value.data_type))
    coming = replace(record, key=Datum(new_key), value=Datum(new_value), old=none)
    return [leaving.where(has_old), coming.where(has_new & ~F.coalesce(stays, F.lit(False)))]


def _selection(node: TableGroupBy, record: RecordColumns, parent: Node, value: Column) -> tuple[Column, Column, Column]:
    """Return the new key and value for a row's value, and whether there are any."""
    key, chosen = key_and_value(node, record, parent, value)
    return key, chosen, value.isNotNull() & key.isNotNull() & chosen.isNotNull()


def _cannot_run(node: Node) -> TopologyError:
    return TopologyError(f"{node.name} ({node.call_site}): a {type(node).__name__} cannot run on Spark.")
