"""What goes into a task operator and what comes out of it: bytes of keys and values, one record at a time."""

from typing import Any, NamedTuple


class Record(NamedTuple):
    """One record, or one update of a table's row, on its way into an operator.

    Mirrors `org.apache.kafka.streams.processor.api.Record`, and for tables `Change`.

    >>> Record(b"KO", b"new price", b"old price", None, 1000, None).value
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
