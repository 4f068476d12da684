"""From a plan to one streaming DataFrame whose rows are Kafka records to write."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamskit.api.error_handlers import LogAndContinue, fails
from streamskit.columns import user_functions
from streamskit.common.errors import TopologyError
from streamskit.execution.dead_letters import RecordOrigin, counted, diverted
from streamskit.execution.native_aggregation import SKIPPED, aggregate
from streamskit.execution.operator_results import other_input, result
from streamskit.execution.optimization_barrier import materialize_records_once
from streamskit.execution.records import (
    Datum,
    RecordColumns,
    change_to_bytes,
    changelog_key,
    finished_row,
    sure,
    to_sink,
)
from streamskit.execution.row_format import BEGIN, CLOCK, FINISHED, RESULTS, TO_OWN_PARTITION, port_of, row_struct
from streamskit.execution.rows import Rows, either
from streamskit.execution.sinks import NO_TOPIC, learn_to_ask_for_topics, writable
from streamskit.execution.sources import DecodedInput, decode
from streamskit.execution.stages import run_stages, task_numbers, with_order
from streamskit.execution.stateless import flat_map, one_of_many, transform
from streamskit.execution.table_group_by import selected
from streamskit.execution.wall_clock import with_clock
from streamskit.operators import STORE_ONLY
from streamskit.planning.old_values import stores_latest
from streamskit.planning.plan import CLOCK_TOPIC, Plan, has_changelog
from streamskit.planning.planned_operators import operator_input
from streamskit.planning.processor_groups import input_sides, outputs
from streamskit.serdes import Serde
from streamskit.topology import (
    Branch,
    ColumnAggregate,
    Count,
    FlatMap,
    FlatMapValues,
    Node,
    Process,
    SideEffect,
    Sink,
    Source,
    StreamTableJoin,
    TableGroupBy,
    TableSource,
)

Made = TypeVar("Made")

Read = Callable[[list[str]], DataFrame]
"""How a plan gets its input: a function from topics to their raw records, as Spark's Kafka source gives them."""


def compile_plan(plan: Plan, read: Read, tasks: int) -> DataFrame:
    """Return the streaming DataFrame of a plan: one row (topic, key, value, headers) for each record to write.

    Args:
        plan: what to run.
        read: gives the raw records of topics.
        tasks: how many tasks the query has.

    Raises:
        TopologyError: Spark cannot run this shape of program.
    """
    raw = read(plan.topics)
    if not fails(plan.options.handlers.production):
        learn_to_ask_for_topics(raw.sparkSession)
    frame, arrivals = decode(
        plan, raw if plan.wall_clock_interval is None else with_clock(raw, plan.wall_clock_interval)
    )
    writer = PlanCompiler(plan)
    if plan.operators:
        return _with_stages(writer, frame, arrivals, tasks)
    rows, writer.origin = Rows(), RecordOrigin.of(frame)
    for arrival in arrivals:
        node, record = arrival.entry.node, arrival.record
        rows += writer.unread(arrival)
        for step in writer.linear_path(node) if len(arrivals) == 1 else ():
            # A flat map on the way is a cheap explode; one among branches is an array within the row.
            frame, record = writer.advance(frame, step, record, node)
            node = step
        if plan.native is not None:
            made = record.key.to_bytes(node.key), record.value.to_bytes(node.value)
            writer.origin = RecordOrigin.lost(record.timestamp, record.headers, *made)
        rows += writer.following(node, record)
    return to_sink(counted(plan, _exploded(writer.counting_dropped(frame), rows).select("row.*")))


def _with_stages(writer: "PlanCompiler", frame: DataFrame, arrivals: list[DecodedInput], tasks: int) -> DataFrame:
    """Return the frame of a plan with task operators: rows go through them level by level, and out when finished."""
    plan = writer.plan
    asks = plan.options.handlers.ask_for_sources
    writer.origin = RecordOrigin.of(frame)
    each = [writer.arriving(arrival) for arrival in arrivals]
    if plan.uses_wall_clock:
        clock = row_struct(CLOCK, timestamp=frame["timestamp"])
        each.append(Rows([F.when(frame["topic"] == CLOCK_TOPIC, clock)]))

    def results(frame: DataFrame, numbers: list[int]) -> tuple[DataFrame, dict[int, Rows]]:
        if asks:
            writer.origin = RecordOrigin.carried(frame)
        nodes = {number: plan.operators[number].node for number in numbers}
        made = {n: writer.result(node, frame) for n, node in nodes.items() if not isinstance(node, Process)}
        mine = {n: (record, frame["port"] == RESULTS + n) for n, (record, _) in made.items()}
        frame, records = materialize_records_once(frame, mine)
        rows = {n: _with(writer.following(nodes[n], record), made[n][1]) for n, record in records.items()}
        left = {n: writer.leaving(node, frame) for n, node in nodes.items() if isinstance(node, Process)}
        return frame, rows | left

    rows = either(each)
    keeps_time = any(slot.operator.keeps_time for slot in plan.operators)
    if asks:
        itself = {name: frame[name] for name in ("key", "value", "headers", "timestamp")}
        begin = F.when(~frame["topic"].isin(*plan.broadcast_topics), row_struct(BEGIN, **itself))
        rows = Rows([begin, *rows.single], rows.many)
    elif keeps_time:
        begin = F.when(~frame["topic"].isin(*plan.broadcast_topics), row_struct(BEGIN, timestamp=frame["timestamp"]))
        # A record of which nothing is left still moves the time of its task.
        rows = Rows([F.coalesce(rows.single[0], begin)]) if rows.is_alone else Rows([begin, *rows.single], rows.many)
    frame = with_order(plan, writer.counting_dropped(frame), rows, tasks)
    done = run_stages(plan, frame, results, writer.counting_dropped, tasks)
    if plan.uses_wall_clock or keeps_time or asks:
        done = done.where(done["port"] == FINISHED)
    own = F.array_position(F.array(*map(F.lit, task_numbers(done.sparkSession, tasks))), done["task"]) - 1
    partition = F.when(done["other"] == F.lit(TO_OWN_PARTITION), own).cast("int").alias("partition")
    return to_sink(counted(plan, done.select("topic", "key", "value", "timestamp", "headers", partition)))


def _exploded(frame: DataFrame, rows: Rows) -> DataFrame:
    # All outputs of a record leave in one pass over it, whatever their number.
    row = rows.single[0] if rows.is_alone else F.explode(rows.as_array())
    return frame.select(row.alias("row")).where("row is not null")


class PlanCompiler:
    """Follows a record from node to node, as Columns, and notes the rows that it becomes."""

    origin: RecordOrigin
    """Where the records come from that are followed now."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._handlers = plan.options.handlers
        self._within_array = False
        self._dropped: dict[str, Column] = {}
        self._numbers = {slot.operator.name: number for number, slot in enumerate(plan.operators)}

    def linear_path(self, node: Node) -> list[Node]:
        """Return the steps to apply to the whole frame: down to the native aggregation, or to the last flat map.

        A flat map counts only as long as each node before it feeds one other and writes nothing, and no record that
        fails leaves rows behind.
        """
        if self.plan.native is not None:
            return self._way_to(self.plan.native, node)
        if self._handlers.make_rows:
            return []
        path: list[Node] = []
        while len(children := self.plan.following(node)) == 1 and not _writes(node):
            node = children[0]
            if isinstance(node, Sink | SideEffect | TableGroupBy):
                break
            path.append(node)
        flat = [number for number, step in enumerate(path) if isinstance(step, FlatMap | FlatMapValues)]
        return path[: flat[-1] + 1] if flat else []

    def _way_to(self, node: Node, start: Node) -> list[Node]:
        way = [node]
        while way[0].parents[0] != start.name:
            way.insert(0, self.plan.topology[way[0].parents[0]])
        return way

    def advance(
        self, frame: DataFrame, node: Node, record: RecordColumns, parent: Node
    ) -> tuple[DataFrame, RecordColumns]:
        """Apply one step to the whole frame, as far as it needs that, and return the record after it."""
        if node is self.plan.native and isinstance(node, Count | ColumnAggregate):
            made = aggregate(node, _as_frame(frame, record), parent)
            key, value = Datum(made["key"]), Datum(made["value"])
            return made, RecordColumns(key, value, made["timestamp"], made["headers"])
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

    def arriving(self, arrival: DecodedInput) -> Rows:
        """Return the rows of a record that comes from a topic."""
        node, record = arrival.entry.node, arrival.record
        if isinstance(node, Source) and operator_input(node, self.plan) is not None:
            rows = self._sent(node, record, node, 0, arrival.partition)
        elif arrival.entry.is_handover and operator_input(node, self.plan) is not None:
            rows = self._sent(node, record, node, 0)
        else:
            rows = self.following(node, record, arrived=arrival.entry.is_handover)
        return either([rows, self.unread(arrival)])

    # ---- records that fail -------------------------------------------------------------------------------------------

    def unread(self, arrival: DecodedInput) -> Rows:
        """Return the rows of a record that could not be read, as far as its handler wants any."""
        if arrival.error is None or self._handlers.deserialization == LogAndContinue():
            return Rows()
        topics = self.origin.topic.isin(*arrival.entry.topics)
        return self._diverted("deserialization", arrival.entry.node, topics & arrival.error.isNotNull(), arrival.error)

    def _trying(self, node: Node, record: RecordColumns, make: Callable[[], Made]) -> tuple[Made, Column | None, Rows]:
        """Make something of a record by a learner's function.

        Returns:
            What was made; whether that went well, None if it always does; and the rows of a record where it did not.
        """
        if fails(self._handlers.processing):
            return make(), None, Rows()
        with user_functions.catching() as errors:
            made = make()
        if not errors:
            return made, None, Rows()
        error = F.coalesce(*errors)
        bad = error.isNotNull() if record.kept is None else record.kept & error.isNotNull()
        return made, error.isNull(), self._diverted("processing", node, bad, error)

    def _diverted(self, kind: str, node: Node, bad: Column, error: Column) -> Rows:
        def finished(topic: Column, key: Column, value: Column, timestamp: Column, headers: Column) -> Column:
            nothing = F.lit(None).cast("binary")
            return self._finished(RecordColumns(Datum(nothing), Datum(nothing), timestamp, headers), topic, key, value)

        return diverted(self._handlers, kind, node, bad, error, self.origin, finished)

    # ---- records that go on ------------------------------------------------------------------------------------------

    def result(self, node: Node, row: DataFrame) -> tuple[RecordColumns, Rows]:
        """Return the record that a result of an operator is, and the rows of one that cannot be made."""
        arrived = RecordColumns(Datum(row["key"]), Datum(row["value"]), row["timestamp"], row["headers"])
        record, well, failed = self._trying(node, arrived, lambda: result(node, self.plan, row))
        return record.where_if(well), failed

    def following(self, node: Node, record: RecordColumns, arrived: bool = False) -> Rows:
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
        if isinstance(node, TableGroupBy):
            table = self.plan.topology[node.parents[0]]
            made, well, failed = self._trying(node, record, lambda: selected(node, record, table))
            for row in made:
                rows.single += [self._changed(child, row.where_if(well)) for child in self.plan.following(node)]
            return _with(rows, failed)
        for child in self.plan.following(node):
            rows += self._step(child, record, node)
        return rows

    def leaving(self, node: Process, row: DataFrame) -> Rows:
        """Return the rows that a result of a group of processors becomes: one that was forwarded, or of a changelog."""
        group = self.plan.groups[node.name]
        ways = outputs(group, self.plan)
        logged = [store for store in group.stores if has_changelog(node, store)]
        several = len(ways) + len(logged) > 1

        def taking(way: int, key: Serde, value: Serde) -> RecordColumns:
            record = RecordColumns(sure(row["key"], key), sure(row["value"], value), row["timestamp"], row["headers"])
            return record.where(row["other"] == F.lit(bytes([way]))) if several else record

        found = []
        for way, (member, child, key, value) in enumerate(ways):
            found.append(self._step(child, taking(way, key, value), replace(member, key=key, value=value)))
        for way, store in enumerate(logged, len(ways)):
            row_of_store = row_struct(
                FINISHED, topic=F.lit(self.plan.changelog(store)), key=row["key"], value=row["value"],
                other=F.lit(TO_OWN_PARTITION), timestamp=row["timestamp"],
            )  # fmt: skip
            update = taking(way, store.key, store.value)
            found.append(Rows([row_of_store if update.kept is None else F.when(update.kept, row_of_store)]))
        return either(found)

    def _step(self, node: Node, record: RecordColumns, parent: Node) -> Rows:
        """Return the rows that `node` makes of a record of its parent."""
        if isinstance(node, Sink):
            return self._into(node, record, parent)
        if (sides := self._sides(node, parent)) is not None:
            rows = Rows()
            for side in sides:
                rows += self._sent(node, record, parent, side)
            return rows
        if isinstance(node, FlatMap | FlatMapValues):
            return self._flat(node, record, parent)
        where = operator_input(node, self.plan)
        if where is not None and not stores_latest(node, self.plan.topology):
            other, well, failed = self._trying(node, record, lambda: other_input(node, record, parent, self.plan))
            return _with(self._sent(node, record.where_if(well), parent, where.side, other), failed)
        if isinstance(node, TableGroupBy):
            return self.following(node, record)
        if isinstance(node, TableSource):
            self._note_dropped(node, record)
        return self._transformed(node, record, parent)

    def _transformed(self, node: Node, record: RecordColumns, parent: Node) -> Rows:
        # Where a stream is split, what fails is the split; its last branch has asked all the predicates.
        failing = parent if isinstance(node, Branch) else node
        made, well, failed = self._trying(failing, record, lambda: transform(node, record, parent))
        if failing is parent and node is not self.plan.following(parent)[-1]:
            failed = Rows()
        made = made.where_if(well)
        if (where := operator_input(node, self.plan)) is not None:
            return _with(self._sent(node, made, node, where.side), failed)
        rows = self.following(node, made)
        if isinstance(node, SideEffect):
            rows.single.insert(0, self._written(made, self.plan.calls_topic(node), node))
        return _with(rows, failed)

    def _into(self, node: Sink, record: RecordColumns, parent: Node) -> Rows:
        """Return the row that a sink writes, and what becomes of a record that it cannot write."""
        topic: str | Column = ""
        failed = Rows()
        if isinstance(node.topic, str):
            topic = self.plan.topic(node)
        else:
            choose = node.topic
            topic, well, failed = self._trying(node, record, lambda: record.call(node, choose, parent))
            record = record.where_if(well)
            if fails(self._handlers.production):
                topic = F.coalesce(topic, F.raise_error(F.lit(f"{node.name}: {NO_TOPIC}")).cast("string"))
        if fails(self._handlers.production) or node.internal:
            return _with(Rows([self._written(record, topic, node)]), failed)
        key, value, error = writable(record, node, topic, self.plan.options)
        bad = error.isNotNull() if record.kept is None else record.kept & error.isNotNull()
        written = self._finished(record.where(error.isNull()), topic, key, value)
        return _with(Rows([written]), failed, self._diverted("production", node, bad, error))

    def _sides(self, node: Node, parent: Node) -> list[int] | None:
        """Return the sides that a node takes its parent's records on, where its parent decides that."""
        if isinstance(node, Process):
            return input_sides(self.plan.groups[node.name], parent, node, self.plan)
        return [1] if isinstance(node, StreamTableJoin) and node.table == parent.name else None

    def _note_dropped(self, node: Node, record: RecordColumns) -> None:
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

    def _flat(self, node: FlatMap | FlatMapValues, record: RecordColumns, parent: Node) -> Rows:
        before, self._within_array = self._within_array, True
        inner = Rows()

        def rows_of(element: Column) -> Column:
            made_of_one = self.following(node, one_of_many(record, element))
            inner.single, inner.many = made_of_one.single, made_of_one.many
            return inner.as_array() if inner else F.array()

        elements, well, failed = self._trying(node, record, lambda: flat_map(node, record, parent))
        record = record.where_if(well)
        made = F.transform(elements, rows_of)
        self._within_array = before
        if not inner:  # what follows runs in another query
            return failed
        flat = F.flatten(made)
        kept = flat if record.kept is None else F.when(record.kept, flat)
        return _with(Rows(many=[F.coalesce(kept, F.array())]), failed)

    # ---- rows --------------------------------------------------------------------------------------------------------

    def _sent(self, node: Node, record: RecordColumns, giver: Node, side: int, other: Column | None = None) -> Rows:
        """Return the row that takes a record to a side of a task operator; `giver` says its types."""
        where = operator_input(node, self.plan)
        name = where.operator if where is not None else node.name
        row = row_struct(
            port_of(self._numbers[name], side),
            key=record.key.to_bytes(giver.key),
            value=record.value.to_bytes(giver.value),
            old=record.old.to_bytes(giver.value) if record.old is not None else None,
            other=record.note if other is None else other,
            timestamp=record.timestamp,
            headers=record.headers,
        )
        return Rows([row if record.kept is None else F.when(record.kept, row)])

    def _changed(self, sink: Node, record: RecordColumns) -> Column:
        if not isinstance(sink, Sink) or record.old is None:
            raise TopologyError(f"{sink.name} ({sink.call_site}): a grouped table goes to a repartition topic only.")
        value = change_to_bytes(record.value.to_bytes(sink.value), record.old.to_bytes(sink.value))
        return self._finished(record, self.plan.topic(sink), record.key.to_bytes(sink.key), value)

    def _written(self, record: RecordColumns, topic: str | Column, node: Node) -> Column:
        return self._finished(record, topic, record.key.to_bytes(node.key), record.value.to_bytes(node.value))

    def _finished(self, record: RecordColumns, topic: str | Column, key: Column, value: Column) -> Column:
        """Return the row of a record to write; where there are stages, it passes through them as it is."""
        if not self.plan.operators:
            return finished_row(record, topic, key, value)
        row = row_struct(
            FINISHED,
            topic=F.lit(topic) if isinstance(topic, str) else topic,
            key=key,
            value=value,
            timestamp=record.timestamp,
            headers=record.headers,
        )
        return row if record.kept is None else F.when(record.kept, row)


def _with(rows: Rows, *more: Rows) -> Rows:
    """Return rows together; without more of them they stay as simple as they are."""
    together = Rows([*rows.single], [*rows.many])
    for each in more:
        together += each
    return together


def _as_frame(frame: DataFrame, record: RecordColumns) -> DataFrame:
    kept = frame if record.kept is None else frame.where(record.kept)
    return kept.select(
        record.key.typed.alias("key"), record.value.typed.alias("value"), record.timestamp.alias("timestamp")
    )


def _writes(node: Node) -> bool:
    return any(has_changelog(node, store) for store in node.stores)
