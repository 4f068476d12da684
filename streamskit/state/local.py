"""Local copies of state stores, filled from their changelogs and read by queries."""

import copy
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import Any, Self, TypeVar

import pandas as pd

from streamskit.api.windows import Windowed
from streamskit.kafka.topic_partition import ChangelogRecord
from streamskit.serdes import RegistryError, Serde
from streamskit.serdes.simple import StringSerde
from streamskit.state.read_only import ReadOnlyKeyValueStore, ReadOnlyStore
from streamskit.state.rows import Span, StoreEntry, after_prefix, pack, timestamp_of
from streamskit.state.storage import ChangelogMark, MemoryStorage, RowChange, Storage
from streamskit.state.stores import KeyValue, Store, ValueAndTimestamp

logger = logging.getLogger("streamskit")

KEYS_REMEMBERED = 10_000
"""For how many keys `peek` remembers whether they are wanted: the rows of a key are next to each other."""

FoundRow = tuple[bytes, bytes, int]
"""A row, what it holds, and the number of its partition."""


Made = TypeVar("Made")

SortedRow = TypeVar("SortedRow", bound=tuple[Any, ...])


class StorePartition:
    """One partition of a store: its rows, and the latest time they have seen."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.stream_time = storage.mark().stream_time


@dataclass
class _Held:
    """What changes while a store is filled: its copies with timestamps share it, so that they see all that comes."""

    partitions: dict[int, StorePartition] = field(default_factory=dict)
    updates: int = 0
    stopped: str = ""


class LocalStore(ReadOnlyStore[Span]):
    """What all local stores share: rows by partition, written by one thread and read by any.

    A row's value is decoded only when it is read. `updates` counts the records taken in, and once more whenever a
    partition with rows was emptied; `stopped` says why no more will come, and is empty while more may. Lists leave out
    rows that the serdes cannot read; `unreadable` is the number of those in the last list.

    Args:
        store: what it holds.
        make: makes the storage of a partition; in memory when not given.
        is_global: whether it is one table, whichever partition a row came from: the last record of a key replaces those
            of all partitions.
    """

    def __init__(self, store: Store, make: Callable[[int], Storage] | None = None, *, is_global: bool = False) -> None:
        self.name = store.name
        self.kind = store.kind
        self.unreadable = 0
        self._store = store
        self._make = make or (lambda number: MemoryStorage())
        self._is_global = is_global
        self._held = _Held()
        self._followed: int | None = None

    def __len__(self) -> int:
        return sum(partition.storage.count() for _, partition in self._readable())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self.name}': {len(self)} rows after {self.updates} updates>"

    @property
    def updates(self) -> int:
        """How many records were taken in."""
        return self._held.updates

    @updates.setter
    def updates(self, count: int) -> None:
        self._held.updates = count

    @property
    def stopped(self) -> str:
        """Why no more records will come, as a sentence; "" while they may."""
        return self._held.stopped

    @stopped.setter
    def stopped(self, why: str) -> None:
        self._held.stopped = why

    @property
    def _partitions(self) -> dict[int, StorePartition]:
        held, one = self._held.partitions, self._followed
        return held if one is None else {number: each for number, each in held.items() if number == one}

    @_partitions.setter
    def _partitions(self, partitions: dict[int, StorePartition]) -> None:
        self._held.partitions = partitions

    # ---- what fills it -----------------------------------------------------------------------------------------------

    def open(self, partition: int) -> ChangelogMark:
        """Make room for a partition, and return how far it is filled: storage on disk may hold rows already."""
        if partition not in self._partitions:
            self._partitions = {**self._partitions, partition: StorePartition(self._make(partition))}
        return self._partitions[partition].storage.mark()

    def drop(self, partition: int) -> Storage | None:
        """Forget a partition, and return where it was kept, so that it can be closed."""
        dropped = self._partitions.get(partition)
        self._partitions = {number: kept for number, kept in self._partitions.items() if number != partition}
        return dropped.storage if dropped else None

    def clear(self, partition: int) -> None:
        """Empty a partition, because its changelog starts over."""
        self.open(partition)
        self.updates += bool(self._partitions[partition].storage.count())  # whoever looks only at changes has to look
        self._partitions[partition].storage.clear()
        self._partitions[partition].stream_time = -1

    def take(self, partition: int, records: Sequence[ChangelogRecord], position: int = 0) -> None:
        """Take records of the changelog in; a null value deletes the row.

        Args:
            partition: the partition they came from.
            records: key, value and timestamp of each, in order.
            position: the offset after the last of them.
        """
        self.open(partition)
        kept = self._partitions[partition]
        changes = list(self._changes(kept, records))
        kept.storage.write(changes, ChangelogMark(position, kept.stream_time))
        if self._is_global:
            self._forget_elsewhere(partition, changes)
        self.updates += len(records)
        self._tidy(kept)

    def _forget_elsewhere(self, partition: int, changes: Iterable[RowChange]) -> None:
        """Delete from all other partitions the rows that one of them has changed."""
        rows = {(change.segment, change.row) for change in changes}
        for number, other in self._partitions.items():
            if number != partition and (old := [row for row in rows if other.storage.get(*row) is not None]):
                other.storage.write([RowChange(*row, None) for row in old], other.storage.mark())

    def apply(self, key: bytes, value: bytes | None, timestamp: int, partition: int = 0) -> None:
        """Take one record of the changelog in."""
        self.take(partition, [(key, value, timestamp)])

    def flush(self) -> None:
        """Write to disk what disk storage still has only in memory."""
        for partition in self._partitions.values():
            partition.storage.flush()

    def decode(self, key: bytes, value: bytes | None) -> tuple[Any, Any]:
        """Return the key and the value of a record of the changelog as a query would."""
        return self._decode_key(self._row(key)), None if value is None else self._store.value.deserialize(value)

    # ---- what queries it ---------------------------------------------------------------------------------------------

    def only(self, partitions: Collection[int]) -> Self:
        """Return a view of some partitions, as they are now."""
        view = copy.copy(self)
        kept = {number: each for number, each in self._partitions.items() if number in partitions}
        view._held = replace(self._held, partitions=kept)
        return view

    def following(self, partition: int) -> Self:
        """Return a view of one partition, which sees all that comes; its `updates` are those of the whole store."""
        view = copy.copy(self)
        view._followed = partition
        return view

    @property
    def partitions(self) -> set[int]:
        """The numbers of the partitions held here."""
        return set(self._partitions)

    def approximate_num_entries(self) -> int:
        return len(self)

    def everything(self, reverse: bool = False) -> Span:
        return Span(reverse=reverse)

    def entries(self, span: Span, limit: int | None = None, after: bytes | None = None) -> list[StoreEntry]:
        """Return the rows of a span, in order.

        Args:
            span: which rows, from a method of this store such as `everything`.
            limit: how many at most.
            after: the `cursor` of the row to go on after.
        """
        return list(islice(self._readable_ones(self._found(span, after), self._entry), limit))

    def peek(self, rows: int, predicate: Callable[[Any], bool] | None = None, beginning: str = "") -> list[KeyValue]:
        """Return a few rows to look at: the first by key, or the newest windows; only their values are decoded.

        Args:
            rows: how many at most.
            predicate: whether a key's rows may be among them, given the key without its window; by default all may.
            beginning: the text that all wanted keys begin with; where keys are text, no others are read.

        >>> streams.store("counts").peek(2, lambda key: key.startswith("K"))
        [KeyValue(key='KO', value=42), KeyValue(key='KR', value=7)]
        """

        @lru_cache(KEYS_REMEMBERED)
        def is_wanted(key: bytes) -> bool:
            with suppress(Exception):  # a serde may be a user's own
                return predicate is None or predicate(self._store.key.deserialize(key))
            return False

        among = Span()
        if beginning and isinstance(self._store.key, StringSerde):
            begin = self._beginning(beginning.encode())
            among = Span(begin, after_prefix(begin))
        found = self._readable_ones(self._first(rows, is_wanted, among), self._entry)
        return [KeyValue(entry.key, entry.value) for entry in found]

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows of `all` as a data frame: key (and window), the value's fields, the last update's time.

        The columns are `key`, for windows and sessions `start` and `end`, then the fields of the value, or `value`
        where it has none, and `timestamp`. A field that has the name of another column is in `value.key` and so on.
        """
        records = []
        for entry in self._readable_ones(self._listed(self.everything()), self._entry):
            record = dict(entry.key._asdict()) if isinstance(entry.key, Windowed) else {"key": entry.key}
            value = entry.value.value if isinstance(entry.value, ValueAndTimestamp) else entry.value
            taken = (*record, "timestamp")
            columns = value if isinstance(value, dict) else {"value": value}
            record |= {f"value.{name}" if name in taken else name: each for name, each in columns.items()}
            records.append(record | {"timestamp": entry.timestamp})
        return pd.DataFrame.from_records(records)

    # ---- what kinds of stores do differently -------------------------------------------------------------------------

    def _row(self, key: bytes) -> bytes:
        """Return the row of a changelog's key."""
        return key

    def _beginning(self, key: bytes) -> bytes:
        """Return how the rows begin whose keys begin with these bytes."""
        return key

    def _decode_key(self, row: bytes) -> Any:
        return self._store.key.deserialize(row)

    def _changes(self, partition: StorePartition, records: Iterable[ChangelogRecord]) -> Iterator[RowChange]:
        """Yield what records of the changelog change."""
        for key, value, timestamp in records:
            yield RowChange(0, self._row(key), None if value is None else pack(value, timestamp))

    def _tidy(self, partition: StorePartition) -> None:
        """Delete rows that are too old, from time to time."""

    def _segments(self, partition: StorePartition, span: Span) -> list[int]:
        """Return the segments that may contain rows of a span."""
        return partition.storage.segments()

    def _is_kept(self, partition: StorePartition, row: bytes, packed: bytes, span: Span) -> bool:
        """Whether a row that was found belongs to the span."""
        return True

    def _first(self, rows: int, is_wanted: Callable[[bytes], bool], among: Span) -> Iterable[FoundRow]:
        """Return the rows of a span to look at first."""
        return islice((found for found in self._found(among, None) if is_wanted(found[0])), rows)

    # ---- how rows are found ------------------------------------------------------------------------------------------

    def _readable(self) -> Iterable[tuple[int, StorePartition]]:
        return sorted(self._partitions.items())

    def _found(self, span: Span, after: bytes | None) -> Iterator[FoundRow]:
        each = [
            self._of_partition(number, partition, span.beyond(after, number) if after is not None else span)
            for number, partition in sorted(self._readable(), reverse=span.reverse)
        ]
        return merged(each, span.reverse)

    def _listed(self, span: Span) -> Iterable[FoundRow]:
        """Return the rows of a span in the order in which a list gives them."""
        return self._found(span, None)

    def _of_partition(self, number: int, partition: StorePartition, span: Span) -> Iterator[FoundRow]:
        storage = partition.storage
        scans = [
            storage.scan(segment, span.begin, span.end, span.reverse) for segment in self._segments(partition, span)
        ]
        for row, packed in merged(scans, span.reverse):
            if self._is_kept(partition, row, packed, span):
                yield row, packed, number

    def _entry(self, found_row: FoundRow) -> StoreEntry:
        row, packed, number = found_row
        return StoreEntry(row, self._decode_key(row), self._value(packed), timestamp_of(packed), number)

    def _pairs(self, span: Span) -> list[KeyValue]:
        def pair(found_row: FoundRow) -> KeyValue:
            return KeyValue(self._decode_key(found_row[0]), self._value(found_row[1]))

        pairs = list(self._readable_ones(self._listed(span), pair))
        if self.unreadable:
            logger.warning(
                "Store '%s': a list leaves out %d of its rows, which its serdes cannot read, such as %s",
                self.name, self.unreadable, self._why,
            )  # fmt: skip
        return pairs

    def _readable_ones(self, found_rows: Iterable[FoundRow], make: Callable[[FoundRow], Made]) -> Iterator[Made]:
        """Yield what is made of rows, except unreadable ones: they are counted, and do not hide the others."""
        self.unreadable = 0
        for each in found_rows:
            try:
                made = make(each)
            except Exception as failure:  # a serde may be a user's own
                self.unreadable += 1
                self._why = str(failure)
                continue
            yield made

    def _value(self, packed: bytes) -> Any:
        value = self._store.value.deserialize(packed[8:])
        return ValueAndTimestamp(value, timestamp_of(packed)) if self._timestamped else value

    def _key_bytes(self, key: Any) -> bytes:
        return self._store.key.serialize(self._named(key)) or b""


def merged(sorted_rows: Sequence[Iterator[SortedRow]], reverse: bool) -> Iterator[SortedRow]:
    """Return rows of several lists in one order; each begins with its bytes."""
    # One list is the usual case, and merging it would cost more than reading it.
    return sorted_rows[0] if len(sorted_rows) == 1 else merge(*sorted_rows, key=itemgetter(0), reverse=reverse)


class LocalKeyValueStore(LocalStore, ReadOnlyKeyValueStore[Span]):
    """A local table of keys and values."""

    def _changes(self, partition: StorePartition, records: Iterable[ChangelogRecord]) -> Iterator[RowChange]:
        # Others write the topic of a global table, and may write equal keys as other bytes.
        is_as_written = not self._is_global or self._store.key.is_canonical
        return super()._changes(partition, records if is_as_written else self._with_own_keys(records))

    def _with_own_keys(self, records: Iterable[ChangelogRecord]) -> Iterator[ChangelogRecord]:
        """Yield records with their keys as the store's own serde writes them, without those whose key reads as null."""
        for key, value, timestamp in records:
            try:
                own = self._store.key.serialize(self._store.key.deserialize(key))
            except RegistryError:  # no record is at fault
                raise
            except Exception:  # a serde may be a user's own; lists leave the row out, and count it
                own = key
            if own is not None:
                yield own, value, timestamp

    def get(self, key: Any) -> Any:
        row = self._key_bytes(key)
        for partition in self._partitions.values():
            packed = partition.storage.get(0, row)
            if packed is not None:
                return self._value(packed)
        return None

    def entry(self, key: Any) -> StoreEntry | None:
        """Return the row of `key` with all that is known about it, or None."""
        row = self._key_bytes(key)
        for number, partition in self._readable():
            packed = partition.storage.get(0, row)
            if packed is not None:
                return self._entry((row, packed, number))
        return None

    def between(self, first: Any = None, last: Any = None, reverse: bool = False) -> Span:
        begin = None if first is None else self._key_bytes(first)
        return Span(begin, None if last is None else self._key_bytes(last) + b"\0", reverse)

    def with_prefix(self, prefix: Any, serde: Serde | None = None, reverse: bool = False) -> Span:
        begin = self._key_bytes(prefix) if serde is None else serde.serialize(prefix) or b""
        return Span(begin, after_prefix(begin), reverse)
