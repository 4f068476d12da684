"""A stage of a query: the task operators of one level, run by Spark's `transformWithState`, once for each task."""

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING

from streamskit.execution.arrow_batches import columns_of, table_of
from streamskit.execution.row_format import (
    BATCH_END,
    BEGIN,
    CLOCK,
    HEADERS,
    KEY,
    NAMES,
    OLD,
    OTHER,
    PORT,
    SOURCE,
    TIMESTAMP,
    VALUE,
    Row,
)
from streamskit.execution.stage_rows import CHUNK, OUTPUTS, StageInputs, StageResults, in_order
from streamskit.execution.task_clock import TaskClock
from streamskit.execution.whole_batches import WholeBatches
from streamskit.operators import Operator, OperatorRecord, StreamTask
from streamskit.operators.paged_state import PageStore
from streamskit.planning.options import QueryOptions
from streamskit.planning.plan import FLUSH_KEY

if TYPE_CHECKING:  # it takes a while to import, and every module with a stage imports this one
    import pyarrow as pa

KEPT_BYTES = 32 * 1024 * 1024
"""After so many bytes of rows in real-time mode the pages of a task's state are saved, and read again when needed."""

ROW_BYTES = 300
"""How many bytes a row takes beside its value, about, with what it has read."""

OPERATOR_RECORD = KEY, VALUE, OLD, OTHER, TIMESTAMP, HEADERS
"""Where a row has the fields of an `OperatorRecord`."""

RECORD_NAMES = [NAMES[part] for part in OPERATOR_RECORD]
"""The columns that have them."""


class TaskProcessor:
    """Runs the operators of a stage on the records of one task.

    Args:
        operators: what the stage runs.
        numbers: the number of each in the plan, followed by those for cached updates that are also emitted at once.
        inputs: what it has to know of the rows that come in.
        options: how the query runs.
        runs: the numbers of the micro-batches with which the query's runs began. A repeated batch belongs to the run
            that began it: processors continue with the fields and punctuations they had when it first ran.
        uncached: the names of operators whose stores are kept without the record cache.
        looked_into: the names of operators whose updates are also emitted at once.

    `task_worker` runs it, in a Python process. Mirrors `org.apache.kafka.streams.processor.internals.StreamTask`.
    """

    def __init__(
        self,
        operators: Sequence[Operator],
        numbers: Sequence[int],
        inputs: StageInputs,
        options: QueryOptions,
        runs: Sequence[int] = (0,),
        uncached: frozenset[str] = frozenset(),
        looked_into: frozenset[str] = frozenset(),
    ) -> None:
        self._operators, self._numbers, self._inputs = operators, numbers, inputs
        self._options, self._runs, self._uncached = options, runs, uncached
        self._looked_into = looked_into

    @property
    def operators(self) -> Sequence[Operator]:
        """What the stage runs."""
        return self._operators

    def process(self, pages: PageStore, task: int, batch: int, packs: Iterator[bytes]) -> Iterator[bytes]:
        """Process a task's records of a micro-batch in order, and yield what the operators make of them, packed.

        Args:
            pages: where the pages of its state live.
            task: its number.
            batch: the number of the micro-batch.
            packs: the rows, as `arrow_batches.pack_columns` packs them.
        """
        made = StageResults(task, self._numbers)
        stage, timing = self._opened(pages, task, batch)
        if self._takes_batches:
            yield from self._in_batches(stage, task, packs)
        else:
            yield from self._row_by_row(pages, stage, made, timing, packs)
        self._finish(stage, made)
        yield from made.take_packed()

    def process_one_by_one(
        self, pages: PageStore, task: int, batch: int, rows: Iterator[Row]
    ) -> Iterator[Sequence[Row]]:
        """Process a task's records as they come, and yield what the operators make of each row.

        Args:
            pages: where the pages of its state live.
            task: its number.
            batch: the number of the batch.
            rows: with the values of `row_format.NAMES`. The state is saved at each row that says that the batch has
                ended for a partition, as the last row does.

        What is emitted before the first row is yielded first.
        """
        made = StageResults(task, self._numbers)
        stage, timing = self._opened(pages, task, batch)
        made.take(stage.take_outputs())
        yield made.take_rows()
        taken = 0
        for row in rows:
            is_end = row[PORT] == BATCH_END
            self._keep_clock(pages, row)
            if not is_end:
                self._process_row(row, stage, made, timing)
                stage.write_changelogs()
                made.take(stage.take_outputs())
                if self._options.driver:
                    made.count_dropped(stage.dropped)
                    stage.dropped.clear()
                taken += ROW_BYTES + len(row[VALUE] or b"")
            # Pages that were read stay in memory, and a batch may last for hours. Between the rows of one record the
            # clocks would forget which one it is.
            is_full = taken > KEPT_BYTES and (timing is None or row[PORT] == CLOCK)
            if is_end or is_full:
                self._finish(stage, made)
            if is_end:
                made.pass_on(row)
            if is_full:
                (stage, timing), taken = self._opened(pages, task, batch), 0
            yield made.take_rows()

    def _opened(self, pages: PageStore, task: int, batch: int) -> tuple[StreamTask, TaskClock | None]:
        stage = self._stage(pages, task, batch)
        return stage, TaskClock(stage, self._inputs, task) if self._inputs.is_timed else None

    def _finish(self, stage: StreamTask, made: StageResults) -> None:
        """Save the state, and take the last results and what was dropped."""
        stage.finish()
        made.take(stage.take_outputs())
        made.count_dropped(stage.dropped)
        stage.dropped.clear()

    @property
    def _takes_batches(self) -> bool:
        """Whether all that is to be done can be done to whole Arrow batches."""
        options = self._options
        row_by_row = options.test or self._inputs.is_timed or options.handlers.ask_for_sources
        return not row_by_row and all(operator.takes_batches for operator in self._operators)

    def _in_batches(self, stage: StreamTask, task: int, packs: Iterator[bytes]) -> Iterator[bytes]:
        batches = WholeBatches(stage, self._inputs, self._numbers, task, CHUNK)
        for table in in_order(map(table_of, packs), self._inputs):
            yield from batches.process(table)

    def _row_by_row(
        self, pages: PageStore, stage: StreamTask, made: StageResults, timing: TaskClock | None, packs: Iterator[bytes]
    ) -> Iterator[bytes]:
        # With nothing to do but the operators' own work, a record takes the shortest path.
        ports = self._inputs.ports if timing is None and not self._options.test else {}
        process, outputs = stage.process, stage.outputs
        for table in self._slices_of(packs):
            [numbers] = columns_of(table, [NAMES[PORT]])
            all_given = ports.keys() >= set(numbers)  # other rows are needed in full
            names = RECORD_NAMES if all_given else NAMES
            columns = dict(zip(names, columns_of(table, names), strict=True))
            parts = zip(*(columns[name] for name in RECORD_NAMES), strict=True)
            records = map(tuple.__new__, repeat(OperatorRecord), parts)
            rows = repeat(None) if all_given else zip(*columns.values(), strict=True)
            for port, record, row in zip(numbers, records, rows, strict=False):
                if row is None or port in ports:
                    process(*ports[port], record)
                else:
                    self._keep_clock(pages, row)
                    self._process_row(row, stage, made, timing)
                if len(outputs) >= OUTPUTS:
                    made.take(stage.take_outputs())
                if made.are_many:
                    yield from made.take_packed()
        if timing is not None:
            timing.end()

    def _slices_of(self, packs: Iterator[bytes]) -> "Iterator[pa.Table]":
        """Yield the rows of packs in order, in slices, so that only a few at a time become Python values."""
        for table in in_order(map(table_of, packs), self._inputs):
            for start in range(0, len(table), CHUNK):
                yield table.slice(start, CHUNK)

    def _keep_clock(self, pages: PageStore, row: Row) -> None:
        """Save the wall clock of a test driver, which is moved by hand."""
        if row[PORT] == CLOCK and self._options.test and row[KEY] is None:
            pages.save("wall clock", str(row[TIMESTAMP]).encode())

    def _process_row(self, row: Row, stage: StreamTask, made: StageResults, timing: TaskClock | None) -> None:
        port = row[PORT]
        if timing is not None:
            timing.see(row)
        if port in self._inputs.ports:
            operator, side = self._inputs.ports[port]
            stage.process(operator, side, OperatorRecord(*(row[part] for part in OPERATOR_RECORD)))
        elif port == CLOCK and self._options.test:
            if row[KEY] is None:
                stage.advance_wall_clock(row[TIMESTAMP])
            elif row[KEY] == FLUSH_KEY:
                stage.flush()
            made.take(stage.take_outputs())
            made.pass_on(row)
        elif port not in (BEGIN, SOURCE):
            # In the middle of the results, so that a task's rows keep their order.
            made.take(stage.take_outputs())
            made.pass_on(row)

    def _stage(self, pages: PageStore, task: int, batch: int) -> StreamTask:
        options, inputs = self._options, self._inputs
        wall_clock = int(pages.load("wall clock") or b"0") if options.test else None
        return StreamTask(
            self._operators, pages, cache=options.cache, uncached=self._uncached,
            looked_into=self._looked_into,
            cache_bytes=options.cache_bytes // max(1, len(inputs.tasks)),
            emit_interval=options.emit_interval, wall_clock=wall_clock, run=self._run(batch),
            task_id=f"{inputs.sub_topology}_{inputs.tasks.index(task)}", handlers=options.handlers,
            tells=inputs.tells,
        )  # fmt: skip

    def _run(self, batch: int) -> str:
        """Return the name of the run that a micro-batch belongs to."""
        return str(max((first for first in self._runs if first <= batch), default=self._runs[-1]))
