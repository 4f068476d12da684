"""The stores of a task: tables under Kafka Streams' names. Keys and values are bytes, or what an operator puts."""

from collections.abc import Iterator
from typing import Any

from streamskit.operators.pages import PagedTable


class BytesKeyValueStore:
    """A table of keys and values. Mirrors `org.apache.kafka.streams.state.KeyValueStore`.

    >>> store.put(b"KO", b"75.2")
    >>> store.get(b"KO")
    b'75.2'
    """

    def __init__(self, table: PagedTable) -> None:
        self._table = table

    def get(self, key: bytes) -> Any:
        """Return the value of `key`, or None if there is none."""
        return self._table.look_at(key).get(key)

    def put(self, key: bytes, value: Any) -> None:
        """Set the value of `key`; None deletes it."""
        rows = self._table.change(key)
        if value is None:
            rows.pop(key, None)
        else:
            rows[key] = value

    def put_if_absent(self, key: bytes, value: Any) -> Any:
        """Set the value of `key` if it has none; return the one it had."""
        found = self.get(key)
        if found is None:
            self.put(key, value)
        return found

    def delete(self, key: bytes) -> Any:
        """Delete `key` and return the value it had."""
        return self._table.change(key).pop(key, None)

    def all(self) -> Iterator[tuple[bytes, Any]]:
        """Return every row in the order of the keys' bytes."""
        return self._table.items()

    def range(self, first: bytes | None, last: bytes | None) -> Iterator[tuple[bytes, Any]]:
        """Return the rows with keys from `first` to `last`, both included; None leaves an end open."""
        for key, value in self._table.items():
            if (first is None or key >= first) and (last is None or key <= last):
                yield key, value
