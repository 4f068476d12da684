"""`RocksStorage`: the rows of a partition on the disk, and how far its changelog was read."""

import shutil
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from rocksdict import DbClosedError, Options, Rdict, WriteBatch, WriteOptions

from streamskit.common.errors import StateStoreMigratedError, StreamsError
from streamskit.state.storage import ChangelogMark, Pair, RowChange

PREFIX = struct.Struct(">Q")
MARK = struct.Struct(">qq")
MARK_ROW = b"\xff mark"
"""Sorts after all rows, which begin with the number of their segment in eight bytes."""


EXACT_BELOW = 10_000
"""Up to this many rows by RocksDB's estimate, they are counted instead."""


class RocksStorage:
    """Keeps rows in RocksDB, in a folder of their own.

    A write and its mark are atomic: after a crash either both are there or neither, so the changelog is read on from
    where the rows end. What had not reached the disk is read again.

    Args:
        folder: where to keep them.

    Raises:
        StreamsError: another process has the folder open, or its files are damaged.

    Mirrors `org.apache.kafka.streams.state.internals.RocksDBStore` with its checkpoint file.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._rows = Rdict(str(folder), _options())
        except Exception as failure:
            raise StreamsError(
                f"The store in {folder} could not be opened: {failure}. If another instance uses this folder, give "
                "each a --state-dir of its own; if not, delete it: it is rebuilt from the changelog."
            ) from failure
        self._write_options = WriteOptions()
        # The changelog is the log: what is lost in a crash is read from there again.
        self._write_options.disable_wal = True  # type: ignore[method-assign, assignment]
        self._closed = False
        self._segments = set(self._find_segments())
        self._mark = self._read_mark()

    def mark(self) -> ChangelogMark:
        return self._mark

    def segments(self) -> list[int]:
        return sorted(self._segments)

    def get(self, segment: int, row: bytes) -> bytes | None:
        try:
            return self._rows.get(PREFIX.pack(segment) + row)
        except DbClosedError:
            raise self._given_up() from None

    def scan(self, segment: int, begin: bytes | None, end: bytes | None, reverse: bool) -> Iterator[Pair]:
        prefix = PREFIX.pack(segment)
        first = prefix + (begin or b"")
        beyond = prefix + end if end is not None else PREFIX.pack(segment + 1)
        found = self._rows.iter()
        found.seek_for_prev(beyond) if reverse else found.seek(first)
        if reverse and found.valid() and found.key() == beyond:
            found.prev()
        while found.valid() and first <= (key := found.key()) < beyond:
            yield key[8:], found.value()
            found.prev() if reverse else found.next()
        if self._closed:
            raise self._given_up()

    def write(self, changes: Sequence[RowChange], mark: ChangelogMark) -> None:
        batch = WriteBatch(raw_mode=True)
        pack, segments = PREFIX.pack, self._segments
        for segment, row, packed in changes:
            if packed is None:
                batch.delete(pack(segment) + row)
            else:
                segments.add(segment)
                batch.put(pack(segment) + row, packed)
        batch.put(MARK_ROW, MARK.pack(*mark))
        self._rows.write(batch, self._write_options)
        self._mark = mark

    def drop(self, segment: int) -> None:
        self._segments.discard(segment)
        self._rows.delete_range(PREFIX.pack(segment), PREFIX.pack(segment + 1), write_opt=self._write_options)

    def clear(self) -> None:
        self._segments, self._mark = set(), ChangelogMark()
        self._rows.delete_range(b"", MARK_ROW + b"\xff", write_opt=self._write_options)

    def count(self) -> int:
        estimate = self._rows.property_int_value("rocksdb.estimate-num-keys") or 0
        # RocksDB also counts overwritten rows, until they are compacted.
        return estimate if estimate > EXACT_BELOW else sum(1 for each in self.segments() for _ in self._all(each))

    def _all(self, segment: int) -> Iterator[Pair]:
        return self.scan(segment, None, None, False)

    def flush(self) -> None:
        self._rows.flush(wait=False)

    def close(self) -> None:
        self._closed = True
        self._rows.flush()
        self._rows.close()

    def destroy(self) -> None:
        """Delete the folder."""
        self._rows.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _given_up(self) -> StateStoreMigratedError:
        return StateStoreMigratedError(
            f"The rows in {self._folder} were closed while being read: this partition now belongs to another "
            "instance. Ask again."
        )

    def _read_mark(self) -> ChangelogMark:
        packed = self._rows.get(MARK_ROW)
        return ChangelogMark(*MARK.unpack(packed)) if packed else ChangelogMark()

    def _find_segments(self) -> Iterator[int]:
        found, after = self._rows.iter(), b""
        found.seek(after)
        while found.valid() and found.key() != MARK_ROW:
            (segment,) = PREFIX.unpack_from(found.key())
            yield segment
            found.seek(PREFIX.pack(segment + 1))


def _options() -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    # Many small databases share a machine with Spark, so each gets memory for a classroom, not for a cluster.
    options.set_write_buffer_size(8 * 1024 * 1024)
    options.set_max_write_buffer_number(2)
    options.set_max_background_jobs(2)
    options.set_keep_log_file_num(2)
    return options
