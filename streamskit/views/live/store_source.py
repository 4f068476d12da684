"""Asking a store for the rows to look at, wherever it is: in this process, or behind another one's REST layer."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from streamskit.api.windows import Windowed
from streamskit.queries import KeyValue

Span = tuple[int, int]
"""The first and the last time at which a window may start, in milliseconds since 1970."""

HERE = "this process"
"""Who answers for a store that does not say so."""


@runtime_checkable
class SnapshotSource(Protocol):
    """A store that a view can look at: `streams.store(name)`, or `QueryClient(url).store(name)`.

    It may have more, which the view then uses: `search(text, rows)` or `peek(rows, wanted)` for a few rows only,
    `updates` to tell that nothing has changed, `stopped` to say why nothing will, `answered_by` for the instance that
    answered last, and of a window store `fetch` and `fetch_all`.
    """

    name: str
    kind: str

    def all(self) -> Sequence[KeyValue]:
        """Return every row."""


@dataclass(frozen=True)
class Answer:
    """The rows that a store gave, how many it has in all (None: it does not say), how long it took, and who it was."""

    rows: Sequence[KeyValue]
    total: int | None
    took: float
    by: str


def ask(store: SnapshotSource, count: int, search: str = "", span: Span | None = None) -> Answer:
    """Ask for the first rows by key, or for the newest windows.

    Args:
        store: the store.
        count: how many rows at most.
        search: how their keys begin, or a whole key in double quotes; any when empty.
        span: when the windows start that may be among them; those of any time when None.
    """
    began = time.perf_counter()
    rows = [KeyValue(*row) for row in _rows(store, count, search, span)]
    took = time.perf_counter() - began
    by = str(getattr(store, "answered_by", None) or HERE)
    return Answer(rows, _total(store), took, by)


def matches(key: str, search: str) -> bool:
    """Whether a key begins with what is searched for, or, where that stands in double quotes, is it."""
    if len(search) > 1 and search[0] == search[-1] == '"':
        return key == search[1:-1]
    return key.startswith(search)


def _rows(store: Any, count: int, search: str, span: Span | None) -> Sequence[KeyValue]:
    def is_wanted(key: Any) -> bool:
        return matches(str(key), search)

    if span is not None:
        return _first(store.fetch_all(*span), count, is_wanted)
    if hasattr(store, "search"):  # it can find the keys where they are
        return store.search(search, count)
    if hasattr(store, "peek"):
        return store.peek(count, is_wanted if search else None)
    return _first(store.all(), count, is_wanted)


def _first(rows: Sequence[KeyValue], count: int, is_wanted: Callable[[Any], bool]) -> list[KeyValue]:
    """Return the newest windows, of one time in the order of their keys; or the first rows as they come."""
    fitting = [row for row in rows if is_wanted(_inner(row.key))]
    if any(isinstance(row.key, Windowed) for row in fitting):
        fitting.sort(key=lambda row: (-row.key.start, str(row.key.key)))
    return fitting[:count]


def _inner(key: Any) -> Any:
    return key.key if isinstance(key, Windowed) else key


def _total(store: Any) -> int | None:
    return int(store.approximate_num_entries()) if hasattr(store, "approximate_num_entries") else None
