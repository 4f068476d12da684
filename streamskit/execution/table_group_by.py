"""`KTable.group_by`: what an update of a row means for the group that it leaves and for the one that it comes into."""

from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit.execution.records import Datum, RecordColumns
from streamskit.execution.stateless import key_and_value
from streamskit.operators import OUT_OF_ORDER
from streamskit.topology import Node, TableGroupBy


def selected(node: TableGroupBy, record: RecordColumns, parent: Node) -> list[RecordColumns]:
    """Return the records that a group_by makes of an update, of which each is dropped where there is nothing to say.

    The first takes the old value out of its group; if the row stays in its group, it brings the new one at once. The
    second brings the new value into another group. An update that came out of order says nothing.
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
