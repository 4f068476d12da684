"""`KeyValueIterator`: the rows that a processor's store lists, one after another."""

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Generic, NoReturn, Self, TypeVar

from streamskit.common.errors import StreamsError

Row = TypeVar("Row", bound=tuple[Any, Any])
"""A `KeyValue`; of one key's windows, a pair of a start and a value."""


class KeyValueIterator(Iterator[Row], Generic[Row]):
    """Rows of a store: loop over it, or ask for them with `next`.

    A `with` block closes it at its end, as `try` does in Java. Here an iterator holds nothing, so one that is not
    closed does no harm.

    Args:
        store: the name of the store.
        rows: its rows, in order.

    Mirrors `org.apache.kafka.streams.state.KeyValueIterator` and `WindowStoreIterator`.

    >>> with KeyValueIterator("counts", [("a", 1), ("b", 2)]) as rows:
    ...     print(rows.peek_next_key(), dict(rows), rows.peek_next_key())
    a {'a': 1, 'b': 2} None
    """

    def __init__(self, store: str, rows: Iterable[Row]) -> None:
        self._store, self._rows = store, iter(rows)
        self._ahead: Row | None = None
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("The rows that a store lists are those of one moment, and cannot be kept.")

    def __next__(self) -> Row:
        row, self._ahead = self._ahead, None
        if row is not None:
            return row
        if self._is_closed:
            raise StreamsError(
                f"Store '{self._store}': these rows are closed, so no more can be read: read them inside the `with` "
                "block, or before close()."
            )
        return next(self._rows)

    def peek_next_key(self) -> Any:
        """Return the key of the row that comes next, which stays the next; None after the last row.

        Of one key's windows, it is the start of the next window, in milliseconds.

        Raises:
            StreamsError: the iterator is closed.

        Mirrors `KeyValueIterator#peekNextKey`, which raises an error after the last row.
        """
        self._ahead = next(self, None)
        return None if self._ahead is None else self._ahead[0]

    def close(self) -> None:
        """Read no more. Closing it twice does nothing. Mirrors `KeyValueIterator#close`."""
        self._is_closed, self._ahead = True, None
