"""State in pages: a task's rows and time-ordered entries, packed into a few values of the state store.

One call to Spark's state store costs as much for a page of rows as for a single row. So rows are hashed to a fixed
number of pages (`PagedTable`), and entries that fall due in order of time share a page per stretch of time
(`TimeOrderedMap`). A page is loaded when it is first needed and saved when a micro-batch has changed it.
"""

import pickle
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any, Protocol
from zlib import crc32

PAGES = 128
"""Pages of a table. A stored table keeps this number for good: another one would look for its rows in other pages."""

Rows = dict[bytes, Any]

Entry = tuple[Any, ...]
"""Begins with a time in milliseconds; the rest orders entries of the same time."""


class PageStore(Protocol):
    """Where pages live between two micro-batches: Spark's state store, or a dict in tests."""

    def load(self, page: str) -> bytes | None:
        """Return what was saved under a name, or None."""

    def save(self, page: str, data: bytes | None) -> None:
        """Save data under a name; None deletes it."""


class NoPages:
    """A page store that is always empty and keeps nothing, for operators that run only once."""

    def load(self, page: str) -> bytes | None:
        """Return nothing."""
        return None

    def save(self, page: str, data: bytes | None) -> None:
        """Forget the data."""


class MemoryPages:
    """A page store in memory, for operators that live as long as their process."""

    def __init__(self) -> None:
        self._pages: dict[str, bytes] = {}

    def load(self, page: str) -> bytes | None:
        """Return what was saved under a name, or None."""
        return self._pages.get(page)

    def save(self, page: str, data: bytes | None) -> None:
        """Save data under a name; None deletes it."""
        if data is None:
            self._pages.pop(page, None)
        else:
            self._pages[page] = data


class PagedTable:
    """Rows by key, in pages that are loaded when first needed and saved when changed.

    Args:
        name: the table's name, of which its pages' names are made.
        store: where the pages live.
        expire: deletes what is too old from the value of a row, which is a list or dict; a row that is then empty goes,
            too. Called for the rows of a page before it is saved.
    """

    def __init__(self, name: str, store: PageStore, expire: Callable[[Any], None] | None = None) -> None:
        self.name, self.expire = name, expire
        self._store = store
        self._pages: dict[int, Rows] = {}
        self._changed: set[int] = set()

    def page(self, key: bytes) -> Rows:
        """Return the page of `key`, to read only."""
        number = crc32(key) % PAGES
        page = self._pages.get(number)
        return self._load(number) if page is None else page

    def changed_page(self, key: bytes) -> Rows:
        """Return the page of `key`, to be changed: it will be saved."""
        number = crc32(key) % PAGES
        self._changed.add(number)
        page = self._pages.get(number)
        return self._load(number) if page is None else page

    def items(self) -> Iterator[tuple[bytes, Any]]:
        """Return all rows, in the order of their keys' bytes; loads every page."""
        pages = [self._pages[number] if number in self._pages else self._load(number) for number in range(PAGES)]
        return iter(sorted((row for page in pages for row in page.items()), key=lambda row: row[0]))

    def save(self) -> None:
        """Save the pages that were changed."""
        if self.expire is not None and self._changed:
            self._visit_next_page()
        for number in sorted(self._changed):
            page = self._pages[number]
            if self.expire is not None:
                for key, value in list(page.items()):
                    self.expire(value)
                    if not value:
                        del page[key]
            self._store.save(self._page_name(number), pickle.dumps(page, protocol=5) if page else None)
        self._changed.clear()

    def _visit_next_page(self) -> None:
        # A page whose keys are never seen again would keep its old rows: every batch visits one more, in turn.
        turn = f"{self.name}/turn"
        number = int(self._store.load(turn) or b"0") % PAGES
        if number not in self._changed and self._load(number):
            self._changed.add(number)
        self._store.save(turn, str(number + 1).encode())

    def _load(self, number: int) -> Rows:
        if number not in self._pages:
            data = self._store.load(self._page_name(number))
            self._pages[number] = {} if data is None else pickle.loads(data)
        return self._pages[number]

    def _page_name(self, number: int) -> str:
        return f"{self.name}/{number:02x}"


class Memory:
    """A few named values that operators remember, such as stream time: one page for a whole task."""

    PAGE = "memory"

    def __init__(self, store: PageStore) -> None:
        self._store = store
        data = store.load(self.PAGE)
        self._saved = data
        self._values: dict[str, dict[str, Any]] = {} if data is None else pickle.loads(data)

    def of(self, name: str) -> dict[str, Any]:
        """Return the values of one operator or store; changes to them are saved."""
        return self._values.setdefault(name, {})

    def save(self) -> None:
        """Save the values, if any has changed."""
        data = pickle.dumps(self._values, protocol=5)
        if data != self._saved:
            self._store.save(self.PAGE, data)
            self._saved = data


class TimeOrderedMap:
    """A map from entries to values that is read from the earliest entry on; only what is due gets loaded.

    Args:
        name: the map's name, of which its pages' names are made.
        store: where the pages live.
        width: how many milliseconds share a page.
    """

    def __init__(self, name: str, store: PageStore, width: int) -> None:
        self._name, self._store, self._width = name, store, max(width, 1)
        data = store.load(f"{name}/times")
        # The earliest time in each page that is not loaded.
        self._far: dict[int, int] = {} if data is None else pickle.loads(data)
        self._next_far = min(self._far.values(), default=None)
        self._stored = set(self._far)
        self._pages: dict[int, dict[Entry, Any]] = {}
        self._changed: set[int] = set()
        # The entries of all loaded pages; deleted ones stay until they come up.
        self._heap: list[Entry] = []

    def get(self, entry: Entry) -> Any:
        """Return the value of an entry, or None."""
        return self._page(entry[0] // self._width).get(entry)

    def put(self, entry: Entry, value: Any) -> None:
        """Set the value of an entry; it must not be None."""
        number = entry[0] // self._width
        page = self._page(number)
        self._changed.add(number)
        if entry not in page:
            heappush(self._heap, entry)
        page[entry] = value

    def pop(self, entry: Entry) -> Any:
        """Delete an entry and return the value it had, or None."""
        number = entry[0] // self._width
        if number not in self._pages and number not in self._far:
            return None
        page = self._page(number)
        if entry not in page:
            return None
        self._changed.add(number)
        return page.pop(entry)

    def first_time(self) -> int | None:
        """Return the time of the earliest entry, or None if there is none; loads nothing."""
        heap = self._heap
        while heap and heap[0] not in self._pages[heap[0][0] // self._width]:
            heappop(heap)
        if not heap:
            return self._next_far
        near: int = heap[0][0]
        return near if self._next_far is None else min(near, self._next_far)

    def first(self) -> Entry | None:
        """Return the earliest entry, or None if there is none."""
        time = self.first_time()
        while time is not None and time == self._next_far:
            self._page(time // self._width)
            time = self.first_time()
        return self._heap[0] if self._heap else None

    def take_until(self, last: int) -> Iterator[tuple[Entry, Any]]:
        """Yield and delete the entries of times up to `last`, the earliest first, each with its value."""
        while (time := self.first_time()) is not None and time <= last:
            entry = self.first()
            if entry is not None:
                yield entry, self.pop(entry)

    def in_order(self) -> Iterator[Entry]:
        """Yield all entries in order, loading page after page; the one just yielded may be deleted."""
        for number in sorted({*self._far, *self._pages}):
            yield from sorted(self._page(number))

    def last_time(self) -> int | None:
        """Return the time of the latest entry, or None if there is none; loads the last page only."""
        numbers = sorted({*self._far, *(number for number, page in self._pages.items() if page)})
        return max(self._page(numbers[-1]))[0] if numbers else None

    def save(self) -> None:
        """Save the pages that were changed, and the earliest time in each page."""
        if not self._changed:
            return
        for number in sorted(self._changed):
            page = self._pages[number]
            # Entries that came and went within a batch leave no page behind: there is nothing to delete.
            if page or number in self._stored:
                self._store.save(f"{self._name}/{number}", pickle.dumps(page, protocol=5) if page else None)
        self._changed.clear()
        near = {number: min(page)[0] for number, page in self._pages.items() if page}
        times = self._far | near
        self._stored = set(times)
        self._store.save(f"{self._name}/times", pickle.dumps(times, protocol=5) if times else None)

    def _page(self, number: int) -> dict[Entry, Any]:
        page = self._pages.get(number)
        if page is None:
            page = self._pages[number] = {}
            if self._far.pop(number, None) is not None:
                page.update(pickle.loads(self._store.load(f"{self._name}/{number}") or b""))
                self._next_far = min(self._far.values(), default=None)
                self._heap.extend(page)
                heapify(self._heap)
        return page
