"""A stage: the operators of one task, with their state, during one micro-batch."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from streamskit.api.error_handlers import LONGEST_MESSAGE, ErrorHandlerContext, Handlers, RawRecord, ask, fails, fitting
from streamskit.api.processor import PunctuationType
from streamskit.common.errors import StreamsError
from streamskit.operators.cache import RecordCache
from streamskit.operators.failure_attribution import attribute_failure
from streamskit.operators.pages import Memory, PagedTable, PageStore, Rows
from streamskit.operators.records import NOTE, NOWHERE, OperatorRecord, Output, SourceRecord, listed

Process = Callable[[int, OperatorRecord], None]
"""What an operator does with one record of one of its sides."""


Punctuate = Callable[[PunctuationType, int], None]
"""What an operator does when one of the clocks has moved to a time."""


class Forward(Protocol):
    """Passes a result on."""

    def __call__(
        self, key: bytes | None, value: bytes | None, timestamp: int, headers: Any,
        old: bytes | None = None, other: bytes | None = None, other_old: bytes | None = None,
    ) -> None: ...  # fmt: skip


class Saved(Protocol):
    """Something with state in memory that a stage has to save when it ends."""

    def save(self) -> None:
        """Save what has changed."""


class Operator(ABC):
    """What one step of a topology does in a task: a plain value that is sent to the workers.

    `name` is that of its node. A subclass is a frozen dataclass.
    """

    name: str

    @property
    def folds(self) -> bool:
        """Whether the record cache may fold its updates: those of a table, not the records of a stream."""
        return False

    def blamed(self, side: int) -> str:
        """Return the name of the node to blame when a record of a side fails."""
        return self.name

    @property
    def keeps_time(self) -> bool:
        """Whether it wants to hear of every record of the task, and of the wall clock."""
        return False

    @abstractmethod
    def open(self, task: "OperatorContext") -> Process:
        """Return the function that processes a record: `process(side, record)`."""


class OperatorContext:
    """What a stage gives to one operator: its state, the wall clock, and the ways out.

    `forward(key, value, timestamp, headers, old=, other=, other_old=)` passes a result on. `is_cached` says that a
    record cache folds the results.
    """

    def __init__(self, stage: "StreamTask", index: int, name: str, forward: Forward, is_cached: bool) -> None:
        self.name = name
        self.forward = forward
        self.is_cached = is_cached
        self.emit_interval = stage.emit_interval
        self.run = stage.run
        self._stage = stage
        self._index = index

    @property
    def memory(self) -> dict[str, Any]:
        """A few values that the operator remembers from one micro-batch to the next."""
        return self.memory_of(self.name)

    def memory_of(self, name: str) -> dict[str, Any]:
        """Return the values remembered under a name, such as that of a store."""
        return self._stage.memory.of(name)

    def drop(self) -> None:
        """Count the record as dropped. Mirrors the metric `dropped-records-total`."""
        dropped = self._stage.dropped
        dropped[self._index] = dropped.get(self._index, 0) + 1

    @property
    def stream_time(self) -> int:
        """The latest time of the task's records, in milliseconds; -1 before the first."""
        return self._stage.stream_time

    @property
    def source(self) -> SourceRecord:
        """The record of the task's topics that is in hand."""
        return self._stage.source

    @source.setter
    def source(self, source: SourceRecord) -> None:
        self._stage.source = source

    @property
    def fail(self) -> Callable[..., None]:
        """Lets the handler decide about a record that failed, as `StreamTask.fail`."""
        return self._stage.fail

    def keep_time(self, punctuate: Punctuate) -> None:
        """Have a function called whenever one of the clocks has moved."""
        self._stage.timekeepers.append(punctuate)

    def now(self) -> int:
        """Return the wall clock's time in milliseconds."""
        return self._stage.now()

    def table(self, name: str, clean: Callable[[Rows], None] | None = None) -> PagedTable:
        """Return the table with this name, which all operators of the stage share.

        Args:
            name: its name, unlike any other in the stage.
            clean: deletes the rows of a page that are too old, before it is saved.
        """
        tables = self._stage.tables
        if name not in tables:
            tables[name] = PagedTable(name, self._stage.pages, clean)
        return tables[name]

    def keep(self, thing: Saved) -> None:
        """Have something saved when the stage ends."""
        self._stage.kept.append(thing)

    @property
    def pages(self) -> PageStore:
        """Where the task's state lives, for things that are no tables."""
        return self._stage.pages


class StreamTask:
    """The operators of one task in one micro-batch: takes records in, gives outputs, and saves the state at the end.

    Args:
        operators: in the order in which their caches are flushed.
        pages: where the state lives.
        cache: whether the updates of one key are folded into one until the end.
        emit_interval: unmatched results of outer joins and results on close are looked for at most once per so many
            milliseconds of wall clock; 0 is always.
        wall_clock: the time in milliseconds; the machine's when not given.
        run: which start of the application this is; with another one processors begin anew.
        handlers: decide about records that fail.

    >>> task = StreamTask([CountOperator("counts")], pages)
    >>> task.process(0, 0, OperatorRecord(b"KO", b"75.2", None, None, 1000, None))
    >>> task.finish()
    >>> [(output.key, output.value) for output in task.take_outputs()]
    [(b'KO', b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01')]
    """

    def __init__(
        self, operators: Sequence[Operator], pages: PageStore, *,
        cache: bool = False, emit_interval: int = 0, wall_clock: int | None = None, run: str = "",
        handlers: Handlers | None = None,
    ) -> None:  # fmt: skip
        self.operators = operators
        self.pages = pages
        self.emit_interval = emit_interval
        self.wall_clock = wall_clock
        self.run = run
        self.outputs: list[Output] = []
        self.dropped: dict[int, int] = {}
        self.tables: dict[str, PagedTable] = {}
        self.kept: list[Saved] = []
        self.timekeepers: list[Punctuate] = []
        self.source = NOWHERE
        self.handlers = handlers or Handlers()
        self._cache = cache
        self._caches: dict[int, RecordCache] = {}
        self._memory: Memory | None = None
        self._processes: list[Process | None] = [None] * len(operators)

    @property
    def memory(self) -> Memory:
        """What the operators remember beside their tables; loaded when first asked for."""
        if self._memory is None:
            self._memory = Memory(self.pages)
        return self._memory

    def process(self, operator: int, side: int, record: OperatorRecord) -> None:
        """Give one record to one side of the operator with this index."""
        process = self._processes[operator] or self._open(operator)
        try:
            process(side, record)
        except Exception as failure:
            raw = RawRecord(self.source.topic, record.key, record.value, record.timestamp)
            self.fail(self.operators[operator].blamed(side), failure, raw, self.source, side=side)

    def fail(
        self, node: str, failure: Exception, record: Any, source: SourceRecord, *, side: int = 0, writing: bool = False
    ) -> None:
        """Let the handler decide about a record that a node failed on; raises the failure if that is what it decides.

        Args:
            node: the node's name.
            failure: what it raised.
            record: what it was given, None in a punctuation.
            source: the record of the task's topics that was in hand.
            side: of the operator that failed.
            writing: whether the record could not be written, rather than processed.
        """
        handler = self.handlers.production if writing else self.handlers.processing
        is_blamed = attribute_failure(failure, node, side)
        if fails(handler) or not is_blamed:
            raise failure
        headers = tuple((header["key"], header["value"]) for header in listed(source.headers))
        raw = headers, source.key, source.value
        try:
            response = ask(handler, ErrorHandlerContext(node, *source[:4], *raw), record, failure)
        except StreamsError as refusal:
            attribute_failure(refusal, node, side)
            raise
        if response.fails:
            raise failure
        text, time = f"{type(failure).__name__}: {failure}"[:LONGEST_MESSAGE], source.timestamp
        self.outputs.append(Output(NOTE, node.encode(), text.encode(), None, None, None, time, None))
        for each in response.dead_letters:
            letter = fitting(each, self.handlers.largest_record)
            headers_ = [{"key": name, "value": value} for name, value in letter.headers]
            time = source.timestamp if letter.timestamp is None else letter.timestamp
            topic = letter.topic.encode()
            self.outputs.append(Output(NOTE, letter.key, letter.value, None, topic, None, time, headers_))

    def now(self) -> int:
        """Return the wall clock's time in milliseconds."""
        return int(time.time() * 1000) if self.wall_clock is None else self.wall_clock

    @property
    def stream_time(self) -> int:
        """The latest time of the records that `begin` told of; -1 before the first."""
        return self.memory.of("task").get("stream time", -1)

    def open_timekeepers(self) -> None:
        """Open the operators that want to hear of every record, whether any is for them or not."""
        for index, operator in enumerate(self.operators):
            if operator.keeps_time and self._processes[index] is None:
                self._open(index)

    def begin(self, source: SourceRecord) -> None:
        """Say that what follows is made of another record of the task's topics."""
        self.source = source
        clock = self.memory.of("task")
        clock["stream time"] = max(clock.get("stream time", -1), source.timestamp)

    def advance_wall_clock(self, wall_clock: int) -> None:
        """Set the wall clock, in milliseconds."""
        self.wall_clock = wall_clock

    def punctuate(self, kind: PunctuationType, now: int) -> None:
        """Let the operators do what is due by a clock."""
        for timekeeper in self.timekeepers:
            timekeeper(kind, now)

    def take_outputs(self) -> list[Output]:
        """Return the outputs so far, and forget them."""
        taken = self.outputs[:]
        self.outputs.clear()
        return taken

    def finish(self) -> None:
        """Flush the cache into the outputs and save the state that has changed."""
        for _, cache in sorted(self._caches.items()):
            self.outputs.extend(cache.flush())
        for thing in (*self.kept, *self.tables.values()):
            thing.save()
        if self._memory is not None:
            self._memory.save()

    def _open(self, index: int) -> Process:
        operator = self.operators[index]
        is_cached = self._cache and operator.folds
        if is_cached:
            self._caches[index] = RecordCache()
        pass_on = self._caches[index].add if is_cached else self.outputs.append
        forward = _forward(index, pass_on)
        if self.handlers.ask_for_sources:
            forward = self._telling_source(forward)
        task = OperatorContext(self, index, operator.name, forward, is_cached)
        try:
            process = self._processes[index] = operator.open(task)
        except Exception as failure:
            attribute_failure(failure, operator.name)
            raise
        return process

    def _telling_source(self, forward: Forward) -> Forward:
        def telling(
            key: bytes | None, value: bytes | None, timestamp: int, headers: Any,
            old: bytes | None = None, other: bytes | None = None, other_old: bytes | None = None,
        ) -> None:  # fmt: skip
            forward(key, value, timestamp, self.source.before(headers), old, other, other_old)

        return telling


def _forward(index: int, pass_on: Callable[[Output], None]) -> Forward:
    # A tuple made directly costs half of what a call of Output costs, and every result goes through here.
    new = tuple.__new__

    def forward(
        key: bytes | None, value: bytes | None, timestamp: int, headers: Any,
        old: bytes | None = None, other: bytes | None = None, other_old: bytes | None = None,
    ) -> None:  # fmt: skip
        pass_on(new(Output, (index, key, value, old, other, other_old, timestamp, headers)))

    return forward
