"""Stream task: the operators of one task, with their state and their record caches, during one micro-batch."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from streamskit.api.error_handlers import Handlers
from streamskit.api.processor import PunctuationType, Punctuator, Record
from streamskit.operators.error_handling import attribute_failure, error_rows
from streamskit.operators.paged_state import Memory, PagedTable, PageStore, TimeOrderedMap
from streamskit.operators.punctuation import PunctuationQueue
from streamskit.operators.record_cache import CACHE_BYTES, CacheRoom, RecordCache
from streamskit.operators.records import (
    BEGIN_ROW,
    NO_SOURCE,
    SOURCE_ROW,
    OperatorRecord,
    Output,
    SourceRecord,
    header_pairs,
    source_output,
)
from streamskit.serdes import Serde

if TYPE_CHECKING:  # they take a while to import, and most operators do without them
    import numpy as np
    import pyarrow as pa

ProcessRecord = Callable[[int, OperatorRecord], None]
"""What an operator does with a record that arrives on one of its sides: `process(side, record)`."""

ProcessBatch = Callable[["np.ndarray", "pa.Table"], "tuple[np.ndarray, pa.Array]"]
"""What an operator does with many records in their order, all at once: `process(sides, records)`.

`sides` has the side of each, and `records` the columns key, value and other. It returns the numbers of those records
that have a result, which has their key, value, timestamp and headers, and what stands in `other` of each result.
"""

Punctuate = Callable[[Punctuator, int], None]
"""What calls a punctuation of a processor, at a time in milliseconds."""


Opened = TypeVar("Opened")


class Forward(Protocol):
    """Passes a result on."""

    def __call__(
        self, key: bytes | None, value: bytes | None, timestamp: int, headers: Any,
        old: bytes | None = None, other: bytes | None = None, other_old: bytes | None = None,
    ) -> None: ...  # fmt: skip


class Saved(Protocol):
    """Something with state in memory that a task has to save at the end of a micro-batch."""

    def save(self) -> None:
        """Save what has changed."""


class Operator(ABC):
    """Task operator: what one step of a topology does in a task, as a plain value that is sent to the workers.

    `name` is that of its node. A subclass is a frozen dataclass.
    Mirrors `org.apache.kafka.streams.processor.api.ProcessorSupplier`.
    """

    name: str

    @property
    def is_cacheable(self) -> bool:
        """Whether the record cache may merge its updates of a key: those of a table, not the records of a stream."""
        return False

    @property
    def punctuates(self) -> bool:
        """Whether it follows stream time and the wall clock, and so is opened for every record of the task."""
        return False

    def node_at(self, side: int) -> str:
        """Return the name of the node that records of a side are for, which errors name when one of them fails."""
        return self.name

    def serdes_at(self, side: int) -> tuple[Serde, Serde] | None:
        """Return the serdes of keys and values on a side, if known; otherwise a handler sees bytes."""
        return None

    @property
    def takes_batches(self) -> bool:
        """Whether `open_batch` returns a function that does for many records what the one of `open` does for each."""
        return False

    @abstractmethod
    def open(self, context: "OperatorContext") -> ProcessRecord:
        """Return the function that processes a record: `process(side, record)`.

        Mirrors `Processor#init`, and what is returned `Processor#process`.
        """

    def open_batch(self, context: "OperatorContext") -> ProcessBatch:
        """Return the function that processes many records, of an operator that `takes_batches`."""
        raise NotImplementedError(f"{self.name} takes one record at a time.")


class OperatorContext:
    """Operator context: what a task gives to one operator, which is its state, the clocks, and `forward`.

    `forward(key, value, timestamp, headers, old=, other=, other_old=)` passes a result on. `is_cached` says that the
    record cache merges the results; `has_cache` that the store has a cache, whether or not it merges the results.
    Mirrors `org.apache.kafka.streams.processor.api.ProcessorContext`.
    """

    def __init__(
        self, task: "StreamTask", index: int, name: str, forward: Forward, is_cached: bool, has_cache: bool = False
    ) -> None:
        self.task, self.name, self.forward = task, name, forward
        self.is_cached, self.has_cache = is_cached, has_cache or is_cached
        self._index = index

    @property
    def memory(self) -> dict[str, Any]:
        """A few values that the operator remembers from one micro-batch to the next."""
        return self.task.memory.of(self.name)

    def drop(self, count: int = 1) -> None:
        """Count the record, or `count` records, as dropped. Mirrors the metric `dropped-records-total`."""
        dropped = self.task.dropped
        dropped[self._index] = dropped.get(self._index, 0) + count

    def table(self, name: str, expire: Callable[[Any], None] | None = None) -> PagedTable:
        """Return the table with this name, which all operators of the task share.

        Args:
            name: its name, unlike any other in the task.
            expire: deletes what is too old from a row's value, as in `PagedTable`.
        """
        tables = self.task.tables
        if name not in tables:
            tables[name] = PagedTable(name, self.task.pages, expire, lambda: self.task.memory.of(f"{name}/pages"))
        return tables[name]

    def time_ordered_map(self, name: str, span: int) -> TimeOrderedMap:
        """Return a map of entries in order of time, which is saved with the task.

        Args:
            name: its name, unlike any other in the task.
            span: for how many milliseconds entries stay, about: they are spread over a few pages.
        """
        entries = TimeOrderedMap(name, self.task.pages, width=max(span // 4, 1000))
        self.task.saved.append(entries)
        return entries

    def may_emit(self) -> bool:
        """Return whether to look now for results that have become due; if so, the next look waits for the interval.

        Mirrors `TimeTracker` of `KStreamKStreamJoin` and of the windowed aggregations.
        """
        interval = self.task.emit_interval
        if interval == 0:
            return True
        now, memory = self.task.now(), self.memory
        if now < memory.get("next look", 0):
            return False
        memory["next look"] = now + interval
        return True


class StreamTask:
    """Stream task: takes records in, gives outputs, and saves the state at the end of the micro-batch.

    Mirrors `org.apache.kafka.streams.processor.internals.StreamTask`.

    Args:
        operators: in the order in which their caches are flushed.
        pages: where the state lives.
        cache: whether the updates of one key become one at the end.
        cache_bytes: how many bytes of updates the task's caches hold together; with more, the one that gets an update
            is flushed early.
        uncached: the names of operators that have no cache.
        looked_into: the names of operators whose updates are emitted twice where they have a cache: at once, as outputs
            of operator number index + `len(operators)`, for steps that look rows up; and merged, for all others.
        emit_interval: the minimum wall-clock time, in milliseconds, between two checks for unmatched results of outer
            joins and results on close; 0 checks always.
        wall_clock: the time in milliseconds; the machine's by default.
        run: identifies this start of the application; processors start afresh with each new one.
        task_id: as handlers see it: the numbers of sub-topology and partition.
        handlers: decide about records that fail.
        tells: whether a later stage has to know which record each output comes from.

    >>> task = StreamTask([CountOperator("counts")], pages)
    >>> task.process(0, 0, OperatorRecord(b"KO", b"75.2", None, None, 1000, None))
    >>> task.finish()
    >>> [(output.key, output.value) for output in task.take_outputs()]
    [(b'KO', b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01')]
    """

    def __init__(
        self, operators: Sequence[Operator], pages: PageStore, *,
        cache: bool = False, cache_bytes: int = CACHE_BYTES, uncached: frozenset[str] = frozenset(),
        looked_into: frozenset[str] = frozenset(), emit_interval: int = 0, wall_clock: int | None = None,
        run: str = "", task_id: str = "", handlers: Handlers | None = None, tells: bool = False,
    ) -> None:  # fmt: skip
        self.operators, self.pages = operators, pages
        self.emit_interval, self.wall_clock, self.run, self.task_id = emit_interval, wall_clock, run, task_id
        self.handlers = handlers or Handlers()
        self.source = NO_SOURCE
        self.decide_time: Callable[[int], None] = lambda timestamp: None
        self.outputs: list[Output] = []
        self.dropped: dict[int, int] = {}
        self.tables: dict[str, PagedTable] = {}
        self.saved: list[Saved] = []
        self.changelogs: list[Saved] = []
        self.punctuations = PunctuationQueue()
        self.punctuated: dict[str, Punctuate] = {}
        self._cache, self._uncached, self._looked_into, self._tells = cache, uncached, looked_into, tells
        self._room = CacheRoom(cache_bytes)
        self._caches: dict[int, RecordCache] = {}
        self._memory: Memory | None = None
        self._processes: list[ProcessRecord | None] = [None] * len(operators)
        self._batches: dict[int, ProcessBatch] = {}

    @property
    def memory(self) -> Memory:
        """What the operators remember besides their tables; loaded when first needed."""
        if self._memory is None:
            self._memory = Memory(self.pages)
        return self._memory

    def process(self, operator: int, side: int, record: OperatorRecord) -> None:
        """Give one record to one side of the operator with this index."""
        process = self._processes[operator] or self._open(operator)
        try:
            process(side, record)
        except BaseException as failure:
            failed = self.operators[operator]
            self.fail(failed.node_at(side), failure, lambda: _given_record(failed.serdes_at(side), record), side=side)

    def process_batch(self, operator: int, sides: "np.ndarray", records: "pa.Table") -> "tuple[np.ndarray, pa.Array]":
        """Give many records in their order, as `ProcessBatch` says, to the operator with this index."""
        process = self._batches.get(operator)
        if process is None:
            process = self._batches[operator] = self._opened(operator, self.operators[operator].open_batch)
        return process(sides, records)

    def fail(self, node: str, failure: BaseException, record: Any, *, side: int = 0, writing: bool = False) -> None:
        """Let the handler decide about a record that a node failed on; raises the failure if that is what it decides.

        Args:
            node: the node's name.
            failure: what it raised.
            record: what the node was given, or a function that returns that; None in a punctuation.
            side: of the operator that failed.
            writing: whether the record could not be written, rather than processed.
        """
        rows = error_rows(self.handlers, node, failure, record, self.source, self.task_id, side=side, writing=writing)
        self.outputs.extend(rows)

    def now(self) -> int:
        """Return the wall clock's time in milliseconds."""
        return int(time.time() * 1000) if self.wall_clock is None else self.wall_clock

    @property
    def stream_time(self) -> int:
        """Stream time: the latest timestamp of the records so far, in milliseconds; -1 before the first `begin`."""
        return self.memory.of("task").get("stream time", -1)

    def open_punctuating(self) -> None:
        """Open the operators that follow the clocks, whether or not any record is for them."""
        for index, operator in enumerate(self.operators):
            if operator.punctuates and self._processes[index] is None:
                self._open(index)

    def begin(self, source: SourceRecord) -> None:
        """Start on another record of the task's topics; it moves stream time."""
        self.source = source
        self.advance_stream_time(source.timestamp)
        if self._tells:
            self.outputs.append(source_output(BEGIN_ROW, source))

    def go_on_with(self, source: SourceRecord) -> None:
        """Go on with what was made from a record that has begun before, and was held back until now."""
        self.source = source
        if not self._tells:
            return
        if self.outputs and self.outputs[-1].operator == SOURCE_ROW:  # nothing was made from that one
            self.outputs.pop()
        self.outputs.append(source_output(SOURCE_ROW, source))

    @contextmanager
    def made_from(self, source: SourceRecord) -> Iterator[None]:
        """Have what is made meanwhile come from another record than the one in hand."""
        in_hand = self.source
        self.go_on_with(source)
        try:
            yield
        finally:
            self.go_on_with(in_hand)

    def advance_stream_time(self, timestamp: int) -> None:
        """Move stream time forward to a time in milliseconds, if it has not reached it yet."""
        clock = self.memory.of("task")
        clock["stream time"] = max(clock.get("stream time", -1), timestamp)

    def begin_when_timed(self, source: SourceRecord, begin: Callable[[SourceRecord], None]) -> None:
        """Start on a record whose time an operator decides: it calls `decide_time`, which then calls `begin`."""
        self.source = source
        self.decide_time = lambda timestamp: begin(source._replace(timestamp=timestamp))

    def advance_wall_clock(self, wall_clock: int) -> None:
        """Set the wall clock, in milliseconds."""
        self.wall_clock = wall_clock

    def punctuate(self, kind: PunctuationType, now: int) -> None:
        """Call what is due by a clock, whoever scheduled it, the earliest due first.

        Mirrors `StreamTask#maybePunctuateStreamTime` and its like.
        """
        if now >= self.punctuations.next_due[kind]:
            for schedule in self.punctuations.take_due(kind, now):
                self.punctuated[schedule.processor](schedule.punctuator, now)

    def take_outputs(self) -> list[Output]:
        """Return the outputs so far, and forget them."""
        outputs = self.outputs[:]
        self.outputs.clear()
        return outputs

    def finish(self) -> None:
        """Flush the caches into the outputs and save the state that has changed."""
        self.flush()
        for state in self.saved:  # a processor may still change its stores while it is closed
            state.save()
        self.write_changelogs()
        for table in self.tables.values():
            table.save()
        if self._memory is not None:
            self._memory.save()

    def flush(self) -> None:
        """Pass on the updates of tables that are cached."""
        for _, cache in sorted(self._caches.items()):
            self._pass_on(cache.flush())

    def write_changelogs(self) -> None:
        """Pass on the updates of processors' stores that were held back until now: the last one of each key."""
        for changelog in self.changelogs:
            changelog.save()

    def _pass_on(self, updates: list[Output]) -> None:
        """Pass on what a cache has held back, and go on with the record in hand."""
        self.outputs.extend(updates)
        if updates:
            self.go_on_with(self.source)

    def _open(self, index: int) -> ProcessRecord:
        process = self._processes[index] = self._opened(index, self.operators[index].open)
        return process

    def _opened(self, index: int, opening: Callable[[OperatorContext], Opened]) -> Opened:
        operator = self.operators[index]
        has_cache = self._cache and operator.name not in self._uncached
        is_cached = has_cache and operator.is_cacheable
        if is_cached:
            source = (lambda: self.source) if self._tells else None
            self._caches[index] = RecordCache(self._room, self._pass_on, source)
        add = self._caches[index].add if is_cached else self.outputs.append
        if is_cached and operator.name in self._looked_into:
            add = self._also_at_once(add)
        if self.handlers.ask_for_sources:
            add = self._with_source(add)
        context = OperatorContext(self, index, operator.name, _forward(index, add), is_cached, has_cache)
        try:
            return opening(context)
        except BaseException as failure:
            attribute_failure(failure, operator.name)
            raise

    def _also_at_once(self, add: Callable[[Output], None]) -> Callable[[Output], None]:
        def add_twice(output: Output) -> None:
            self.outputs.append(output._replace(operator=output.operator + len(self.operators)))
            add(output)

        return add_twice

    def _with_source(self, add: Callable[[Output], None]) -> Callable[[Output], None]:
        return lambda output: add(output._replace(headers=self.source.prepended_to(output.headers)))


def _given_record(serdes: tuple[Serde, Serde] | None, record: OperatorRecord) -> Record:
    """Return what an operator was given as its handler sees it: as plain values, where the serdes are known."""
    key: Any = record.key
    value: Any = record.value
    if serdes is not None:
        with suppress(ValueError):  # what cannot be read stays bytes
            key, value = serdes[0].deserialize(key), serdes[1].deserialize(value)
    return Record(key, value, record.timestamp, header_pairs(record.headers))


_new = tuple.__new__
"""Makes an `Output` from a tuple, at half the cost of calling Output."""


def _forward(index: int, add: Callable[[Output], None]) -> Forward:
    # Every result goes through here.
    new = _new

    def forward(
        key: bytes | None, value: bytes | None, timestamp: int, headers: Any,
        old: bytes | None = None, other: bytes | None = None, other_old: bytes | None = None,
    ) -> None:  # fmt: skip
        add(new(Output, (index, key, value, old, other, other_old, timestamp, headers)))

    return forward
