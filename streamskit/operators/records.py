"""What goes into a task operator and what comes out of it: bytes of keys and values, one record at a time."""

from typing import Any, NamedTuple


class OperatorRecord(NamedTuple):
    """One record, or one update of a table's row, on its way into an operator.

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
    """What an operator asks for beside key and value: a lookup key, a foreign key, a partition's id."""
    timestamp: int
    headers: Any
    """Passed on as they are: a result carries the headers of the record that made it."""


class SourceRecord(NamedTuple):
    """A record of the task's topics: where it came from, its time, and, if a handler may ask for it, itself."""

    topic: str | None
    partition: int
    offset: int
    timestamp: int
    key: bytes | None = None
    value: bytes | None = None
    headers: Any = None

    def before(self, headers: Any) -> list[dict[str, Any]]:
        """Return the headers of a result behind `CARRIED` others that say which record it was made of."""
        itself = self.topic, self.partition, self.offset, self.timestamp, self.key, self.value
        named = zip(SourceRecord._fields, itself, strict=False)
        carried = [{"key": name, "value": _as_bytes(value)} for name, value in named]
        return carried + [{"key": header["key"], "value": header["value"]} for header in listed(headers)]


CARRIED = 6
"""How many headers say which record a result was made of."""


def _as_bytes(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else str(value).encode()


def listed(headers: Any) -> Any:
    """Return headers, which may be none at all, as something to loop over."""
    return () if headers is None else headers


NOWHERE = SourceRecord(None, -1, -1, -1)
"""The source of what no record made."""

NOTE = -1
"""The operator of an output that is finished: a dead letter, whose topic stands in `other`, or, without a topic, the
note that a node has failed on a record."""


class Output(NamedTuple):
    """One result of an operator; `operator` is its index in the stage."""

    operator: int
    key: bytes | None
    value: bytes | None
    old: bytes | None
    other: bytes | None
    """The other side's value, of joins."""
    other_old: bytes | None
    timestamp: int
    headers: Any


OUT_OF_ORDER = b"out of order"
"""Stands in `other` of an update that is not the latest of its row, and in `extra` of the record made from it.

Only tables with a history have such updates. Kafka Streams calls the opposite `Change#isLatest`.
"""

STORE_ONLY = b"store only"
"""Stands in `other` of an update of a store that goes out to nobody: of a window that speaks only when it closes."""
