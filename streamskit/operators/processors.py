"""Processors in a task: those that pass records to each other, or share stores, run together in one operator."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from streamskit.api.error_handlers import ProducerRecord
from streamskit.api.processor import (
    NO_RECORD,
    FixedKeyProcessor,
    FixedKeyRecord,
    Processor,
    ProcessorContext,
    PunctuationType,
    Punctuator,
    Record,
    RecordMetadata,
)
from streamskit.common.errors import StreamsError
from streamskit.operators.error_handling import attribute_failure
from streamskit.operators.processor_state import ProcessorState, Reference
from streamskit.operators.processor_stores import open_store
from streamskit.operators.punctuation import Schedule
from streamskit.operators.records import NO_SOURCE, OperatorRecord, iterable
from streamskit.operators.state_store import ChangelogBuffer, StoreAccess, WriteChangelog
from streamskit.operators.stream_task import Operator, OperatorContext, ProcessRecord
from streamskit.serdes import Serde
from streamskit.state.stores import Store


@dataclass(frozen=True)
class ProcessorSpec:
    """One processor of a group: `children` are the processors and output ports that get what it forwards, in order.

    A child is given by its name and, if it is outside the group, the number of the output port that leads there.
    `fills` is the name of the global store that the processor fills, if that is its task.
    """

    name: str
    supplier: Any
    stores: tuple[str, ...]
    children: tuple[tuple[str, int | None], ...]
    fills: str = ""


@dataclass(frozen=True)
class OutputPort:
    """Output port of a group: the serdes of what leaves there and, if it leads to a sink, the sink's name and topic.

    There is no topic where each record names its own.
    """

    key: Serde
    value: Serde
    sink: str = ""
    topic: str | None = None


@dataclass(frozen=True)
class InputPort:
    """Input port of a group, one of its sides: records for a `processor`, or rows of a table that processors read.

    `store` is the name of that table's store.
    """

    key: Serde
    value: Serde
    processor: str = ""
    store: str = ""


@dataclass(frozen=True)
class TableStore:
    """The store of a table, as processors use it.

    Args:
        store: its name, kind and serdes.
        table: the name of the table of the task that holds its rows: of the table's own operator, or of a copy that is
            filled through an input port.
        refusal: why processors cannot change it; empty where they can.
    """

    store: Store
    table: str
    refusal: str = ""


@dataclass(frozen=True)
class ProcessorsOperator(Operator):
    """Processor group: gives records to processors as plain Python values, and passes on what they forward.

    A result's `other` is the number of its output port, in one byte. The numbers after the output ports are for the
    stores' changelogs, and then for the rows that processors put into tables' stores. A single port has no number.
    Mirrors `org.apache.kafka.streams.processor.internals.ProcessorTopology`.

    Args:
        name: that of the first processor.
        application_id: as contexts return it.
        processors: the processors.
        inputs: the input ports, one for each side.
        outputs: the output ports.
        stores: the processors' state stores.
        tables: the stores of tables that the processors use.
        global_stores: the stores that processors of this group fill for the others, which only read them.
    """

    name: str
    application_id: str
    processors: tuple[ProcessorSpec, ...]
    inputs: tuple[InputPort, ...]
    outputs: tuple[OutputPort, ...]
    stores: tuple[Store, ...] = ()
    tables: tuple[TableStore, ...] = ()
    global_stores: tuple[Store, ...] = ()

    @property
    def punctuates(self) -> bool:
        return True

    @property
    def logged(self) -> tuple[Store, ...]:
        """The stores whose updates go to a changelog."""
        return tuple(store for store in self.stores if store.logged)

    @property
    def changed_tables(self) -> tuple[TableStore, ...]:
        """The stores of tables into which processors may put rows."""
        return tuple(table for table in self.tables if not table.refusal)

    def open(self, context: OperatorContext) -> ProcessRecord:
        return RunningProcessors(self, context).process

    def node_at(self, side: int) -> str:
        """Return the name of the processor that records of a side are for."""
        return self.inputs[side].processor or self.name


class RunningProcessors:
    """The processors of one group in one task, alive for one micro-batch.

    `timestamp` is the time of the record in hand, or of the punctuation, in milliseconds.

    Args:
        operator: what runs.
        context: of the task.
        filling: receives what processors put into the global stores that they fill.
    """

    def __init__(
        self, operator: ProcessorsOperator, context: OperatorContext, filling: WriteChangelog | None = None
    ) -> None:
        self.operator, self.task = operator, context.task
        self.timestamp = max(self.task.stream_time, 0)  # what init() puts into a store also has a time
        ports = len(operator.outputs) + len(operator.logged) + len(operator.changed_tables)
        self._ports = [None] if ports == 1 else [bytes([port]) for port in range(ports)]
        self._forward = context.forward
        self.task.saved.append(self)
        self.stores = self._open_stores(context)
        heard = None if filling is None else ChangelogBuffer(filling, False, lambda: self.timestamp)
        self.filled = {store.name: open_store(context, store, _own(store, heard)) for store in operator.global_stores}
        self.nodes = {spec.name: ProcessorNode(self, spec) for spec in operator.processors}
        self._state = ProcessorState(operator.name, self.task, self._objects())
        if not self._state.restore():
            for node in self.nodes.values():
                node.call(node.processor.init, node.context)
        self.task.punctuated |= {name: node.punctuate for name, node in self.nodes.items()}
        self._sides = [self._side(port) for port in operator.inputs]

    def process(self, side: int, record: OperatorRecord) -> None:
        """Give a record to the processor, or to the table, that a side leads to."""
        self._sides[side](record)

    def save(self) -> None:
        """Close the processors and save their fields."""
        for node in self.nodes.values():
            node.call(node.processor.close)
        self._state.save()

    def send(self, output: int, key: Any, value: Any, timestamp: int, headers: Any) -> None:
        """Pass a record on through an output port."""
        port = self.operator.outputs[output]
        try:
            data = port.key.serialize(key), port.value.serialize(value)
        except BaseException as failure:
            if not port.sink:
                raise
            refused = ProducerRecord(port.topic, key, value, timestamp, headers)
            return self.task.fail(port.sink, failure, refused, writing=True)
        headers = [{"key": name, "value": header} for name, header in headers] if headers else None
        return self._forward(*data, timestamp, headers, None, self._ports[output])

    def _side(self, port: InputPort) -> Callable[[OperatorRecord], None]:
        if port.store:
            store = self.stores[port.store]
            return lambda row: store.put_row(row.key, row.value, row.timestamp)
        return partial(self._receive, self.nodes[port.processor], port)

    def _receive(self, node: "ProcessorNode", port: InputPort, record: OperatorRecord) -> None:
        key, value = port.key.deserialize(record.key), port.value.deserialize(record.value)
        self.timestamp = record.timestamp
        headers = tuple((header["key"], header["value"]) for header in iterable(record.headers))
        node.process(key, value, record.timestamp, headers)

    def _open_stores(self, context: OperatorContext) -> dict[str, Any]:
        """Open the stores that processors find by name; their updates get the ports after those of the results."""
        operator, stores = self.operator, dict[str, Any]()
        ports = iter(self._ports[len(operator.outputs) :])
        for store in operator.stores:
            changelog = self._changelog(store, next(ports)) if store.logged else None
            stores[store.name] = open_store(context, store, _own(store, changelog))
        for table in operator.tables:
            # Joins that look into the table get each row as it is put, not at the end of the micro-batch.
            changelog = None if table.refusal else self._updates(table.store, next(ports))
            stores[table.store.name] = open_store(
                context, table.store, StoreAccess(table.table, changelog, table.refusal)
            )
        for store in operator.global_stores:
            stores[store.name] = open_store(context, store, _own(store, refusal=GLOBAL))
        return stores

    def _changelog(self, store: Store, port: bytes | None) -> ChangelogBuffer:
        changelog = ChangelogBuffer(partial(self._write_changelog, port), store.cached, lambda: self.timestamp)
        self.task.changelogs.append(changelog)
        return changelog

    def _updates(self, store: Store, port: bytes | None) -> ChangelogBuffer:
        """Return what passes on each row that is put into a table's store, with the key that the table's rows have."""
        extra = -4 if store.kind == "window" else None
        write: WriteChangelog = lambda key, value, time: self._write_changelog(port, key[:extra], value, time)  # noqa: E731
        return ChangelogBuffer(write, False, lambda: self.timestamp)

    def _write_changelog(self, port: bytes | None, key: bytes, value: bytes | None, timestamp: int) -> None:
        self._forward(key, value, timestamp, None, None, port)

    def _objects(self) -> dict[Reference, Any]:
        """Return the objects that every micro-batch creates again: fields of processors only refer to them."""
        objects: dict[Reference, Any] = {("store", name): store for name, store in self.stores.items()}
        objects |= {("filled store", name): store for name, store in self.filled.items()}
        for name, node in self.nodes.items():
            objects |= {("processor", name): node.processor, ("context", name): node.context}
        return objects


NO_TASK = "-1_-1"
"""The task's id for processors of global stores. Mirrors `GlobalProcessorContextImpl`."""

GLOBAL = "it is global: every instance fills it from its topic, so only its own processor can change it."


def _own(store: Store, changelog: ChangelogBuffer | None = None, refusal: str = "") -> StoreAccess:
    """Return how to get at a store that this operator keeps itself."""
    return StoreAccess(f"store {store.name}", changelog, refusal)


class ProcessorNode:
    """Processor node: one processor of a group, and the services of its context.

    Mirrors `org.apache.kafka.streams.processor.internals.ProcessorNode` and `ProcessorContextImpl`.
    """

    def __init__(self, group: RunningProcessors, spec: ProcessorSpec) -> None:
        self.application_id = group.operator.application_id
        self.spec, self.processor = spec, spec.supplier()
        self.context = ProcessorContext(self)
        self._group, self._task = group, group.task
        self.task_id: str = NO_TASK if spec.fills else self._task.task_id
        self._record: Callable[..., Record | FixedKeyRecord] = Record
        self._keeps_keys = isinstance(self.processor, FixedKeyProcessor)
        if self._keeps_keys:
            self._record = FixedKeyRecord.given
        elif not isinstance(self.processor, Processor):
            raise StreamsError(
                f"{spec.name}: its supplier made a {type(self.processor).__name__}, and has to make a Processor: "
                "pass the class itself, or a function without arguments that makes one."
            )

    def call(self, method: Callable[..., None], *arguments: Any) -> None:
        """Call the processor's `init` or `close`, whose failures stop the task."""
        try:
            method(*arguments)
        except BaseException as failure:
            attribute_failure(failure, self.spec.name)
            raise

    def process(self, key: Any, value: Any, timestamp: int, headers: Any) -> None:
        """Let the processor process a record."""
        record = self._record(key, value, timestamp, headers)
        try:
            self.processor.process(record)
        except BaseException as failure:
            self._task.fail(self.spec.name, failure, record)

    def punctuate(self, punctuator: Punctuator, now: int) -> None:
        """Call a punctuation of the processor."""
        self._group.timestamp = now
        with self._task.made_from(NO_SOURCE._replace(timestamp=now)):
            try:
                punctuator(now)
            except BaseException as failure:
                self._task.fail(self.spec.name, failure, None)

    # ---- the services of the context ---------------------------------------------------------------------------------

    def forward(self, record: Record | FixedKeyRecord, to: str | None) -> None:
        """Pass a record to the children, each before the next.

        Raises:
            StreamsError: no step of that name follows, what is forwarded is no record, or a record that has to keep
                its key was given another.
        """
        self._check(record)
        key, value, timestamp, headers = record.key, record.value, record.timestamp, record.headers
        group, has_child = self._group, to is None
        for child, output in self.spec.children:
            if to is None or to == child:
                has_child = True
                if output is None:
                    own_timestamp, group.timestamp = group.timestamp, timestamp
                    try:
                        group.nodes[child].process(key, value, timestamp, headers)
                    finally:  # this processor may catch what the child raises, and go on
                        group.timestamp = own_timestamp
                else:
                    group.send(output, key, value, timestamp, headers)
        if not has_child:
            names = ", ".join(child for child, _ in self.spec.children) or "none"
            raise StreamsError(
                f"{self.spec.name} cannot forward to '{to}': no step of that name comes next. Its next steps: {names}."
            )

    def _check(self, record: Record | FixedKeyRecord) -> None:
        if self._keeps_keys and not (isinstance(record, FixedKeyRecord) and record.has_its_key):
            raise StreamsError(
                f"{self.spec.name}: a FixedKeyProcessor forwards the records that it is given, so that keys stay in "
                "their partitions: record.with_value(...). Where keys change, use a Processor and process()."
            )
        if not isinstance(record, Record | FixedKeyRecord):
            raise StreamsError(f"{self.spec.name}: {NO_RECORD.format(record)}")

    def schedule(self, interval: int, kind: PunctuationType, punctuator: Punctuator) -> Schedule:
        """Schedule a punctuation.

        Raises:
            StreamsError: the processor fills a global store, or the interval is shorter than 1 ms.
        """
        if self.spec.fills:
            raise StreamsError(
                f"{self.spec.name}: it fills the global store '{self.spec.fills}', and such a processor cannot have "
                "punctuations. Schedule them in a processor that reads the store."
            )
        if interval < 1:
            raise StreamsError(f"{self.spec.name}: a punctuation every {interval} ms is impossible; give 1 ms or more.")
        # By stream time it is due at the first record: schedules count from 1970.
        due = 0 if kind is PunctuationType.STREAM_TIME else self.wall_clock() + interval
        return self._task.punctuations.add(Schedule(self.spec.name, kind, interval, due, punctuator))

    def state_store(self, name: str) -> Any:
        """Return a store that is connected to this processor.

        Raises:
            StreamsError: no store of that name is connected to it.
        """
        if name == self.spec.fills:
            return self._group.filled[name]
        if name not in self.spec.stores:
            names = ", ".join(self.spec.stores) or "none"
            raise StreamsError(
                f"{self.spec.name} has no store '{name}'; it has: {names}. Name it in stores=[...] of the step, or "
                "connect it with connect_processor_and_state_stores()."
            )
        return self._group.stores[name]

    def stream_time(self) -> int:
        """Return the latest time of the records of this task."""
        return self._task.stream_time

    def wall_clock(self) -> int:
        """Return the wall clock's time."""
        return self._task.now()

    def timestamp(self) -> int:
        """Return the time of the record in hand, or of the punctuation."""
        return self._group.timestamp

    def metadata(self) -> RecordMetadata:
        """Return where the record in hand came from."""
        return RecordMetadata(*self._task.source[:3])

    def commit(self) -> None:
        """Do nothing: the end of the micro-batch is the commit, and it comes without a request."""
