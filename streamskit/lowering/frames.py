"""From a plan to one streaming DataFrame whose rows are Kafka records to write."""

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamskit.errors import TopologyError
from streamskit.lowering.aggregation import SKIPPED, aggregate
from streamskit.lowering.changes import keeps_latest
from streamskit.lowering.operators import other_input, place, result
from streamskit.lowering.plan import Plan, has_changelog
from streamskit.lowering.records import Datum, Record, change_to_bytes, changelog_key, finished_row, to_sink
from streamskit.lowering.rows import Rows, either
from streamskit.lowering.selecting import selected
from streamskit.lowering.sources import CLOCK_TOPIC, Arrival, decode
from streamskit.lowering.stages import run_stages, with_order
from streamskit.lowering.stateless import flat_map, one_of_many, transform
from streamskit.lowering.wire import CLOCK, FINISHED, port_of, wire_row
from streamskit.tasks import STORE_ONLY
from streamskit.topology import (
    ColumnAggregate,
    Count,
    FlatMap,
    FlatMapValues,
    Node,
    SideEffect,
    Sink,
    Source,
    StreamTableJoin,
    TableSelect,
    TableSource,
)

Read = Callable[[list[str]], DataFrame]
"""How a plan gets its input: a function from topics to their raw records, as Spark's Kafka source gives them."""


def outputs(plan: Plan, read: Read, tasks: int) -> DataFrame:
    """Return the streaming DataFrame of a plan: one row (topic, key, value, headers) for each record to write.

    Args:
        plan: what to run.
        read: gives the raw records of topics.
        tasks: how many tasks the query has.

    Raises:
        TopologyError: Spark cannot run this shape of program.
    """
    frame, arrivals = decode(plan, read(plan.topics))
    writer = Writer(plan)
    if plan.slots:
        return _with_stages(writer, frame, arrivals, tasks)
    rows = Rows()
    for arrival in arrivals:
        node, record = arrival.entry.node, arrival.record
        for step in writer.linear_path(node) if len(arrivals) == 1 else ():
            # A flat map on the way is a cheap explode; one among branches is an array within the row.
            frame, record = writer.advance(frame, step, record, node)
            node = step
        rows += writer.following(node, record)
    return to_sink(_exploded(writer.counting_dropped(frame), rows).select("row.*"))


def _with_stages(writer: "Writer", frame: DataFrame, arrivals: list[Arrival], tasks: int) -> DataFrame:
    """Return the frame of a plan with task operators: rows go through them level by level, and out when finished."""
    plan = writer.plan
    each = [writer.arriving(arrival) for arrival in arrivals]
    if plan.options.test:
        clock = wire_row(CLOCK, timestamp=frame["timestamp"])
        each.append(Rows([F.when(frame["topic"] == CLOCK_TOPIC, clock)]))

    def results(number: int, row: DataFrame) -> Rows:
        node = plan.slots[number].node
        return writer.following(node, result(node, plan, row))

    frame = with_order(plan, writer.counting_dropped(frame), either(each), tasks)
    done = run_stages(plan, frame, results, writer.counting_dropped)
    return to_sink(done.select("topic", "key", "value", "timestamp", "headers"))


def _exploded(frame: DataFrame, rows: Rows) -> DataFrame:
    # All outputs of a record leave in one pass over it, whatever their number.
    row = rows.single[0] if rows.is_alone else F.explode(rows.as_array())
    return frame.select(row.alias("row")).where("row is not null")


class Writer:
    """Follows a record from node to node, as Columns, and notes the rows that it becomes."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._within_array = False
        self._dropped: dict[str, Column] = {}
        self._numbers = {slot.operator.name: number for number, slot in enumerate(plan.slots)}

    def linear_path(self, node: Node) -> list[Node]:
        """Return the steps to apply to the whole frame: down to the native aggregation, or to the last flat map.

        A flat map counts only as long as each node before it feeds one other and writes nothing.
        """
        if self.plan.native is not None:
            return self._way_to(self.plan.native, node)
        path: list[Node] = []
        while len(children := self.plan.following(node)) == 1 and not _writes(node):
            node = children[0]
            if isinstance(node, Sink | SideEffect | TableSelect):
                break
            path.append(node)
        flat = [number for number, step in enumerate(path) if isinstance(step, FlatMap | FlatMapValues)]
        return path[: flat[-1] + 1] if flat else []

    def _way_to(self, node: Node, start: Node) -> list[Node]:
        way = [node]
        while way[0].parents[0] != start.name:
            way.insert(0, self.plan.topology[way[0].parents[0]])
        return way

    def advance(self, frame: DataFrame, node: Node, record: Record, parent: Node) -> tuple[DataFrame, Record]:
        """Apply one step to the whole frame, as far as it needs that, and return the record after it."""
        if node is self.plan.native and isinstance(node, Count | ColumnAggregate):
            made = aggregate(node, _as_frame(frame, record), parent)
            key, value = Datum(made["key"]), Datum(made["value"])
            return made, Record(key, value, made["timestamp"], made["headers"])
        if not isinstance(node, FlatMap | FlatMapValues):
            return frame, transform(node, record, parent)
        kept = frame if record.kept is None else frame.where(record.kept)
        made = kept.select(
            F.explode(flat_map(node, record, parent)).alias("each"),
            record.timestamp.alias("timestamp"),
            record.headers.alias("headers"),
        )
        flat = replace(record, timestamp=made["timestamp"], headers=made["headers"])
        return made, one_of_many(flat, made["each"])

    def arriving(self, arrival: Arrival) -> Rows:
        """Return the rows of a record that comes from a topic."""
        node, record = arrival.entry.node, arrival.record
        if isinstance(node, Source) and place(node, self.plan) is not None:
            return self._sent(node, record, node, 0, arrival.partition)
        if arrival.entry.is_handover and place(node, self.plan) is not None:
            return self._sent(node, record, node, 0)
        return self.following(node, record, arrived=True)

    def following(self, node: Node, record: Record, arrived: bool = False) -> Rows:
        """Return the rows that a record passed on by `node` becomes.

        Args:
            node: a node of the plan.
            record: what it passes on.
            arrived: whether the record was written by an earlier query, which has done the node's own part.
        """
        rows = Rows()
        if not arrived:
            for store in node.stores:
                if has_changelog(node, store):
                    key, value = changelog_key(record, store, node.key), record.value.to_bytes(store.value)
                    rows.single.append(self._finished(record, self.plan.changelog(store), key, value))
            if record.note is not None and getattr(node, "on_close", False):
                record = record.where(~record.note.eqNullSafe(F.lit(STORE_ONLY)))
            if node.name in self.plan.handovers:
                rows.single.append(self._written(record, self.plan.handovers[node.name], node))
        if isinstance(node, TableSelect):
            for row in selected(node, record, self.plan.topology[node.parents[0]]):
                rows.single += [self._changed(child, row) for child in self.plan.following(node)]
            return rows
        for child in self.plan.following(node):
            rows += self._step(child, record, node)
        return rows

    def _step(self, node: Node, record: Record, parent: Node) -> Rows:
        """Return the rows that `node` makes of a record of its parent."""
        if isinstance(node, Sink):
            topic = self.plan.topic(node) if isinstance(node.topic, str) else record.call(node, node.topic, parent)
            return Rows([self._written(record, topic, node)])
        if isinstance(node, StreamTableJoin) and node.table == parent.name:
            return self._sent(node, record, parent, 1)
        if isinstance(node, FlatMap | FlatMapValues):
            return self._flat(node, record, parent)
        where = place(node, self.plan)
        if where is not None and not keeps_latest(node, self.plan.topology):
            return self._sent(node, record, parent, where.side, other_input(node, record, parent, self.plan))
        if isinstance(node, TableSelect):
            return self.following(node, record)
        if isinstance(node, TableSource):
            self._note_dropped(node, record)
        record = transform(node, record, parent)
        if where is not None:
            return self._sent(node, record, node, where.side)
        rows = self.following(node, record)
        if isinstance(node, SideEffect):
            rows.single.insert(0, self._written(record, self.plan.calls_topic(node), node))
        return rows

    def _note_dropped(self, node: Node, record: Record) -> None:
        """Remember to count the records without a key, of which a table makes no row."""
        if not self._within_array:
            lost = record.key.typed.isNull()
            self._dropped[node.name] = lost if record.kept is None else record.kept & lost

    def counting_dropped(self, frame: DataFrame) -> DataFrame:
        """Return the frame, set to report how many records the nodes followed since the last time will drop."""
        counts = [F.count_if(lost).alias(name) for name, lost in self._dropped.items()]
        name = f"{SKIPPED} {', '.join(self._dropped)}"
        self._dropped = {}
        return frame.observe(name, *counts) if counts else frame

    def _flat(self, node: FlatMap | FlatMapValues, record: Record, parent: Node) -> Rows:
        before, self._within_array = self._within_array, True
        inner = Rows()

        def rows_of(element: Column) -> Column:
            made_of_one = self.following(node, one_of_many(record, element))
            inner.single, inner.many = made_of_one.single, made_of_one.many
            return inner.as_array() if inner else F.array()

        made = F.transform(flat_map(node, record, parent), rows_of)
        self._within_array = before
        if not inner:  # what follows runs in another query
            return inner
        flat = F.flatten(made)
        return Rows(many=[F.coalesce(flat if record.kept is None else F.when(record.kept, flat), F.array())])

    # ---- rows --------------------------------------------------------------------------------------------------------

    def _sent(self, node: Node, record: Record, giver: Node, side: int, other: Column | None = None) -> Rows:
        """Return the row that takes a record to a side of a task operator; `giver` says its types."""
        where = place(node, self.plan)
        name = where.operator if where is not None else node.name
        row = wire_row(
            port_of(self._numbers[name], side),
            key=record.key.to_bytes(giver.key),
            value=record.value.to_bytes(giver.value),
            old=record.old.to_bytes(giver.value) if record.old is not None else None,
            other=record.note if other is None else other,
            timestamp=record.timestamp,
            headers=record.headers,
        )
        return Rows([row if record.kept is None else F.when(record.kept, row)])

    def _changed(self, sink: Node, record: Record) -> Column:
        if not isinstance(sink, Sink) or record.old is None:
            raise TopologyError(f"{sink.name} ({sink.written_at}): a grouped table goes to a repartition topic only.")
        value = change_to_bytes(record.value.to_bytes(sink.value), record.old.to_bytes(sink.value))
        return self._finished(record, self.plan.topic(sink), record.key.to_bytes(sink.key), value)

    def _written(self, record: Record, topic: str | Column, node: Node) -> Column:
        return self._finished(record, topic, record.key.to_bytes(node.key), record.value.to_bytes(node.value))

    def _finished(self, record: Record, topic: str | Column, key: Column, value: Column) -> Column:
        """Return the row of a record to write; where there are stages, it passes through them as it is."""
        if not self.plan.slots:
            return finished_row(record, topic, key, value)
        row = wire_row(
            FINISHED,
            topic=F.lit(topic) if isinstance(topic, str) else topic,
            key=key,
            value=value,
            timestamp=record.timestamp,
            headers=record.headers,
        )
        return row if record.kept is None else F.when(record.kept, row)


def _as_frame(frame: DataFrame, record: Record) -> DataFrame:
    kept = frame if record.kept is None else frame.where(record.kept)
    return kept.select(
        record.key.typed.alias("key"), record.value.typed.alias("value"), record.timestamp.alias("timestamp")
    )


def _writes(node: Node) -> bool:
    return any(has_changelog(node, store) for store in node.stores)
