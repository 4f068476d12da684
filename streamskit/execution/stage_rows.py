"""The rows of a stage: the inputs of the operators of one level, in order, and their outputs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any

from streamskit.execution.arrow_batches import pack_columns
from streamskit.execution.row_format import (
    BEGIN,
    CLOCK,
    DROPPED,
    FINISHED,
    KEY,
    NAMES,
    OTHER,
    PORT,
    RESULTS,
    SEQUENCE,
    SOURCE,
    TASK,
    TIMESTAMP,
    Row,
)
from streamskit.operators import ERROR_ROW, Output
from streamskit.operators.records import BEGIN_ROW, SOURCE_ROW

if TYPE_CHECKING:  # it takes a while to import, and every module with a stage imports this one
    import pyarrow as pa

CLOCK_ORIGIN = 0
"""The origin of the wall clock's rows, which are of no topic that a plan reads."""


@dataclass(frozen=True)
class StageInputs:
    """What a stage knows about the rows that come in.

    `ports` says which operator and side each port leads to; `single` that all rows have one origin, and `first` which
    origins come before others. The first stage of a query knows the `topics` by origin; every stage has the `tasks` by
    partition and the number of its `sub_topology`. `begins_apart` says that each record has a `BEGIN` row; otherwise
    its first row serves as that. `is_timed` says that an operator of this stage or a later one has to see every record,
    and `tells` that one of a later stage does.
    """

    ports: dict[int, tuple[int, int]]
    single: bool
    first: frozenset[int] = frozenset()
    topics: tuple[str, ...] = ()
    tasks: tuple[int, ...] = ()
    sub_topology: int = 0
    begins_apart: bool = False
    is_timed: bool = False
    tells: bool = False


CHUNK = 10_000
"""The number of results after which they are handed over to Spark."""

CHUNK_BYTES = 4 * 1024 * 1024
"""The same in bytes, so that there are never many large results in memory."""


OUTPUTS = 20
"""How many outputs of a task are taken at once: enough for few calls, but never many large ones in memory."""


NO_RESULTS = {ERROR_ROW: FINISHED, BEGIN_ROW: BEGIN, SOURCE_ROW: SOURCE}
"""The ports of outputs that are not an operator's results."""


class StageResults:
    """The rows that a stage hands over, numbered in order, by column."""

    def __init__(self, task: int, numbers: Sequence[int]) -> None:
        self._task, self._numbers, self._count = task, numbers, 0
        self._ports = [RESULTS + number for number in numbers]
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._columns: list[list[Any]] = [[] for _ in NAMES]
        self._cuts: list[int] = []
        self._bytes = 0

    @property
    def are_many(self) -> bool:
        """Whether the rows so far are to be handed over."""
        return bool(self._cuts)

    def take(self, outputs: Sequence[Output]) -> None:
        """Take the operators' results."""
        for start in range(0, len(outputs), OUTPUTS):
            some = outputs[start : start + OUTPUTS]
            operators, *parts, times, headers = zip(*some, strict=True)
            size = sum(sum(map(len, filter(None, values))) for values in parts)
            if min(operators) < 0 or self._bytes + size >= CHUNK_BYTES:
                for output in some:
                    self._take_one(output)
            else:
                begin, self._count = self._count, self._count + len(some)
                none, sequence, zero = (repeat(each, len(some)) for each in (None, SEQUENCE, 0))
                places = repeat(self._task, len(some)), sequence, range(begin, self._count), zero
                made = (map(self._ports.__getitem__, operators), none, *parts, times, headers, *places)
                for column, values in zip(self._columns, made, strict=True):
                    column.extend(values)
                self._cut_behind(size)

    def _take_one(self, output: Output) -> None:
        operator, *values = output
        topic = None
        if operator >= 0:
            port = self._ports[operator]
        else:
            port, name = NO_RESULTS[operator], output.other
            values[OTHER - KEY], topic = None, None if name is None else name.decode()
        self.pass_on((port, topic, *values))

    def pass_on(self, row: Row) -> None:
        """Take a row that is for a later stage, or finished."""
        self._add((*row[:TASK], self._task, SEQUENCE, self._count, 0))
        self._count += 1

    def count_dropped(self, dropped: dict[int, int]) -> None:
        """Report how many records each operator dropped."""
        for operator, count in sorted(dropped.items()):
            empty = dict.fromkeys(NAMES) | {"port": DROPPED, "task": self._task, "step": 0}
            empty |= {"origin": self._numbers[operator], "position": count}
            self._add(tuple(empty.values()))

    def take_rows(self) -> list[Row]:
        """Return the rows so far, and start over."""
        columns = self._columns
        self._begin_anew()
        return list(zip(*columns, strict=True))

    def take_packed(self) -> Iterator[bytes]:
        """Yield the rows so far in packs of limited size, and start over."""
        columns, cuts = self._columns, self._cuts
        self._begin_anew()
        for begin, end in pairwise([0, *cuts, len(columns[PORT])]):
            if begin < end:
                yield pack_columns([values[begin:end] for values in columns])

    def _add(self, row: Row) -> None:
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)
        self._cut_behind(sum(map(len, filter(None, row[KEY:TIMESTAMP]))))

    def _cut_behind(self, size: int) -> None:
        """Cut after rows of `size` bytes if there are enough: there is no limit to what one record may emit."""
        self._bytes += size
        count = len(self._columns[PORT])
        begin = self._cuts[-1] if self._cuts else 0
        if self._bytes >= CHUNK_BYTES or count - begin >= CHUNK:
            self._cuts.append(count)
            self._bytes = 0


def in_order(tables: "Iterable[pa.Table]", inputs: StageInputs) -> "Iterator[pa.Table]":
    """Yield the rows of a task in the order in which Kafka Streams would take them.

    Rows of one topic stay in the order of their offsets; between topics, the one with the earliest next record goes
    first: a row is taken when the latest time in its topic so far is due, so the rows are sorted by that time. Where
    there is only one topic, rows pass in the order they come, and a batch need not fit into memory.

    Args:
        tables: with the columns of `row_format.SCHEMA`, as those that are yielded.
        inputs: what the stage knows of them.
    """
    import numpy as np
    import pyarrow as pa

    if inputs.single:
        yield from _checked(tables)
        return
    if not (whole := list(tables)):
        return
    rows = pa.concat_tables(whole).combine_chunks()
    earliest = np.iinfo(np.int64).min
    origin, position, step = (rows.column(name).to_numpy() for name in ("origin", "position", "step"))
    placed = np.lexsort((step, position, origin))
    time, origin = rows.column("timestamp").fill_null(earliest).to_numpy()[placed], origin[placed]
    for topic in np.unique(origin):
        mine = origin == topic
        comes_first = topic == CLOCK_ORIGIN or topic in inputs.first
        time[mine] = earliest if comes_first else np.maximum.accumulate(time[mine])
    yield rows.take(pa.array(placed[np.argsort(time, kind="stable")]))


def _checked(tables: "Iterable[pa.Table]") -> "Iterator[pa.Table]":
    last = (-1, -1)
    for table in tables:
        ports, position, step = (table.column(name).to_numpy() for name in ("port", "position", "step"))
        is_placed = ports != CLOCK
        position, step = position[is_placed], step[is_placed]
        if len(position):
            falls = (position[1:] < position[:-1]) | ((position[1:] == position[:-1]) & (step[1:] < step[:-1]))
            if falls.any() or (position[0], step[0]) < last:
                raise out_of_order()
            last = (position[-1], step[-1])
        yield table


def out_of_order() -> RuntimeError:
    """Return the error for records that Spark hands over in an order other than that of their offsets."""
    return RuntimeError("Spark handed the records of a partition over in another order: give KafkaStreams a "
                        "smaller max_records_per_batch, so that a batch needs no sorting on disk.")  # fmt: skip
