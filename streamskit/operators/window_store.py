"""The store of a windowed aggregation: for each key its windows, until their retention has passed."""

from collections.abc import Iterator
from typing import Any

from streamskit.operators.pages import Rows
from streamskit.operators.stream_task import OperatorContext
from streamskit.operators.timeline import Timeline, width_for


class BytesWindowStore:
    """A table of keys, window starts and values. Mirrors `org.apache.kafka.streams.state.WindowStore`.

    A window is out of sight once the store has seen one that starts a retention later, and its memory is given back
    when its page is next written.

    Args:
        task: the task whose state it is part of.
        name: the store's name.
        retention: in milliseconds.
        by_time: also keeps the windows in the order of their starts, to give them out when they close. Such a store
            shows windows for one millisecond longer.
    """

    def __init__(self, task: OperatorContext, name: str, retention: int, by_time: bool = False) -> None:
        self._table = task.table(name, self._clean)
        self._memory = task.memory_of(name)
        self._memory.setdefault("latest start", -1)
        self._reach = retention if by_time else retention - 1
        self._timeline = Timeline(f"{name}/starts", task.pages, width_for(retention)) if by_time else None
        if self._timeline is not None:
            task.keep(self._timeline)

    def put(self, key: bytes, value: Any, start: int) -> None:
        """Set the value of a key's window; None deletes it."""
        windows = self.windows_of(key)
        if start not in windows:
            self.begin(key, windows, start)
        if value is None:
            windows.pop(start, None)
        else:
            windows[start] = value

    def windows_of(self, key: bytes) -> dict[int, Any]:
        """Return the windows of a key by their starts, to be changed; before one is added, `begin` it."""
        rows = self._table.change(key)
        windows: dict[int, Any] | None = rows.get(key)
        if windows is None:
            windows = rows[key] = {}
        return windows

    def begin(self, key: bytes, windows: dict[int, Any], start: int) -> None:
        """Note that a window is about to be added to those of a key."""
        if start > self._memory["latest start"]:
            self._memory["latest start"] = start
        if self._timeline is not None:
            self._timeline.put((start, key), True)
        # Whenever a key's windows have doubled, those that are too old go: it costs little for each window.
        size = len(windows)
        if size >= 16 and size & (size - 1) == 0:
            self._forget(windows)

    def fetch(self, key: bytes, start: int) -> Any:
        """Return the value of a key's window that starts at a time, or None."""
        windows = self._table.look_at(key).get(key)
        if windows is None or start < self._memory["latest start"] - self._reach:
            return None
        return windows.get(start)

    def fetch_range(self, key: bytes, first: int, last: int) -> list[tuple[int, Any]]:
        """Return starts and values of a key's windows that start between two times, both included, in order.

        Mirrors `WindowStore#fetch(key, timeFrom, timeTo)`.
        """
        windows = self._table.look_at(key).get(key)
        if windows is None:
            return []
        first = max(first, self._memory["latest start"] - self._reach)
        return [(start, windows[start]) for start in sorted(windows) if first <= start <= last]

    def fetch_all(self, first: int, last: int) -> list[tuple[bytes, int, Any]]:
        """Return key, start and value of all windows that start between two times, in the order of start and key."""
        first = max(first, self._memory["latest start"] - self._reach)
        found = [
            (key, start, value)
            for key, windows in self._table.items()
            for start, value in windows.items()
            if first <= start <= last
        ]
        return sorted(found, key=lambda window: (window[1], window[0]))

    def take_closed(self, last: int) -> Iterator[tuple[bytes, int, Any]]:
        """Yield, once, key, start and value of the windows that start no later than `last`, by start and key.

        Windows out of sight are passed over. Needs a store `by_time`.
        """
        timeline = self._timeline
        if timeline is None:
            raise ValueError("Only a store by time knows its closed windows: make it with by_time=True.")
        for (start, key), _ in timeline.take_until(last):
            value = self.fetch(key, start)
            if value is not None:
                yield key, start, value

    def _forget(self, windows: dict[int, Any]) -> None:
        seen_from = self._memory["latest start"] - self._reach
        for start in [start for start in windows if start < seen_from]:
            del windows[start]

    def _clean(self, rows: Rows) -> None:
        for key in list(rows):
            self._forget(rows[key])
            if not rows[key]:
                del rows[key]
