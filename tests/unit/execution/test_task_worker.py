"""The Python end of a task: rows one by one or in packs, pages in between, failures, and one task after the other."""

import importlib
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZipFile

import pytest
from pyspark import SparkFiles, TaskContext
from pyspark.serializers import CPickleSerializer
from pyspark.sql import DataFrame, SparkSession

from streamskit import Serdes
from streamskit.execution import task_processor
from streamskit.execution.arrow_batches import table_of
from streamskit.execution.row_format import BATCH_END, NAMES, RESULTS, SEQUENCE, Row
from streamskit.execution.stage_rows import CHUNK, StageInputs
from streamskit.execution.task_processor import TaskProcessor
from streamskit.execution.task_worker import BATCH, INT, framed, main, read_row, write_row
from streamskit.jvm.python_task import run_by_batch, run_by_row
from streamskit.operators import AggregateOperator, Operator
from streamskit.planning.options import QueryOptions
from tests.unit.execution.packed_rows import pack, rows_of

LONG = Serdes.long()


class Java:
    """Plays the process at the other end: it sends rows, keeps pages, and notes what it is answered."""

    def __init__(self, infile: BinaryIO, outfile: BinaryIO) -> None:
        self.infile, self.outfile = infile, outfile
        self.pages: dict[str, bytes] = {}
        self.is_by_row = True
        self.files, self.includes = "/nowhere", list[str]()

    def begin(self, processor: Any, task: int, *, by_row: bool = True, batch: int = 0) -> list[Row]:
        """Send what is to be run."""
        packed: bytes = CPickleSerializer().dumps(processor)  # type: ignore[no-untyped-call]
        self.is_by_row = by_row
        files = framed(self.files.encode()) + INT.pack(len(self.includes))
        files += b"".join(framed(name.encode()) for name in self.includes)
        return self.say(files + framed(packed) + INT.pack(task) + BATCH.pack(batch, by_row, 3, 5, 0, 11))

    def give(self, *rows: Row) -> list[Row]:
        """Send a row, or a pack of them, and return the rows that come back."""
        return self.say(framed(write_row(rows[0]) if self.is_by_row else pack(rows)))

    def end(self) -> list[Row]:
        """Say that there are no more rows: the worker is free for another task."""
        return self.say(INT.pack(-1))

    def say(self, data: bytes) -> list[Row]:
        """Send something, and listen until the answer is complete."""
        self.outfile.write(data)
        self.outfile.flush()
        rows: list[Row] = []
        while (letter := self.infile.read(1)) != b"E":
            match letter:
                case b"R":
                    rows += [self._row()] if self.is_by_row else rows_of(table_of(self._bytes()), NAMES)
                case b"L":
                    self.outfile.write(framed(self.pages.get(self._text())))
                case b"A":
                    pages = self.pages.items()
                    self.outfile.write(b"".join(framed(name.encode()) + framed(data) for name, data in pages))
                    self.outfile.write(INT.pack(-1))
                case b"S":
                    page = self._text()
                    self.pages[page] = self._bytes()
                case b"D":
                    self.pages.pop(self._text())
                case b"F":
                    raise RuntimeError(self._text())
                case _:
                    raise EOFError("the worker has gone")
            self.outfile.flush()
        return rows

    def _row(self) -> Row:
        """Read a row field by field, as Java does: nothing says how long it is."""
        data = self.infile.read(4)
        for _ in range(6):
            data += self._part()
        data += self.infile.read(9)
        count = self.infile.read(4)
        data += count + b"".join(self._part() for _ in range(2 * max(0, INT.unpack(count)[0])))
        return read_row(data + self.infile.read(20))

    def _part(self) -> bytes:
        length = self.infile.read(4)
        return length + self.infile.read(max(0, INT.unpack(length)[0]))

    def _bytes(self) -> bytes:
        return self.infile.read(INT.unpack(self.infile.read(4))[0])

    def _text(self) -> str:
        return self._bytes().decode()


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> Iterator[Java]:
    """The other end of a worker, which runs as many tasks as it is given."""
    # The worker is a thread of this process: what it sets for a process of its own is to go with it.
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(TaskContext, "_taskContext", None)
    for name in ("_root_directory", "_is_running_on_worker"):
        monkeypatch.setattr(SparkFiles, name, getattr(SparkFiles, name))
    here, there = socket.socketpair()

    def work() -> None:
        try:
            while True:  # as Spark's daemon has a worker do
                main(there.makefile("rb"), there.makefile("wb"))
        except SystemExit:
            there.shutdown(socket.SHUT_RDWR)
            there.close()

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    with here:
        here.settimeout(30)
        yield Java(here.makefile("rb"), here.makefile("wb"))
        here.shutdown(socket.SHUT_RDWR)
    worker.join(30)
    assert not worker.is_alive(), "the worker has not ended 30 s after its socket was closed"


def stage(operator: Operator) -> TaskProcessor:
    inputs = StageInputs({0: (0, 0)}, single=True, tasks=(7,), topics=("in",))
    return TaskProcessor([operator], [0], inputs, QueryOptions())


def summing() -> TaskProcessor:
    return stage(reducer(lambda one, other: one + other))


def reducer(function: Callable[[int, int], int]) -> Operator:
    return AggregateOperator("sums", Serdes.string(), (LONG,), LONG, None, (lambda key, new, old: function(old, new),))


def row(position: int, value: int, key: bytes = b"k") -> Row:
    given = dict.fromkeys(NAMES) | {"port": 0, "key": key, "value": LONG.serialize(value), "timestamp": position}
    return tuple((given | {"task": 7, "origin": 1, "position": position, "step": 0}).values())


def ended() -> Row:
    given = dict.fromkeys(NAMES) | {"port": BATCH_END, "task": 7, "origin": -1, "position": 2**63 - 1, "step": 0}
    return tuple(given.values())


def sums(rows: list[Row]) -> list[int]:
    assert all(each[0] == RESULTS and each[NAMES.index("origin")] == SEQUENCE for each in rows)
    return [LONG.deserialize(each[NAMES.index("value")]) for each in rows]


def test_each_row_is_answered_before_the_next_one_comes_and_the_state_is_saved_at_the_end(java: Java) -> None:
    assert java.begin(summing(), 7) == []
    assert sums(java.give(row(0, 5))) == [5]
    assert sums(java.give(row(1, 6))) == [11]
    assert java.pages == {}
    assert [each[0] for each in java.give(ended())] == [BATCH_END]
    assert sums(java.give(row(2, 1))) == [12]  # another partition goes on
    saved = dict(java.pages)
    java.give(ended())
    assert java.pages.keys() == saved.keys()
    assert java.pages != saved
    assert java.end() == []
    assert java.begin(summing(), 7) == []  # the next batch, in the same process
    assert sums(java.give(row(3, 1))) == [13]


def test_a_micro_batch_comes_in_packs_and_its_state_is_saved_when_there_are_no_more(java: Java) -> None:
    assert java.begin(summing(), 7, by_row=False) == []
    assert java.give(row(0, 5), row(1, 6)) == []  # few results go out at the end
    assert java.give(row(2, 1)) == []
    assert java.pages == {}
    assert sums(java.end()) == [5, 11, 12]
    assert java.pages
    assert java.begin(summing(), 7, by_row=False) == []
    assert java.give(row(3, 1)) == []
    assert sums(java.end()) == [13]


def test_many_results_of_a_micro_batch_go_out_before_its_end(java: Java) -> None:
    java.begin(summing(), 7, by_row=False)
    assert sums(java.give(*(row(number, 1) for number in range(CHUNK + 5)))) == [*range(1, CHUNK + 1)]
    assert sums(java.give(row(CHUNK + 5, 1))) == []
    assert sums(java.end()) == [*range(CHUNK + 1, CHUNK + 7)]


def test_a_task_imports_from_the_files_that_spark_has_sent(java: Java, tmp_path: Path) -> None:
    with ZipFile(tmp_path / "sent.zip", "w") as sent:
        sent.writestr("sent_to_workers.py", "def added(one, other): return one + other + 100")
    java.files, java.includes = str(tmp_path), ["sent.zip"]

    def added(one: int, other: int) -> int:
        made: int = importlib.import_module("sent_to_workers").added(one, other)
        return made

    java.begin(stage(reducer(added)), 7)
    java.give(row(0, 5))
    assert sums(java.give(row(1, 6))) == [111]


@pytest.mark.spark
@pytest.mark.parametrize("run", [run_by_row, run_by_batch])
def test_what_cannot_be_pickled_is_told_when_the_query_is_made(
    spark: SparkSession, run: Callable[[DataFrame, Any], DataFrame]
) -> None:
    class Unwilling:
        def __reduce__(self) -> str:
            raise TypeError("not to be sent anywhere")

    with pytest.raises(Exception, match="not to be sent anywhere"):
        run(spark.range(1), Unwilling())


def test_a_function_is_told_of_the_task_of_spark_that_runs_it(java: Java) -> None:
    def told(one: int, other: int) -> int:
        context = TaskContext.get()
        assert context is not None
        assert context.getLocalProperty("streaming.sql.batchId") == "8"
        return 100 * context.stageId() + 10 * context.partitionId() + context.taskAttemptId() + context.attemptNumber()

    java.begin(stage(reducer(told)), 7, batch=8)
    java.give(row(0, 5))
    assert sums(java.give(row(1, 6))) == [361]


def test_a_table_of_many_pages_is_read_and_written(java: Java) -> None:
    java.begin(summing(), 7)
    keys = [f"key {number}".encode() for number in range(500)]
    for position, key in enumerate(keys):
        java.give(row(position, 1, key))
    java.give(ended())
    assert java.end() == []
    assert len(java.pages) > 10
    java.begin(summing(), 7)
    assert [sums(java.give(row(position, 1, key))) for position, key in enumerate(keys, 500)] == [[2]] * 500


def test_a_worker_lets_go_of_what_it_has_read_long_before_a_batch_ends(
    java: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_processor, "KEPT_BYTES", 50 * task_processor.ROW_BYTES)
    java.begin(summing(), 7)
    for position in range(100):
        assert sums(java.give(row(position, 1, b"hot"))) == [position + 1]
        java.give(row(position, 1, f"key {position}".encode()))
        assert bool(java.pages) is (2 * (position + 1) >= 50)
    java.give(ended())
    assert sums(java.give(row(100, 1, b"hot"))) == [101]


def test_a_failure_comes_as_a_traceback_and_ends_the_worker(java: Java) -> None:
    java.begin(stage(reducer(lambda one, other: one // 0)), 7)
    java.give(row(0, 5))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        java.give(row(1, 6))
    with pytest.raises((EOFError, OSError)):
        java.give(row(2, 6))


def test_a_function_that_ends_its_process_still_tells_java_of_it(java: Java) -> None:
    java.begin(stage(reducer(lambda one, other: sys.exit(one))), 7)
    java.give(row(0, 5))
    with pytest.raises(RuntimeError, match=r'sys\.exit\(one\)(?s:.*)SystemExit: 5\n(?s:.*)"operator": "sums"'):
        java.give(row(1, 6))


def test_the_end_of_an_iterator_is_told_with_its_line_and_its_operator(java: Java) -> None:
    java.begin(stage(reducer(lambda one, other: next(value for value in (one, other) if value > 9))), 7)
    java.give(row(0, 5))
    with pytest.raises(RuntimeError, match=r'value > 9(?s:.*)\nStopIteration\n(?s:.*)"operator": "sums"'):
        java.give(row(1, 6))


@pytest.mark.parametrize(
    "headers", [None, [], [("id", b"7"), ("empty", None), ("ä", b"")]], ids=["none", "empty", "some"]
)
def test_a_row_is_the_same_behind_the_socket(headers: list[tuple[str, bytes | None]] | None) -> None:
    given = None if headers is None else [{"key": name, "value": value} for name, value in headers]
    sent: Row = (3, "tópico", b"k", None, b"", b"o", None, -5, given, 0, -1, 2**40, 9)
    assert read_row(write_row(sent)) == sent
