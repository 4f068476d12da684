"""What goes into a task's operators and what comes out of them: keys and values as bytes, one record at a time."""

from typing import Any, NamedTuple


class OperatorRecord(NamedTuple):
    """Input record: one record of a stream, or one update of a table's row, on its way into an operator.

    Mirrors `org.apache.kafka.streams.processor.api.Record`, and for tables `Change`.

    >>> OperatorRecord(b"KO", b"new price", b"old price", None, 1000, None).value
    b'new price'
    """

    key: bytes | None
    value: bytes | None
    """Of a table: the new value of the row; None deletes it."""
    old: bytes | None
    """Of a table: the row's value before, where upstream knows it."""
    extra: bytes | None
    """What an operator needs besides key and value: a lookup key, a foreign key, a partition's id."""
    timestamp: int
    headers: Any
    """Passed on as they are: a result carries the headers of the record that made it."""


class SourceRecord(NamedTuple):
    """Source record: place and time of a record of the task's topics, and the record itself, if a handler may need it.

    Mirrors `org.apache.kafka.streams.processor.api.RecordMetadata`.
    """

    topic: str | None
    partition: int
    offset: int
    timestamp: int
    key: bytes | None = None
    value: bytes | None = None
    headers: Any = None

    def prepended_to(self, headers: Any) -> list[dict[str, Any]]:
        """Return a result's headers, preceded by `SOURCE_HEADERS` others that say which record it was made from."""
        fields = zip(SourceRecord._fields[:SOURCE_HEADERS], self[:SOURCE_HEADERS], strict=True)
        source = [{"key": name, "value": _as_bytes(value)} for name, value in fields]
        return source + [{"key": header["key"], "value": header["value"]} for header in iterable(headers)]


SOURCE_HEADERS = 6
"""How many headers say which record a result was made from: the fields of `SourceRecord` except its own headers."""


def _as_bytes(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else str(value).encode()


def iterable(headers: Any) -> Any:
    """Return headers, which may be None, as something to loop over."""
    return () if headers is None else headers


def header_pairs(headers: Any) -> tuple[tuple[str, bytes], ...]:
    """Return headers, as they travel in rows, as pairs of name and bytes."""
    return tuple((header["key"], header["value"]) for header in iterable(headers))


NO_SOURCE = SourceRecord(None, -1, -1, -1)
"""The source of results that no record caused, such as those of a punctuation."""

NO_TIMESTAMP = -(2**63)
"""Stands for a null timestamp, which no field of eight bytes can hold: an extractor may well take -1 from a value."""


class Output(NamedTuple):
    """One result of an operator; `operator` is its index in the task, or one of those below."""

    operator: int
    key: bytes | None
    value: bytes | None
    old: bytes | None
    other: bytes | None
    """The other side's value, of joins."""
    other_old: bytes | None
    timestamp: int
    headers: Any


ERROR_ROW = -1
"""The operator of an output that a failed record made: a dead letter, whose topic is in `other`, or, without a topic,
a notice that the node named in `key` has failed with the message in `value`."""

BEGIN_ROW = -2
"""The operator of an output that says, for later stages, which record begins."""

SOURCE_ROW = -3
"""The operator of an output that says, for later stages, which earlier record those after it were made from."""


def source_output(operator: int, source: SourceRecord) -> Output:
    """Return the output that says which record others come from.

    Its topic is in `other`, partition and offset are in `other_old`, and the record itself is in the other fields.
    """
    topic, place = source.topic, b"%d %d" % (source.partition, source.offset)
    topic_bytes = None if topic is None else topic.encode()
    return Output(operator, source.key, source.value, None, topic_bytes, place, source.timestamp, source.headers)


OUT_OF_ORDER = b"out of order"
"""The `other` of an update that is not the latest of its row, and the `extra` of the record made from it.

Only tables with a history have such updates. Kafka Streams calls the opposite `Change#isLatest`.
"""

STORE_UPDATE = b"update of store "
"""Begins `other` of an output that is for the changelog of a transformer's own store; the store's number follows."""

STORE_ONLY = b"store only"
"""Stands in `other` of an update that is for the store's changelog only: its window emits on close."""


def row_time(record: OperatorRecord) -> int:
    """Return the time of a table's row after an update: that of the update, unless the update carries another.

    A row joined from two has the latest time of those that exist, even after the other one has been deleted.
    """
    return record.timestamp if record.extra is None else int.from_bytes(record.extra[:8], "big", signed=True)


def with_row_time(data: bytes | None, time: int) -> bytes:
    """Return bytes, which may be None, preceded by eight that hold the time of a row."""
    return time.to_bytes(8, "big", signed=True) + (b"" if data is None else b"\x01" + data)
