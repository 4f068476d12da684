"""State in pages: a task's rows and time-ordered entries, packed into a few values of the state store.

One call to Spark's state store costs as much for a few rows as for a single one. So rows are hashed to small pages
(`PagedTable`), and entries that fall due in order of time share a page per stretch of time (`TimeOrderedMap`). A page
is loaded when it is first needed and saved when a micro-batch has changed it.
"""

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any, Protocol
from zlib import crc32

from streamskit.operators import plain_data

PAGE_BYTES = 400
"""How large the pages of a table are on average. A row that changes writes its page: small pages write little, and
large ones take few calls for a micro-batch that changes most rows."""

MANY = 64
"""The number of pages from which reading all pages of a task at once is cheaper than requesting each."""

MOST_AT_ONCE = 64 * 1024 * 1024
"""How many bytes of a table are read at once at most: they stay in memory until the end of the micro-batch."""

VISITS = 64
"""After how many micro-batches each page of a table was looked at for rows that have expired."""

Rows = dict[bytes, Any]

Entry = tuple[Any, ...]
"""Begins with a time in milliseconds; the rest orders entries of the same time."""


class PageStore(Protocol):
    """Where pages live between two micro-batches: Spark's state store, or a dict in tests."""

    def load(self, page: str) -> bytes | None:
        """Return what was saved under a name, or None."""

    def load_all(self) -> Iterable[tuple[str, bytes]]:
        """Return all that was saved, each with its name."""

    def save(self, page: str, data: bytes | None) -> None:
        """Save data under a name; None deletes it."""


class NoPages:
    """A page store that is always empty and keeps nothing, for operators that run only once."""

    def load(self, page: str) -> bytes | None:
        """Return nothing."""
        return None

    def load_all(self) -> Iterable[tuple[str, bytes]]:
        """Return nothing."""
        return ()

    def save(self, page: str, data: bytes | None) -> None:
        """Forget the data."""


class MemoryPages:
    """A page store in memory, for operators that live as long as their process."""

    def __init__(self) -> None:
        self._pages: dict[str, bytes] = {}

    def load(self, page: str) -> bytes | None:
        """Return what was saved under a name, or None."""
        return self._pages.get(page)

    def load_all(self) -> Iterable[tuple[str, bytes]]:
        """Return all that was saved, each with its name."""
        return self._pages.items()

    def save(self, page: str, data: bytes | None) -> None:
        """Save data under a name; None deletes it."""
        if data is None:
            self._pages.pop(page, None)
        else:
            self._pages[page] = data


class PagedTable:
    """Rows by key, in pages that are loaded when first needed and saved when changed.

    A table begins with one page and gets more as it grows, so that a page stays small and a micro-batch writes about
    what it changes: linear hashing. Page n is split when the table has grown by a page's worth, each page in turn.
    There are no more pages than rows, however large these are.

    Args:
        name: the table's name, of which its pages' names are made.
        store: where the pages live.
        expire: deletes what is too old from the value of a row, which is a list or dict; a row that is then empty is
            deleted as well. Called for the rows of a page before it is saved.
        known: returns what the table remembers about itself from one micro-batch to the next: the number of its pages,
            the bytes and rows in them, and the next page to check for expired rows. Called when this is first
            needed.
    """

    def __init__(
        self,
        name: str,
        store: PageStore,
        expire: Callable[[Any], None] | None = None,
        known: Callable[[], dict[str, Any]] = dict,
    ) -> None:
        self.name, self.expire = name, expire
        self._store, self._ask = store, known
        self._known: dict[str, Any] = {}
        self._count = 0
        self._pages: dict[int, Rows] = {}
        self._sizes: dict[int, int] = {}
        self._rows: dict[int, int] = {}
        self._changed: set[int] = set()
        self._last: tuple[bytes | None, int, Rows] = None, 0, {}

    def page(self, key: bytes) -> Rows:
        """Return the page of `key`, to read only."""
        return self._found(key)[2]

    def changed_page(self, key: bytes) -> Rows:
        """Return the page of `key`, to be changed: it will be saved."""
        _, number, page = self._found(key)
        self._changed.add(number)
        return page

    def items(self) -> Iterator[tuple[bytes, Any]]:
        """Return all rows, in the order of their keys' bytes; loads every page."""
        self._load_all()
        return iter(sorted((row for page in self._pages.values() for row in page.items()), key=lambda row: row[0]))

    def save(self) -> None:
        """Save the pages that were changed."""
        if not self._changed:
            return
        self._last = None, 0, {}
        if self.expire is not None:
            self._expire()
        total, rows = self._known.get("bytes", 0), self._known.get("rows", 0)
        while True:
            grown, added = self._save_changed()
            total, rows = total + grown, rows + added
            wanted = min(total // PAGE_BYTES, rows) + 1
            if wanted <= self._count:
                break
            self._grow(wanted)
        if not total:
            self._count, self._pages, self._sizes, self._rows = 1, {0: {}}, {}, {}  # it is empty: no page is stored
        self._known.update(pages=self._count, bytes=total, rows=rows)

    def _found(self, key: bytes) -> tuple[bytes | None, int, Rows]:
        """Return a key with the number of its page, and the page."""
        if key is not self._last[0]:  # a row is read and written again, as a rule
            number = self._number(key)
            page = self._pages.get(number)
            self._last = key, number, self._load(number) if page is None else page
        return self._last

    def _number(self, key: bytes) -> int:
        """Return the number of a key's page; pages that have not been split yet use one bit less of the hash."""
        count = self._count or self._open()
        whole = 1 << count.bit_length() - 1
        number = crc32(key) & 2 * whole - 1
        return number - whole if number >= count else number

    def _open(self) -> int:
        self._known = self._ask()
        self._count = self._known.get("pages", 1)
        return self._count

    def _save_changed(self) -> tuple[int, int]:
        """Save the pages that were changed, and return by how many bytes and rows they have grown."""
        grown = added = 0
        for number in sorted(self._changed):
            page = self._pages[number]
            data = plain_data.dumps(page) if page else None
            size = len(data or b"")
            if size or self._sizes.get(number):
                self._store.save(self._page_name(number), data)
            grown += size - self._sizes.get(number, 0)
            added += len(page) - self._rows.get(number, 0)
            self._sizes[number], self._rows[number] = size, len(page)
        self._changed.clear()
        return grown, added

    def _grow(self, count: int) -> None:
        """Grow to `count` pages, and move the rows of those that are split."""
        if count >= 2 * self._count:  # most rows move: all at once
            self._load_all()
            rows = [row for page in self._pages.values() for row in page.items()]
            self._count = count
            self._pages = {number: {} for number in range(count)}
            for key, value in rows:
                self._pages[self._number(key)][key] = value
            self._changed.update(range(count))
            return
        for new in range(self._count, count):
            old = new - (1 << new.bit_length() - 1)
            page = self._load(old)
            self._count = new + 1
            moved = {key: value for key, value in page.items() if self._number(key) == new}
            if moved:
                self._pages[old] = {key: value for key, value in page.items() if key not in moved}
                self._changed.add(old)
            self._pages[new] = moved
            self._changed.add(new)

    def _expire(self) -> None:
        """Delete what has expired from the changed pages, and from some others.

        A page whose keys are never seen again would keep its old rows, so every batch visits a few others, in turn.
        """
        turn = self._known.get("turn", 0)
        visited = [number % self._count for number in range(turn, turn + 1 + self._count // VISITS)]
        self._known["turn"] = (visited[-1] + 1) % self._count
        for number in sorted(self._changed.union(visited)):
            page = self._load(number)
            before = len(page), sum(map(len, page.values()))
            for key, value in list(page.items()):
                self.expire(value)  # type: ignore[misc]  # checked before
                if not value:
                    del page[key]
            if before != (len(page), sum(map(len, page.values()))):
                self._changed.add(number)

    def _load(self, number: int) -> Rows:
        if number not in self._pages:
            is_small = self._known.get("bytes", 0) <= MOST_AT_ONCE
            if is_small and len(self._pages) >= MANY and len(self._pages) > self._count // 4:
                self._load_all()  # one by one, each page would take its own call
                return self._pages[number]
            self._take(number, self._store.load(self._page_name(number)))
        return self._pages[number]

    def _load_all(self) -> None:
        missing = [number for number in range(self._count or self._open()) if number not in self._pages]
        if len(missing) < MANY:
            for number in missing:
                self._take(number, self._store.load(self._page_name(number)))
            return
        prefix = f"{self.name}/"
        stored = {page: data for page, data in self._store.load_all() if page.startswith(prefix)}
        for number in missing:
            self._take(number, stored.get(self._page_name(number)))

    def _take(self, number: int, data: bytes | None) -> None:
        self._pages[number] = {} if data is None else plain_data.loads(data)
        self._sizes[number], self._rows[number] = len(data or b""), len(self._pages[number])

    def _page_name(self, number: int) -> str:
        return f"{self.name}/{number:x}"


class Memory:
    """A few named values that operators remember, such as stream time: one page for a whole task."""

    PAGE = "memory"

    def __init__(self, store: PageStore) -> None:
        self._store = store
        data = store.load(self.PAGE)
        self._saved = data
        self._values: dict[str, dict[str, Any]] = {} if data is None else plain_data.loads(data)

    def of(self, name: str) -> dict[str, Any]:
        """Return the values of one operator or store; changes to them are saved."""
        return self._values.setdefault(name, {})

    def save(self) -> None:
        """Save the values, if any has changed."""
        data = plain_data.dumps(self._values)
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
        self._far: dict[int, int] = {} if data is None else plain_data.loads(data)
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
                self._store.save(f"{self._name}/{number}", plain_data.dumps(page) if page else None)
        self._changed.clear()
        near = {number: min(page)[0] for number, page in self._pages.items() if page}
        times = self._far | near
        self._stored = set(times)
        self._store.save(f"{self._name}/times", plain_data.dumps(times) if times else None)

    def _page(self, number: int) -> dict[Entry, Any]:
        page = self._pages.get(number)
        if page is None:
            page = self._pages[number] = {}
            if self._far.pop(number, None) is not None:
                page.update(plain_data.loads(self._store.load(f"{self._name}/{number}") or b""))
                self._next_far = min(self._far.values(), default=None)
                self._heap.extend(page)
                heapify(self._heap)
        return page
