"""What one record becomes on its way through a query: outcomes, and the rows that stand for them.

Following a record from step to step gives a list of outcomes; only then are they written as Columns, so that the steps
need not know what rows look like, nor the rows which steps there are.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import groupby
from operator import add, itemgetter

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamskit.execution.dropped_records import tell_dropped
from streamskit.execution.record_columns import RecordColumns
from streamskit.execution.row_format import (
    FIELDS,
    FINISHED,
    FINISHED_FIELDS,
    TO_OWN_PARTITION,
    TO_PARTITIONER,
    port_of,
    row_struct,
)
from streamskit.planning.plan import Plan
from streamskit.topology.nodes import Node, OperatorInput


@dataclass(frozen=True)
class Write:
    """The record is written to a topic, as these bytes.

    It goes to `partition`, that of its task, if given; else to where the partitioner of the sink named `sink` sends it;
    and without either to the partition of its key.
    """

    record: RecordColumns
    topic: str | Column
    key: Column
    value: Column
    partition: Column | None = None
    sink: str = ""


@dataclass(frozen=True)
class Send:
    """The record goes to a side of a stateful operator; `parent` says its types, unless the operator has its own key.

    `extra` is bytes that travel with it: a lookup key, or what the last operator noted about it.
    """

    record: RecordColumns
    to: OperatorInput
    parent: Node
    extra: Column | None = None


@dataclass(frozen=True)
class Flatten:
    """Each element of an array becomes a record of its own, with `outcomes` of its own."""

    record: RecordColumns
    elements: Column
    outcomes: Callable[[Column], "list[Outcome]"]


@dataclass(frozen=True)
class Drop:
    """The step drops the record where a condition holds, and it is to be counted."""

    node: Node
    is_dropped: Column


Outcome = Write | Send | Flatten | Drop


@dataclass
class Rows:
    """The rows that one record becomes, in their order.

    Each of `parts` is a Column with one row (null if it is dropped), or, if it says so, with an array of them.
    """

    parts: list[tuple[Column, bool]] = field(default_factory=list)

    @classmethod
    def of(cls, *rows: Column) -> "Rows":
        """Return rows that are each a Column."""
        return cls([(row, False) for row in rows])

    @classmethod
    def of_array(cls, rows: Column) -> "Rows":
        """Return rows that are the elements of an array."""
        return cls([(rows, True)])

    def __bool__(self) -> bool:
        return bool(self.parts)

    def __iadd__(self, other: "Rows") -> "Rows":
        self.parts += other.parts
        return self

    @property
    def is_alone(self) -> bool:
        """Whether there is at most one row, so that nothing has to be exploded."""
        return len(self.parts) == 1 and not self.parts[0][1]

    @property
    def alone(self) -> Column:
        """The only row."""
        return self.parts[0][0]

    def as_array(self) -> Column:
        """Return all of them as one array."""
        arrays: list[Column] = []
        for is_array, parts in groupby(self.parts, key=itemgetter(1)):
            columns = [column for column, _ in parts]
            arrays += columns if is_array else [F.array(*columns)]
        return F.concat(*arrays) if len(arrays) > 1 else arrays[0]


def rows_of(outcomes: Iterable[Outcome], plan: Plan) -> Rows:
    """Return the rows that stand for outcomes, in their order; a dropped record has none."""
    rows = Rows()
    for outcome in outcomes:
        if isinstance(outcome, Write):
            rows += Rows.of(_written(outcome, plan))
        elif isinstance(outcome, Send):
            rows += Rows.of(_sent(outcome, plan))
        elif isinstance(outcome, Flatten):
            rows += _flattened(outcome, plan)
    return rows


def of_rows(outcome: Outcome, condition: Column) -> Outcome:
    """Return an outcome so that, if it is counted, only the rows of a frame that meet a condition count."""
    if isinstance(outcome, Drop):
        return replace(outcome, is_dropped=condition & outcome.is_dropped)
    return replace(outcome, record=outcome.record.where(condition)) if isinstance(outcome, Flatten) else outcome


def either(alternatives: Sequence[Rows]) -> Rows:
    """Return the rows of records that are each of exactly one kind, such as those of different topics."""
    there = [rows for rows in alternatives if rows]
    if there and all(rows.is_alone for rows in there):
        return Rows.of(F.coalesce(*(rows.alone for rows in there)))
    every = Rows()
    for rows in there:
        every += rows
    return every


def count_dropped(frame: DataFrame, outcomes: Iterable[Outcome], plan: Plan) -> DataFrame:
    """Return a frame that reports, under the nodes' names, how many of its records are dropped.

    Args:
        frame: with the columns that the outcomes were made of; they stay as they are.
        outcomes: of the records of the frame.
        plan: what runs.
    """
    dropped = _dropped(outcomes)
    return tell_dropped(frame, ", ".join(dropped), dropped, plan.options) if dropped else frame


def _dropped(outcomes: Iterable[Outcome]) -> dict[str, Column]:
    """Return by node name how many times the node drops one record, which may reach it in several ways."""
    found: dict[str, list[Column]] = {}
    for each in outcomes:
        if isinstance(each, Drop):
            found.setdefault(each.node.name, []).append(F.when(each.is_dropped, 1).otherwise(0))
        elif isinstance(each, Flatten):
            for name, times in _dropped_elements(each).items():
                found.setdefault(name, []).append(times)
    return {name: reduce(add, ways) for name, ways in found.items()}


def _dropped_elements(outcome: Flatten) -> dict[str, Column]:
    names: list[str] = []

    def times_of_one(element: Column) -> Column:
        times = _dropped(outcome.outcomes(element))
        names[:] = times
        return F.struct(*(each.alias(name) for name, each in times.items())) if times else F.lit(0)

    elements = F.transform(outcome.elements, times_of_one)
    return {name: F.coalesce(_unless_dropped(outcome.record, _total(elements, name)), F.lit(0)) for name in names}


def _total(elements: Column, name: str) -> Column:
    return F.aggregate(elements, F.lit(0), lambda total, each: total + each[name])


def _written(outcome: Write, plan: Plan) -> Column:
    """Return the row of a record to write; where there are stateful operators, it passes through them as it is."""
    record = outcome.record
    topic = F.lit(outcome.topic) if isinstance(outcome.topic, str) else outcome.topic
    row = _finished(
        plan,
        outcome.partition,
        outcome.sink,
        topic=topic,
        key=outcome.key,
        value=outcome.value,
        timestamp=record.timestamp,
        headers=record.headers,
    )
    return _unless_dropped(record, row)


def _finished(plan: Plan, partition: Column | None = None, sink: str = "", **fields: Column) -> Column:
    """Return a row that is ready to be written; fields that are not given are null."""
    if plan.operators:
        there = None if partition is None else F.lit(TO_OWN_PARTITION)
        other = F.lit(TO_PARTITIONER + sink.encode()) if sink else there
        return row_struct(FINISHED, other=other, **fields)
    row = {name: fields.get(name, F.lit(None)).cast(FIELDS[name]) for name in FINISHED_FIELDS}
    if plan.keeps_partitions:
        row |= {"partition": (F.lit(None) if partition is None else partition).cast("int")}
    if plan.partitioned_sinks:
        row |= {"sink": F.lit(sink or None).cast("string")}
    return F.struct(*(column.alias(name) for name, column in row.items()))


def _sent(outcome: Send, plan: Plan) -> Column:
    record, parent = outcome.record, outcome.parent
    number = next(n for n, planned in enumerate(plan.operators) if planned.operator.name == outcome.to.operator)
    key = plan.operators[number].key or parent.key
    row = row_struct(
        port_of(number, outcome.to.side),
        key=record.key_bytes(key),
        value=record.value_bytes(parent.value),
        old=record.old_bytes(parent.value),
        other=record.note if outcome.extra is None else outcome.extra,
        timestamp=record.timestamp,
        headers=record.headers,
    )
    return _unless_dropped(record, row)


def _flattened(outcome: Flatten, plan: Plan) -> Rows:
    inner = Rows()

    def rows_of_one(element: Column) -> Column:
        inner.parts = rows_of(outcome.outcomes(element), plan).parts
        return inner.as_array() if inner else F.array()

    rows = F.transform(outcome.elements, rows_of_one)
    # What follows may run in another query; then there is nothing to write.
    return Rows.of_array(F.coalesce(_unless_dropped(outcome.record, F.flatten(rows)), F.array())) if inner else Rows()


def _unless_dropped(record: RecordColumns, row: Column) -> Column:
    return row if record.condition is None else F.when(record.condition, row)
