"""The rows of a stage: those that come into the operators of one level, in order, and those that go out."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import pairwise
from operator import itemgetter

from streamskit.execution.arrow_batches import pack
from streamskit.execution.row_format import (
    BEGIN,
    CLOCK,
    DROPPED,
    FINISHED,
    KEY,
    NAMES,
    ORIGIN,
    OTHER,
    PORT,
    POSITION,
    RESULTS,
    SEQUENCE,
    STEP,
    TASK,
    TIMESTAMP,
    Row,
)
from streamskit.operators import ERROR_ROW, Output
from streamskit.operators.records import SourceRecord

CLOCK_ORIGIN = 0
"""The origin of the wall clock's rows, which are of no topic that a plan reads."""


@dataclass(frozen=True)
class StageInputs:
    """What a stage knows of the rows that come in.

    `ports` says which operator and side each port leads to; `single` that all rows have one origin, and `first` which
    origins come before others. The first stage of a query knows the `topics` by origin; every stage has the `tasks` by
    partition and the number of its `sub_topology`. `begins_apart` says that each record has a `BEGIN` row; otherwise
    its first row stands for that, too. `is_timed` says that an operator wants to hear of every record, and `tells` that
    one in a later stage does.
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
"""After how many results they are handed over to Spark."""

CHUNK_BYTES = 4 * 1024 * 1024
"""After how many bytes of results they are, so that large ones are never many in memory."""


class StageResults:
    """The rows that a stage hands over, numbered in order."""

    def __init__(self, task: int, numbers: Sequence[int]) -> None:
        self._task, self._numbers, self._count = task, numbers, 0
        self._rows: list[Row] = []
        self._cuts: list[int] = []
        self._bytes = 0

    @property
    def are_many(self) -> bool:
        """Whether the rows so far are to be handed over."""
        return bool(self._cuts)

    def take(self, outputs: Iterable[Output]) -> None:
        """Take the operators' results."""
        task, numbers, add = self._task, self._numbers, self._add
        for count, output in enumerate(outputs, self._count):
            operator = output[0]
            if operator == ERROR_ROW:
                values = list(output[1:])
                topic = None if values[OTHER - KEY] is None else values[OTHER - KEY].decode()
                values[OTHER - KEY] = None
                add((FINISHED, topic, *values, task, SEQUENCE, count, 0))
            else:
                add((RESULTS + numbers[operator], None, *output[1:], task, SEQUENCE, count, 0))
            self._count = count + 1

    def pass_on(self, row: Row) -> None:
        """Take a row that is for a later stage, or finished."""
        self._add((*row[:TASK], self._task, SEQUENCE, self._count, 0))
        self._count += 1

    def begin(self, source: SourceRecord) -> None:
        """Say to later stages where the rows that follow come from."""
        where = f"{source.partition} {source.offset}".encode()
        time, key, value, headers = source[3:]
        self.pass_on((BEGIN, source.topic, key, value, None, where, None, time, headers))

    def count_dropped(self, dropped: dict[int, int]) -> None:
        """Report how many records each operator dropped."""
        for operator, count in sorted(dropped.items()):
            empty = dict.fromkeys(NAMES) | {"port": DROPPED, "task": self._task, "step": 0}
            empty |= {"origin": self._numbers[operator], "position": count}
            self._add(tuple(empty.values()))

    def take_rows(self) -> list[Row]:
        """Return the rows so far, and begin anew."""
        rows, self._rows, self._cuts, self._bytes = self._rows, [], [], 0
        return rows

    def take_packed(self) -> Iterator[bytes]:
        """Yield the rows so far, packed, and none of the packs large; begin anew."""
        rows, cuts = self._rows, self._cuts
        self._rows, self._cuts, self._bytes = [], [], 0
        for begin, end in pairwise([0, *cuts, len(rows)]):
            if begin < end:
                yield pack(rows[begin:end])

    def _add(self, row: Row) -> None:
        """Add a row, and cut behind it where there are enough: what one record lets go has no limit."""
        rows = self._rows
        rows.append(row)
        for value in row[KEY:TIMESTAMP]:
            if value:
                self._bytes += len(value)
        begin = self._cuts[-1] if self._cuts else 0
        if self._bytes >= CHUNK_BYTES or len(rows) - begin == CHUNK:
            self._cuts.append(len(rows))
            self._bytes = 0


def in_order(batches: Iterable[list[Row]], inputs: StageInputs) -> Iterator[Row]:
    """Yield the rows of a task in the order in which Kafka Streams would take them.

    Rows of one topic stay in order of their offsets; between topics the one whose next record is the earliest goes on.
    Where there is but one topic, rows pass as they come, and a batch need not fit into memory.
    """
    if inputs.single:
        yield from _checked(batches)
        return
    topics: dict[int, list[Row]] = defaultdict(list)
    for batch in batches:
        for row in batch:
            topics[row[ORIGIN]].append(row)
    for rows in topics.values():
        rows.sort(key=itemgetter(POSITION, STEP))
    for origin in sorted(topics.keys() & {CLOCK_ORIGIN, *inputs.first}):
        yield from topics.pop(origin)
    yield from merge(*(topics[origin] for origin in sorted(topics)), key=itemgetter(TIMESTAMP))


def _checked(batches: Iterable[list[Row]]) -> Iterator[Row]:
    last = (-1, -1)
    for rows in batches:
        places = [last, *((row[POSITION], row[STEP]) for row in rows if row[PORT] != CLOCK)]
        if places != sorted(places):
            raise out_of_order()
        last = places[-1]
        yield from rows


def out_of_order() -> RuntimeError:
    """Return the error of records that Spark hands over in another order than that of their offsets."""
    return RuntimeError("Spark handed the records of a partition over in another order: give KafkaStreams a "
                        "smaller max_records_per_batch, so that a batch needs no sorting on disk.")  # fmt: skip
