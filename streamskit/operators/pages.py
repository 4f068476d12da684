"""State in pages: rows are hashed to a few pages, since one call for a page costs as much as one for a row."""

import pickle
from collections.abc import Callable, Iterator
from typing import Any, Protocol
from zlib import crc32

PAGES = 128
"""Pages of a table. A stored table keeps this number for good: another one would look for its rows in other pages."""

Rows = dict[bytes, Any]


class PageStore(Protocol):
    """Where pages live between two micro-batches: Spark's state store, or a dict in tests."""

    def load(self, page: str) -> bytes | None:
        """Return what was saved under a name, or None."""

    def save(self, page: str, data: bytes | None) -> None:
        """Save data under a name; None deletes it."""


class NoPages:
    """State that is not there, and is not kept."""

    def load(self, page: str) -> bytes | None:
        """Return nothing."""
        return None

    def save(self, page: str, data: bytes | None) -> None:
        """Keep nothing."""


class PagedTable:
    """Rows by key, in pages that are loaded when first needed and saved when changed.

    Args:
        name: the table's name, of which its pages' names are made.
        store: where the pages live.
        clean: is given the rows of a page before it is saved, to delete those that are too old.
    """

    def __init__(self, name: str, store: PageStore, clean: Callable[[Rows], None] | None = None) -> None:
        self.name = name
        self.clean = clean
        self._store = store
        self._pages: dict[int, Rows] = {}
        self._changed: set[int] = set()

    def look_at(self, key: bytes) -> Rows:
        """Return the page that has the row of `key`, or would have it: to look at, not to change."""
        number = crc32(key) % PAGES
        page = self._pages.get(number)
        return self._load(number) if page is None else page

    def change(self, key: bytes) -> Rows:
        """Return the page that has the row of `key`, or would have it: it will be saved."""
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
        if self.clean is not None and self._changed:
            self._clean_one_more()
        for number in sorted(self._changed):
            page = self._pages[number]
            if self.clean is not None:
                self.clean(page)
            self._store.save(self._page_name(number), pickle.dumps(page, protocol=5) if page else None)
        self._changed.clear()

    def _clean_one_more(self) -> None:
        # A page whose keys are never seen again would keep its old rows: every batch looks after one, in turn.
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
    """A few named values that operators remember, such as how far time has come: one page for a whole stage."""

    PAGE = "memory"

    def __init__(self, store: PageStore) -> None:
        self._store = store
        data = store.load(self.PAGE)
        self._saved = data
        self._values: dict[str, dict[str, Any]] = {} if data is None else pickle.loads(data)

    def of(self, name: str) -> dict[str, Any]:
        """Return the values of one operator or store; what is changed in them is saved."""
        return self._values.setdefault(name, {})

    def save(self) -> None:
        """Save the values, if any has changed."""
        data = pickle.dumps(self._values, protocol=5)
        if data != self._saved:
            self._store.save(self.PAGE, data)
            self._saved = data
