"""A stage: the operators of one task, with their state, during one micro-batch."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from streamskit.tasks.blame import blame
from streamskit.tasks.cache import RecordCache
from streamskit.tasks.pages import Memory, PageStore, Rows, Table
from streamskit.tasks.records import Output, Record

Process = Callable[[int, Record], None]
"""What an operator does with one record of one of its sides."""


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

    @abstractmethod
    def open(self, task: "Task") -> Process:
        """Return the function that processes a record: `process(side, record)`."""


class Task:
    """What a stage gives to one operator: its state, the wall clock, and the ways out.

    `forward(key, value, timestamp, headers, old=, other=, other_old=)` passes a result on. `is_cached` says that a
    record cache folds the results.
    """

    def __init__(self, stage: "Stage", index: int, name: str, forward: Forward, is_cached: bool) -> None:
        self.name = name
        self.forward = forward
        self.is_cached = is_cached
        self.emit_interval = stage.emit_interval
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

    def now(self) -> int:
        """Return the wall clock's time in milliseconds."""
        clock = self._stage.wall_clock
        return int(time.time() * 1000) if clock is None else clock

    def table(self, name: str, clean: Callable[[Rows], None] | None = None) -> Table:
        """Return the table with this name, which all operators of the stage share.

        Args:
            name: its name, unlike any other in the stage.
            clean: deletes the rows of a page that are too old, before it is saved.
        """
        tables = self._stage.tables
        if name not in tables:
            tables[name] = Table(name, self._stage.pages, clean)
        return tables[name]

    def keep(self, thing: Saved) -> None:
        """Have something saved when the stage ends."""
        self._stage.kept.append(thing)

    @property
    def pages(self) -> PageStore:
        """Where the task's state lives, for things that are no tables."""
        return self._stage.pages


class Stage:
    """The operators of one task in one micro-batch: takes records in, gives outputs, and saves the state at the end.

    Args:
        operators: in the order in which their caches are flushed.
        pages: where the state lives.
        cache: whether the updates of one key are folded into one until the end.
        emit_interval: unmatched results of outer joins and results on close are looked for at most once per so many
            milliseconds of wall clock; 0 is always.
        wall_clock: the time in milliseconds; the machine's when not given.

    >>> stage = Stage([CountFold("counts")], pages)
    >>> stage.process(0, 0, Record(b"KO", b"75.2", None, None, 1000, None))
    >>> stage.finish()
    """

    def __init__(
        self, operators: Sequence[Operator], pages: PageStore, *,
        cache: bool = False, emit_interval: int = 0, wall_clock: int | None = None,
    ) -> None:  # fmt: skip
        self.operators = operators
        self.pages = pages
        self.emit_interval = emit_interval
        self.wall_clock = wall_clock
        self.outputs: list[Output] = []
        self.dropped: dict[int, int] = {}
        self.tables: dict[str, Table] = {}
        self.kept: list[Saved] = []
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

    def process(self, operator: int, side: int, record: Record) -> None:
        """Give one record to one side of the operator with this index."""
        try:
            (self._processes[operator] or self._open(operator))(side, record)
        except Exception as failure:
            blame(failure, self.operators[operator].name, side)
            raise

    def advance_wall_clock(self, wall_clock: int) -> None:
        """Set the wall clock, in milliseconds."""
        self.wall_clock = wall_clock

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
        task = Task(self, index, operator.name, _forward(index, pass_on), is_cached)
        process = self._processes[index] = operator.open(task)
        return process


def _forward(index: int, pass_on: Callable[[Output], None]) -> Forward:
    # A tuple made directly costs half of what a call of Output costs, and every result goes through here.
    new = tuple.__new__

    def forward(
        key: bytes | None, value: bytes | None, timestamp: int, headers: Any,
        old: bytes | None = None, other: bytes | None = None, other_old: bytes | None = None,
    ) -> None:  # fmt: skip
        pass_on(new(Output, (index, key, value, old, other, other_old, timestamp, headers)))

    return forward
