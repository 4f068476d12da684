"""A Python worker: it runs the operators of a task, on the rows that Spark's Java gives it.

`streamskit/jvm/PythonTask.scala` is at the other end of the socket. First it sends where to import from, what is to be
run, the task's number, that of the batch, whether rows come one by one, and Spark's task; then the rows, one or a pack
of them at a time, each preceded by its length. The worker sends its results whenever it wants the next rows. In
between it requests its pages. A letter says what follows. Finally -1 arrives, and the worker is free for another
task.
"""

import struct
import traceback
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from pyspark import TaskContext
from pyspark.serializers import CPickleSerializer
from pyspark.worker_util import setup_spark_files

from streamskit.execution.row_format import Row

RESULT, LOAD, LOAD_ALL, SAVE, DELETE, END, FAILURE = b"R", b"L", b"A", b"S", b"D", b"E", b"F"
"""What a worker sends: a result follows; send a page, or all; save this page; delete that one; the end; a failure."""

INT = struct.Struct(">i")
BATCH = struct.Struct(">q?iiiq")
"""The number of the batch, whether rows come one by one, and Spark's stage, partition, attempt and id of its task."""
PLACE = struct.Struct(">iiqi")
"""Task, origin, position and step of a row."""
TIME = struct.Struct(">?q")
"""Whether there is a timestamp, and which."""


def main(infile: BinaryIO, outfile: BinaryIO) -> None:
    """Run a task to the end of its batch.

    Args:
        infile: what the Java process sends.
        outfile: what is sent to it.
    """
    line = Line(infile, outfile)
    try:
        for result in _results(line):
            line.write(RESULT, result)
        line.answer()
    except EOFError:  # Java has ended the task, or itself: nothing would receive the reason
        raise SystemExit(1) from None
    except BaseException as failure:  # also sys.exit(): the worker has to say that it ends, as Java waits for an answer
        line.write(FAILURE, framed(_told(failure).encode(errors="backslashreplace")))
        outfile.flush()
        raise SystemExit(1) from None


def _told(failure: BaseException) -> str:
    """Return a failure with its traceback."""
    # Python replaces a StopIteration that leaves a generator, and with it the note that says where it was raised.
    is_replaced = str(failure) == "generator raised StopIteration" and failure.__cause__ is not None
    return "".join(traceback.format_exception(failure.__cause__ if is_replaced else failure))


def _results(line: "Line") -> Iterator[bytes]:
    """Yield the results of a task, in the form in which they are sent."""
    files = line.read_text()
    setup_spark_files(files, [line.read_text() for _ in range(line.read_int())])
    command, task = line.read_bytes(), line.read_int()
    batch, is_by_row, *spark_task = line.read_struct(BATCH)
    _tell_of_spark(batch, *spark_task)
    # What is unpickled here was pickled by the application that started this process.
    processor = CPickleSerializer().loads(command)  # type: ignore[no-untyped-call]
    if is_by_row:
        for rows in processor.process_one_by_one(line, task, batch, map(read_row, line.inputs())):
            yield from map(write_row, rows)
    else:
        yield from map(framed, processor.process(line, task, batch, line.inputs()))


def _tell_of_spark(batch: int, stage: int, partition: int, attempt: int, task: int) -> None:
    """Have `TaskContext.get()` return what it does in any Python function that Spark runs."""
    context: Any = TaskContext._getOrCreate()
    context._stageId, context._partitionId = stage, partition
    context._attemptNumber, context._taskAttemptId = attempt, task
    context._localProperties = {"streaming.sql.batchId": str(batch)}
    context._resources = {}


class Line:
    """A worker's socket: what it reads and writes there, including its pages in Spark's state store.

    Args:
        infile: to read from.
        outfile: to write to.
    """

    def __init__(self, infile: BinaryIO, outfile: BinaryIO) -> None:
        self._in, self._out = infile, outfile

    def inputs(self) -> Iterator[bytes]:
        """Yield what comes in, until there is no more; requesting an item means that the previous one is answered."""
        self.answer()
        while (data := self.read_bytes()) is not None:
            yield data
            self.answer()

    def read_int(self) -> int:
        """Return the number that comes next."""
        number: int = self.read_struct(INT)[0]
        return number

    def read_struct(self, kind: struct.Struct) -> tuple[Any, ...]:
        """Return the values that come next."""
        return kind.unpack(self._read(kind.size))

    def read_text(self) -> str:
        """Return the text that comes next."""
        return (self.read_bytes() or b"").decode()

    def read_bytes(self) -> bytes | None:
        """Return the bytes that come next, or None."""
        length = self.read_int()
        return None if length < 0 else self._read(length)

    def _read(self, length: int) -> bytes:
        data = self._in.read(length)
        if len(data) < length:
            raise EOFError
        return data

    def write(self, said: bytes, what: bytes = b"") -> None:
        """Send something; it reaches Java with the next request, or when the answer is complete."""
        self._out.write(said + what)

    def answer(self) -> None:
        """Send that the answer is complete."""
        self._ask(END)

    def _ask(self, said: bytes, what: bytes = b"") -> None:
        """Send something that Java waits for, or has to answer."""
        self.write(said, what)
        self._out.flush()

    # ---- pages

    def load(self, page: str) -> bytes | None:
        """Return a page, or None if there is none."""
        self._ask(LOAD, framed(page.encode()))
        return self.read_bytes()

    def load_all(self) -> Iterable[tuple[str, bytes]]:
        """Return all pages, each with its name."""
        self._ask(LOAD_ALL)
        found = []
        while (page := self.read_bytes()) is not None:
            found.append((page.decode(), self.read_bytes() or b""))
        return found

    def save(self, page: str, data: bytes | None) -> None:
        """Write a page; None deletes it."""
        if data is None:
            self.write(DELETE, framed(page.encode()))
        else:
            self.write(SAVE, framed(page.encode()) + framed(data))


def framed(data: bytes | None) -> bytes:
    """Return bytes with their length before them; -1 stands for None.

    >>> framed(b"ab"), framed(None)
    (b'\\x00\\x00\\x00\\x02ab', b'\\xff\\xff\\xff\\xff')
    """
    return INT.pack(-1) if data is None else INT.pack(len(data)) + data


def write_row(row: Row) -> bytes:
    """Return a row, whose values are in the order of `row_format.NAMES`, as bytes.

    >>> row = (3, "out", b"k", None, None, None, None, 1000, [{"key": "id", "value": b"7"}], 0, 1, 42, 0)
    >>> read_row(write_row(row)) == row
    True
    """
    port, topic, *data, timestamp, headers, task, origin, position, step = row
    parts = [INT.pack(port), framed(None if topic is None else topic.encode()), *map(framed, data)]
    parts.append(TIME.pack(timestamp is not None, timestamp or 0))
    parts.append(INT.pack(-1 if headers is None else len(headers)))
    for header in headers if headers is not None else ():
        parts += [framed(header["key"].encode()), framed(header["value"])]
    parts.append(PLACE.pack(task, origin, position, step))
    return b"".join(parts)


def read_row(data: bytes) -> Row:
    """Return the row that `write_row`, or the Java process, has written."""
    at = 0

    def integer() -> int:
        nonlocal at
        at += INT.size
        number: int = INT.unpack_from(data, at - INT.size)[0]
        return number

    def some_bytes() -> bytes | None:
        nonlocal at
        length = integer()
        if length < 0:
            return None
        at += length
        return data[at - length : at]

    port, topic = integer(), some_bytes()
    values: list[Any] = [some_bytes() for _ in range(5)]
    is_timed, timestamp = TIME.unpack_from(data, at)
    at += TIME.size
    count = integer()
    headers = None
    if count >= 0:
        headers = [{"key": (some_bytes() or b"").decode(), "value": some_bytes()} for _ in range(count)]
    place = PLACE.unpack_from(data, at)
    return (port, topic and topic.decode(), *values, timestamp if is_timed else None, headers, *place)
