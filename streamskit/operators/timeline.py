"""Entries in order of time, kept in pages by time, so that nothing is looked at before it is due."""

import pickle
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any

from streamskit.operators.pages import PageStore

Entry = tuple[Any, ...]
"""Begins with a time in milliseconds; the rest orders entries of the same time."""


class Timeline:
    """A map from entries to anything, read from the earliest entry on.

    Args:
        name: of which the pages' names are made.
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
        """Return what is at an entry, or None."""
        return self._page(entry[0] // self._width).get(entry)

    def put(self, entry: Entry, value: Any) -> None:
        """Set what is at an entry; it must not be None."""
        number = entry[0] // self._width
        page = self._page(number)
        self._changed.add(number)
        if entry not in page:
            heappush(self._heap, entry)
        page[entry] = value

    def pop(self, entry: Entry) -> Any:
        """Delete an entry and return what was there, or None."""
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
        """Yield and delete the entries of times up to `last`, the earliest first, each with what was there."""
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
        """Save the pages that were changed, and what is the earliest time in each."""
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


def width_for(span: int) -> int:
    """Return how wide pages should be for entries that stay for so many milliseconds: a few pages, but no crumbs."""
    return max(span // 4, 1000)
