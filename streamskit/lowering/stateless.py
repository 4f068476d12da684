"""Operators without state: each is a function from a record's Columns to a record's Columns."""

from dataclasses import replace
from functools import singledispatch

from streamskit.errors import TopologyError
from streamskit.lowering.records import Record
from streamskit.topology import Filter, MapValues, Node, ToStream


@singledispatch
def transform(node: Node, record: Record, parent: Node) -> Record:
    """Return what `node` makes of one record of its parent.

    Raises:
        TopologyError: streamskit has no way to run this kind of node on Spark.
    """
    raise TopologyError(f"{node.name} ({node.written_at}): a {type(node).__name__} cannot run on Spark.")


@transform.register
def _(node: Filter, record: Record, parent: Node) -> Record:
    return record.where(record.call(node, node.predicate, parent.key, parent.value))


@transform.register
def _(node: MapValues, record: Record, parent: Node) -> Record:
    return replace(record, value=record.call(node, node.mapper, parent.key, parent.value))


@transform.register
def _(node: ToStream, record: Record, parent: Node) -> Record:
    return record
