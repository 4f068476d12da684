"""Processors in a task: those that pass records to each other, or share stores, run together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from streamskit.api.error_handlers import RawRecord
from streamskit.api.processor import (
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
from streamskit.operators.changelog_buffer import ChangelogBuffer
from streamskit.operators.failure_attribution import attribute_failure
from streamskit.operators.processor_state import ProcessorState
from streamskit.operators.punctuation import Schedule, Schedules
from streamskit.operators.records import NOWHERE, listed
from streamskit.operators.records import OperatorRecord as Row
from streamskit.operators.state_stores import ProcessorKeyValueStore, StateStore, open_store
from streamskit.operators.stream_task import Operator, OperatorContext, Process
from streamskit.serdes import Serde
from streamskit.state.stores import Store


@dataclass(frozen=True)
class ProcessorSpec:
    """One processor of a group: `children` are the members and the ways out that get what it forwards, in order.

    A child is given by its name and, if it is outside, the number of the way that leads there.
    """

    name: str
    supplier: Any
    stores: tuple[str, ...]
    children: tuple[tuple[str, int | None], ...]


@dataclass(frozen=True)
class OutputPort:
    """A way out of a group, with the serdes of what goes there, and the name of the sink if it leads to one."""

    key: Serde
    value: Serde
    sink: str = ""


@dataclass(frozen=True)
class InputPort:
    """A side of a group: its records are for a member, or (`store`) are rows of a table that members look up."""

    key: Serde
    value: Serde
    member: str = ""
    store: str = ""


@dataclass(frozen=True)
class ProcessorsOperator(Operator):
    """Gives records to processors as plain Python values, and passes on what they forward.

    A result's `other` is the number of the way it takes, in one byte, counted on by the stores' changelogs; there is
    none where there is but one way.

    Args:
        name: that of the first member.
        application_id: what a context tells.
        members: the processors.
        entrances: one for each side.
        ways: where results go.
        stores: what the members keep.
        tables: the stores of tables that the members read.
    """

    name: str
    application_id: str
    members: tuple[ProcessorSpec, ...]
    entrances: tuple[InputPort, ...]
    ways: tuple[OutputPort, ...]
    stores: tuple[Store, ...] = ()
    tables: tuple[Store, ...] = ()

    @property
    def keeps_time(self) -> bool:
        return True

    @property
    def logged(self) -> tuple[Store, ...]:
        """The stores whose updates go to a changelog."""
        return tuple(store for store in self.stores if store.logged)

    def open(self, task: OperatorContext) -> Process:
        return RunningProcessorGroup(self, task).process

    def blamed(self, side: int) -> str:
        """Return the name of the member that a side leads to."""
        return self.entrances[side].member or self.name


class RunningProcessorGroup:
    """The processors of one task, alive for one micro-batch."""

    def __init__(self, operator: ProcessorsOperator, task: OperatorContext) -> None:
        self.task, self.operator = task, operator
        self.now_at = max(task.stream_time, 0)  # what init() puts into a store has a time, too
        single = len(operator.ways) + len(operator.logged) == 1
        self._marks = [None if single else bytes([way]) for way in range(len(operator.ways) + len(operator.logged))]
        self.schedules = Schedules([])
        lifetime = ProcessorState(self, task.run)
        self.stores = self._open_stores()
        self.running = {member.name: RunningProcessor(self, member) for member in operator.members}
        lifetime.begin()
        task.keep_time(self.punctuate)
        self._sides = [self._side(entrance) for entrance in operator.entrances]

    def process(self, side: int, row: Row) -> None:
        """Give a row to the member, or to the table, that a side leads to."""
        self._sides[side](row)

    def punctuate(self, kind: PunctuationType, now: int) -> None:
        """Call what is due by a clock."""
        if now < self.schedules.next_due[kind]:
            return
        for schedule in self.schedules.take_due(kind, now):
            self.running[schedule.member].punctuate(schedule.punctuator, now)

    def leave(self, way: int, key: Any, value: Any, timestamp: int, headers: Any) -> None:
        """Pass a record on to the outside."""
        to = self.operator.ways[way]
        try:
            data = to.key.serialize(key), to.value.serialize(value)
        except Exception as failure:
            if not to.sink:
                raise
            record = RawRecord(None, None, None, timestamp)
            return self.task.fail(to.sink, failure, record, self.task.source, writing=True)
        headers = [{"key": name, "value": header} for name, header in headers] if headers else None
        return self.task.forward(*data, timestamp, headers, None, self._marks[way])

    def _side(self, entrance: InputPort) -> Any:
        if entrance.store:
            table: Any = self.stores[entrance.store]
            return lambda row: table.apply(row.key, None if row.value is None else (row.value, row.timestamp))
        return partial(self._arrive, self.running[entrance.member], entrance)

    def _arrive(self, running: "RunningProcessor", entrance: InputPort, row: Row) -> None:
        key, value = entrance.key.deserialize(row.key), entrance.value.deserialize(row.value)
        self.now_at = row.timestamp
        headers = tuple((header["key"], header["value"]) for header in listed(row.headers))
        running.receive(key, value, row.timestamp, headers)

    def _open_stores(self) -> Mapping[str, StateStore]:
        task, operator = self.task, self.operator
        stores: dict[str, StateStore] = {}
        for store in operator.stores:
            journal = None
            if store.logged:
                mark = self._marks[len(operator.ways) + operator.logged.index(store)]
                journal = ChangelogBuffer(partial(self._log, mark), store.cached, lambda: self.now_at)
                task.keep(journal)
            stores[store.name] = open_store(task, store, journal)
        for table in operator.tables:
            stores[table.name] = ProcessorKeyValueStore(task, table, None, read_only=True)
        return stores

    def _log(self, mark: bytes | None, key: bytes, value: bytes | None, timestamp: int) -> None:
        self.task.forward(key, value, timestamp, None, None, mark)


class RunningProcessor:
    """One processor of a group, with what its context offers it."""

    def __init__(self, group: RunningProcessorGroup, member: ProcessorSpec) -> None:
        self.application_id = group.operator.application_id
        self.member, self.processor = member, member.supplier()
        self.context = ProcessorContext(self)
        self._group = group
        self._record: Callable[..., Record | FixedKeyRecord] = Record
        self._keeps_keys = isinstance(self.processor, FixedKeyProcessor)
        if self._keeps_keys:
            self._record = FixedKeyRecord.given
        elif not isinstance(self.processor, Processor):
            raise StreamsError(
                f"{member.name}: its supplier made a {type(self.processor).__name__}, and has to make a Processor: "
                "pass the class itself, or a function without arguments that makes one."
            )

    def initialize(self) -> None:
        """Let the processor prepare itself."""
        try:
            self.processor.init(self.context)
        except Exception as failure:
            attribute_failure(failure, self.member.name)
            raise

    def receive(self, key: Any, value: Any, timestamp: int, headers: Any) -> None:
        """Let the processor process a record."""
        record = self._record(key, value, timestamp, headers)
        try:
            self.processor.process(record)
        except Exception as failure:
            self._group.task.fail(self.member.name, failure, record, self._group.task.source)

    def punctuate(self, punctuator: Punctuator, now: int) -> None:
        """Call a punctuation of the processor."""
        group, task = self._group, self._group.task
        before, task.source = task.source, NOWHERE._replace(timestamp=now)
        group.now_at = now
        try:
            punctuator(now)
        except Exception as failure:
            task.fail(self.member.name, failure, None, task.source)
        finally:
            task.source = before

    def close(self) -> None:
        """Let the processor let go of what cannot outlive a micro-batch."""
        try:
            self.processor.close()
        except Exception as failure:
            attribute_failure(failure, self.member.name)
            raise

    # ---- what the context offers -------------------------------------------------------------------------------------

    def forward(self, record: Record | FixedKeyRecord, to: str | None) -> None:
        """Pass a record to the children, each before the next."""
        self._check(record)
        key, value, timestamp, headers = record.key, record.value, record.timestamp, record.headers
        found = to is None
        for child, way in self.member.children:
            if to is None or to == child:
                found = True
                if way is None:
                    now_at, self._group.now_at = self._group.now_at, timestamp
                    self._group.running[child].receive(key, value, timestamp, headers)
                    self._group.now_at = now_at
                else:
                    self._group.leave(way, key, value, timestamp, headers)
        if not found:
            names = ", ".join(child for child, _ in self.member.children) or "none"
            raise StreamsError(f"{self.member.name}: no step '{to}' follows it to forward to; those that do: {names}.")

    def _check(self, record: Record | FixedKeyRecord) -> None:
        if self._keeps_keys and not (isinstance(record, FixedKeyRecord) and record.has_its_key):
            raise StreamsError(
                f"{self.member.name}: a FixedKeyProcessor forwards the records that it is given, so that keys stay in "
                "their partitions: record.with_value(...). Where keys change, use a Processor and process()."
            )
        if not isinstance(record.timestamp, int) or record.timestamp < 0:
            raise StreamsError(
                f"{self.member.name}: a record was forwarded with the timestamp {record.timestamp!r}; it has to be "
                "whole milliseconds since 1970, an int that is not negative."
            )

    def schedule(self, interval: int, kind: PunctuationType, punctuator: Punctuator) -> Schedule:
        """Have a function called whenever an interval has passed."""
        if interval < 1:
            raise StreamsError(f"{self.member.name}: a punctuation every {interval} ms is none; give 1 ms or more.")
        # By stream time it is due with the first record: schedules are counted from 1970.
        due = 0 if kind is PunctuationType.STREAM_TIME else self.wall_clock() + interval
        return self._group.schedules.add(Schedule(self.member.name, kind, interval, due, punctuator))

    def state_store(self, name: str) -> StateStore:
        """Return a store that this processor was given."""
        if name not in self.member.stores:
            names = ", ".join(self.member.stores) or "none"
            raise StreamsError(
                f"{self.member.name} has no store '{name}'; it has: {names}. Name it in stores=[...] of the step, or "
                "connect it with connect_processor_and_state_stores()."
            )
        return self._group.stores[name]

    def stream_time(self) -> int:
        """Return the latest time of the records of this task."""
        return self._group.task.stream_time

    def wall_clock(self) -> int:
        """Return the wall clock's time."""
        return self._group.task.now()

    def timestamp(self) -> int:
        """Return the time of the record in hand, or of the punctuation."""
        return self._group.now_at

    def metadata(self) -> RecordMetadata:
        """Return where the record in hand came from."""
        return RecordMetadata(*self._group.task.source[:3])
