"""Follows a record from step to step of a plan, as Columns, until it is written or goes to a stateful operator."""

from dataclasses import dataclass, replace
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamskit.api.error_handlers import asks, fails
from streamskit.common.errors import TopologyError
from streamskit.execution.dead_letters import GivenRecord
from streamskit.execution.error_guard import ErrorGuard
from streamskit.execution.native_aggregation import HEADERS, aggregate
from streamskit.execution.optimization_barrier import ComputedAhead, is_by_chance
from streamskit.execution.outcomes import Drop, Flatten, Outcome, Send, Write
from streamskit.execution.record_columns import Datum, RecordColumns, change_to_bytes, changelog_key
from streamskit.execution.sinks import NO_TOPIC, bytes_of, refused, tried, writable
from streamskit.execution.sources import DecodedInput
from streamskit.execution.stateless import branch_number, elements_of, one_of_many, regrouped, transform
from streamskit.execution.update_order import as_kafka_streams_reads
from streamskit.jvm.functions import driver_place
from streamskit.operators import OUT_OF_ORDER, STORE_ONLY
from streamskit.operators.table_join import STORED
from streamskit.planning.lookups import (
    has_open_windows,
    is_open_window_taken,
    is_read_through,
    leads_to_lookup,
    looks_into,
)
from streamskit.planning.old_values import takes_old_values
from streamskit.planning.plan import Plan, has_changelog
from streamskit.planning.planned_operators import operator_input, runs_latest_value_operator
from streamskit.planning.processor_groups import input_sides
from streamskit.topology.nodes import (
    Aggregation,
    Branch,
    Node,
    OperatorInput,
    SideEffect,
    Sink,
    TableGroupBy,
    TableJoinSide,
    TableSource,
)


@dataclass(frozen=True)
class Steps:
    """The steps of a plan, for records whose origin the guard knows."""

    plan: Plan
    guard: ErrorGuard
    checkpoint: str = ""
    """Where the query keeps what it remembers."""
    gets: Literal["all", "lookups", "all but lookups"] = "all"
    """Which steps get a table's update: lookups get it at once, the others when the cache has merged it."""
    is_open: bool = False
    """Whether the update is of a window emitted on close: then table joins keep the row and emit nothing."""
    ahead: ComputedAhead | None = None
    """What the frame of the records has to compute ahead; None for the elements of an array."""

    # ---- where a record begins ---------------------------------------------------------------------------------------

    def arrive(self, decoded: DecodedInput) -> list[Outcome]:
        """Return the outcomes of a record that comes from a topic."""
        node, record = decoded.source.node, decoded.record
        if (to := operator_input(node, self.plan)) is not None and (decoded.source.is_handover or not node.parents):
            return [Send(record, to._replace(side=0), node, None if decoded.source.is_handover else decoded.partition)]
        return self.go_on(node, record, is_handover=decoded.source.is_handover)

    def go_on(self, node: Node, record: RecordColumns, is_handover: bool = False) -> list[Outcome]:
        """Return the outcomes of a record that `node` passes on.

        Args:
            node: a node of the plan.
            record: what it passes on.
            is_handover: whether an earlier query has written the record, and done the node's own part.
        """
        outcomes: list[Outcome] = []
        if not is_handover and self.gets != "lookups":
            outcomes += self._logged(node, record)
            if record.note is not None and node.on_close:
                outcomes += self._still_open(node, record)
                record = record.where(~record.note.eqNullSafe(F.lit(STORE_ONLY)))
                return [*outcomes, *replace(self, gets="all but lookups")._pass_on(node, record)]
            outcomes += [self.hand_over(node, record, topic) for topic in self.plan.topics_between(node)]
        if isinstance(node, TableGroupBy):
            return [*outcomes, *self._regroup(node, record)]
        return [*outcomes, *self._pass_on(node, record)]

    def hand_over(self, node: Node, record: RecordColumns, topic: str) -> Outcome:
        """Return the write to a topic from which another query of the sub-topology reads what `node` passes on."""
        return replace(_written(record, topic, node), partition=self._own_partition)

    def _pass_on(self, node: Node, record: RecordColumns) -> list[Outcome]:
        """Return the outcomes of a record in the steps that follow a node."""
        made = [each for child in self._following(node) for each in self.step(child, record, node)]
        return as_kafka_streams_reads(node, made, self.plan) if node.is_table and not self.is_open else made

    def _still_open(self, node: Node, record: RecordColumns) -> list[Outcome]:
        """Return the outcomes of the row of a window that is still open: it can be looked up."""
        is_open = record.note.eqNullSafe(F.lit(STORE_ONLY)) if record.note is not None else F.lit(False)
        return replace(self, gets="lookups", is_open=True)._pass_on(node, replace(record.where(is_open), note=None))

    def _following(self, node: Node) -> list[Node]:
        """Return the nodes that get this update of a node."""
        following = self.plan.following(node)
        if self.is_open:
            return [child for child in following if is_open_window_taken(child, node, self.plan)]
        if self.gets == "lookups":
            return [child for child in following if leads_to_lookup(child, node, self.plan)]
        if self.gets == "all but lookups":
            return [child for child in following if not self._sees_at_once(child, node)]
        return following

    def _sees_at_once(self, step: Node, table: Node) -> bool:
        """Return whether a step already has an update of the table before it."""
        if looks_into(step, table, self.plan):
            return True
        is_open = has_open_windows(table, self.plan)
        return not is_open and is_read_through(step, self.plan) and operator_input(step, self.plan) is not None

    def store_changed(self, node: Node, record: RecordColumns) -> list[Outcome]:
        """Return the outcomes of a row that a processor has put into a table's store.

        It is not an update of the table: it reaches the changelog and joins that look into the table, but nothing else.
        """
        outcomes = [*self._logged(node, record)]
        for child in self.plan.following(node):
            if child.looks_into(node):
                outcomes += self.step(child, record, node)
            elif child.is_table and not (child.is_stateful or child.stores or child.needs_old_values):
                outcomes += self.store_changed(child, transform(child, record, node))
        return outcomes

    def _logged(self, node: Node, record: RecordColumns) -> list[Outcome]:
        """Return the writes to the changelogs of a node's stores."""
        return [
            Write(record, self.plan.changelog(store), changelog_key(record, store, node.key),
                  record.value_bytes(store.value), self._own_partition)
            for store in node.stores if has_changelog(node, store) and store not in node.own_stores
        ]  # fmt: skip

    @property
    def _own_partition(self) -> Column | None:
        """The partition of the record's task, if what is kept of it has to stay there; None if its key decides."""
        return self.guard.origin.partition if self.plan.keeps_partitions else None

    # ---- one step ----------------------------------------------------------------------------------------------------

    def step(self, node: Node, record: RecordColumns, parent: Node) -> list[Outcome]:
        """Return the outcomes of what `node` makes of a record that `parent` passes on."""
        if isinstance(node, Sink):
            return self._sink(node, record, parent)
        if record.old is not None and not takes_old_values(node, parent, self.plan.topology):
            record = replace(record, old=None)
        to = operator_input(node, self.plan)
        if to is not None and self.is_open and isinstance(node, TableJoinSide):
            return [Send(record, to._replace(side=to.side + STORED), parent)]
        if to is not None and (sides := self._sides_for(parent, node)) is not None:
            return [Send(record, to._replace(side=side), parent) for side in sides]
        if node.flattens:
            return self._flatten(node, record, parent)
        if to is not None and not runs_latest_value_operator(node, self.plan):
            record, late = self._latest(node, record)
            extra = self.guard.attempt(node, record, parent, lambda: self._lookup_key(node, record, parent))
            return [Send(record.where_if(extra.succeeded), to, parent, extra.result), *extra.failures, *late]
        if isinstance(node, TableGroupBy):
            return self.go_on(node, record)
        return self._transform(node, record, parent, to)

    def _sides_for(self, parent: Node, node: Node) -> list[int] | None:
        """Return the sides on which an operator takes its parent's records, where the parent decides that."""
        if node.name in self.plan.groups:
            return input_sides(self.plan.groups[node.name], parent, node, self.plan)
        side = node.table_side(parent)
        return None if side is None else [side]

    def _latest(self, node: Node, record: RecordColumns) -> tuple[RecordColumns, list[Outcome]]:
        """Return the record without updates that came out of order, where a lookup key takes the place of that mark.

        Such updates are counted as dropped.
        """
        if record.note is None or node.lookup_key(self.plan.topology.nodes) is None:
            return record, []
        is_late = record.note.eqNullSafe(F.lit(OUT_OF_ORDER))
        dropped = Drop(node, is_late if record.condition is None else record.condition & is_late)
        return record.where(~is_late), [dropped]

    def _lookup_key(self, node: Node, record: RecordColumns, parent: Node) -> Column | None:
        """Return the bytes of the key by which an operator looks something up for a record, if it does."""
        lookup = node.lookup_key(self.plan.topology.nodes)
        if lookup is None:
            return None
        value = record.value.typed if lookup.of_value else None
        now = lookup.serde.to_bytes(record.call(node, lookup.function, parent, value))
        if record.old is None:
            return now
        before = lookup.serde.to_bytes(record.call(node, lookup.function, parent, record.old.typed))
        return change_to_bytes(now, before)

    def _transform(self, node: Node, record: RecordColumns, parent: Node, to: OperatorInput | None) -> list[Outcome]:
        # Where a stream is split, the split is what fails; its last branch has evaluated all the predicates.
        failing = parent if isinstance(node, Branch) else node
        made = self.guard.attempt(failing, record, parent, lambda: self._made(node, record, parent))
        failures = made.failures if self.gets != "lookups" else []
        if failing is parent and node is not self.plan.following(parent)[-1]:
            failures = []
        after = made.result.where_if(made.succeeded)
        if node.row_store is not None:  # the store's note on an update counts, not an earlier one
            after = replace(after, note=None)
        if to is not None:
            outcomes: list[Outcome] = [Send(after, to, node)]
        else:
            outcomes = self.go_on(node, after)
            if isinstance(node, SideEffect):
                outcomes.insert(0, _written(after, self.plan.calls_topic(node), node))
        if isinstance(node, TableSource):
            lost = record.key.typed.isNull()
            outcomes.insert(0, Drop(node, lost if record.condition is None else record.condition & lost))
        return [*outcomes, *failures]

    def _made(self, node: Node, record: RecordColumns, parent: Node) -> RecordColumns:
        """Return what a step without state makes of a record, the same for all that follows."""
        made = transform(node, record, parent)
        if self.ahead is None:
            return made
        if isinstance(node, Branch) and made.condition is not None and is_by_chance(made.condition):
            number = branch_number(node, record, parent, len(node.predicates))
            return record.where(self.ahead.branch(parent.name, record, number) == node.index)
        return self.ahead.taken_once(record, made)

    def _flatten(self, node: Node, record: RecordColumns, parent: Node) -> list[Outcome]:
        elements = self.guard.attempt(node, record, parent, lambda: elements_of(node, record, parent))
        return [
            Flatten(
                record.where_if(elements.succeeded),
                elements.result,
                lambda element: replace(self, ahead=None).go_on(node, one_of_many(record, element)),
            ),
            *elements.failures,
        ]

    def _regroup(self, node: TableGroupBy, record: RecordColumns) -> list[Outcome]:
        """Return the outcomes of a table's update for the groups that its row leaves and enters."""
        table = self.plan.topology[node.parents[0]]
        made = self.guard.attempt(node, record, table, lambda: regrouped(node, record, table))
        changes = [
            outcome
            for each in made.result
            for child in self.plan.following(node)
            for outcome in self._change(child, each.where_if(made.succeeded), node)
        ]
        return [*changes, *made.failures]

    def _change(self, sink: Node, record: RecordColumns, parent: Node) -> list[Outcome]:
        """Return the outcomes of a grouped table's update, which carries the new and the old value."""
        if not isinstance(sink, Sink) or record.old is None:
            raise TopologyError(f"{sink.name} ({sink.call_site}): a grouped table goes to a repartition topic only.")
        topic = self.plan.topic(sink)
        if fails(self.guard.handlers.production):
            value = change_to_bytes(record.value_bytes(sink.value), record.old.to_bytes(sink.value, record.condition))
            return [Write(record, topic, record.key_bytes(sink.key), value)]
        written, unwritable, error = writable(record, sink, topic, self.plan.options)
        old, old_error = tried(record.old, sink.value, record.condition)
        given = None
        if old_error is not None:
            unwritable, error = F.coalesce(unwritable, old_error), F.coalesce(error, old_error)
        if asks(self.guard.handlers.production):
            given = GivenRecord.of(record, parent, topic).or_written(unwritable.isNull(), written.key, written.value)
        wrong = self.guard.failed("production", sink, record, error, given)
        value = change_to_bytes(written.value, old)
        return [Write(record.where(error.isNull()), topic, written.key, value), *wrong]

    def _sink(self, node: Sink, record: RecordColumns, parent: Node) -> list[Outcome]:
        """Return the outcomes of a record that a sink writes, or cannot write."""
        handlers, failures = self.guard.handlers, list[Outcome]()
        topic: str | Column = ""
        if isinstance(node.topic, str):
            topic = self.plan.topic(node)
        else:
            choose = node.topic
            chosen = self.guard.attempt(node, record, parent, lambda: record.call(node, choose, parent))
            topic, failures, record = chosen.result, chosen.failures, record.where_if(chosen.succeeded)
            if fails(handlers.production):
                topic = F.coalesce(topic, F.raise_error(F.lit(f"{node.name}: {NO_TOPIC}")).cast("string"))
        if fails(handlers.production):
            written = _written(record, topic, node)
            if isinstance(topic, str) and not node.internal and topic in self.plan.options.rules:
                written = replace(written, topic=self._unless_refused(node, written, topic))
            return [self._partitioned(node, written), *failures]
        written, unwritable, error = writable(record, node, topic, self.plan.options)
        given = None
        if asks(handlers.production):
            given = GivenRecord.of(record, parent, topic).or_written(unwritable.isNull(), written.key, written.value)
        wrong = self.guard.failed("production", node, record, error, given)
        written = replace(written, record=record.where(error.isNull()))
        return [self._partitioned(node, written), *failures, *wrong]

    def _partitioned(self, sink: Sink, write: Write) -> Write:
        """Return what a sink writes: for a partitioner, which may fail, the record's origin is sent along."""
        if sink.partitioner is None:
            return write
        record = write.record
        if self.guard.handlers.ask_for_sources:
            record = replace(record, headers=self.guard.origin.prepended_to(record.headers))
        return replace(write, record=record, sink=sink.name)

    def _unless_refused(self, node: Sink, written: Write, topic: str) -> Column:
        """Return the topic of a record that its broker accepts; any other record fails, and says where it came from."""
        record, origin = written.record, self.guard.origin
        size = bytes_of(written.key, written.value, record.headers)
        why = F.coalesce(*refused(record.timestamp, written.key, size, topic, self.plan.options))
        place = F.when(origin.topic.isNull(), F.lit("")).otherwise(
            F.format_string(
                " made of offset %d of topic '%s', partition %d,", origin.offset, origin.topic, origin.partition
            )
        )
        message = F.format_string(
            f"{node.name}: a record%s cannot be written to topic '{topic}': %s To go on without such records: "
            "production_handler=LogAndContinue('a-dead-letter-topic').", place, why,
        )  # fmt: skip
        return F.when(why.isNull(), F.lit(topic)).otherwise(F.raise_error(message).cast("string"))

    # ---- steps that are applied to the whole frame -------------------------------------------------------------------

    def whole_frame_path(self, node: Node) -> list[Node]:
        """Return the steps to apply to the whole frame: down to the native aggregation, or to the last flat map.

        A flat map on the way is a cheap explode; one among branches is an array within the row. It counts only as long
        as each node before it feeds one other and writes nothing, and no record that fails leaves rows behind.
        """
        plan, path = self.plan, list[Node]()
        if plan.native is not None:
            path = [plan.native]
            while path[0].parents[0] != node.name:
                path.insert(0, plan.topology[path[0].parents[0]])
            return path
        if self.guard.handlers.make_rows:
            return []
        while len(children := plan.following(node)) == 1 and not any(has_changelog(node, s) for s in node.stores):
            node = children[0]
            if node.is_visible or node.needs_old_values:
                break
            path.append(node)
        flat = [number for number, step in enumerate(path) if step.flattens]
        return path[: flat[-1] + 1] if flat else []

    def advance(
        self, frame: DataFrame, node: Node, record: RecordColumns, parent: Node
    ) -> tuple[DataFrame, RecordColumns]:
        """Apply one step to the whole frame, as far as it needs that, and return the record after it.

        Args:
            frame: with the columns of which `record` is made, and topic, partition and offset. The frame that is
                returned also has them, unless Spark has aggregated it: then it has key, value, timestamp and headers.
            node: the step.
            record: what comes to it.
            parent: the node that passes the record on.
        """
        if node is self.plan.native:
            return self._aggregate(self.plan.native, frame, record, parent)
        if not node.flattens:
            made = self.guard.attempt(node, record, parent, lambda: self._made(node, record, parent))
            after = made.result.where_if(made.succeeded)
            return frame if self.ahead is None else self.ahead.added_to(frame), after
        elements = self.guard.attempt(node, record, parent, lambda: elements_of(node, record, parent))
        kept = _where_kept(frame, record.where_if(elements.succeeded))
        flat = kept.select(
            F.explode(elements.result).alias("each"),
            record.timestamp.alias("timestamp"),
            record.headers.alias("headers"),
            *(kept[name] for name in ("topic", "partition", "offset")),  # a sink reports where a refused record is from
        )
        of_each = replace(record, timestamp=flat["timestamp"], headers=flat["headers"])
        return flat, one_of_many(of_each, flat["each"])

    def _aggregate(
        self, node: Aggregation, frame: DataFrame, record: RecordColumns, parent: Node
    ) -> tuple[DataFrame, RecordColumns]:
        """Aggregate with Spark: of `frame` it takes what `record` is made of, and the columns partition and offset."""
        kept = _where_kept(frame, record)
        columns = {"key": record.key.typed, "value": record.value.typed, "timestamp": record.timestamp}
        if self.plan.options.test:
            order = F.struct(F.current_timestamp().alias("batch"), kept["offset"].alias("offset"))
            order = driver_place(self.plan.options.driver) if self.plan.options.driver else order
            columns |= dict(zip(HEADERS, (record.headers, order), strict=True))
        records = kept.select(*(column.alias(name) for name, column in columns.items()), kept["partition"])
        folder = f"{self.checkpoint}/stream-time"
        made = aggregate(node, records, parent, folder, self.plan.keeps_partitions, self.plan.options)
        return made, RecordColumns(Datum(made["key"]), Datum(made["value"]), made["timestamp"], made["headers"])


def _where_kept(frame: DataFrame, record: RecordColumns) -> DataFrame:
    """Return a frame of any columns without the rows whose record was dropped."""
    return frame if record.condition is None else frame.where(record.condition)


def _written(record: RecordColumns, topic: str | Column, node: Node) -> Write:
    return Write(record, topic, record.key_bytes(node.key), record.value_bytes(node.value))
