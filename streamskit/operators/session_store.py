"""The store of an aggregation by sessions: for each key its sessions, until their retention has passed."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from streamskit.operators.pages import Rows
from streamskit.operators.stream_task import OperatorContext
from streamskit.operators.timeline import Timeline, width_for

SEGMENT = 60_000
"""Kafka Streams deletes old rows in segments of half the retention, but no less than so many milliseconds."""


Session = tuple[int, int, Any]
"""End, start and value of one session of a key; both times are included, and sessions are in order of their ends."""


class BytesSessionStore:
    """A table of keys, sessions and values. Mirrors `org.apache.kafka.streams.state.SessionStore`.

    Args:
        task: the task whose state it is part of.
        name: the store's name.
        retention: in milliseconds; older sessions are not found any more.
        by_time: also keeps the sessions in the order of their ends, to give them out when they close.
    """

    def __init__(self, task: OperatorContext, name: str, retention: int, by_time: bool = False) -> None:
        self._table = task.table(name, self._clean)
        self._memory = task.memory_of(name)
        self._memory.setdefault("latest end", -1)
        self._retention, self._segment = retention, max(retention // 2, SEGMENT)
        self._timeline = Timeline(f"{name}/ends", task.pages, width_for(retention)) if by_time else None
        if self._timeline is not None:
            task.keep(self._timeline)

    def find_sessions(self, key: bytes, earliest_end: int, latest_start: int) -> list[Session]:
        """Return a key's sessions that end at a time or later and start at another or earlier, in order."""
        sessions: list[Session] | None = self._table.look_at(key).get(key)
        if sessions is None:
            return []
        earliest_end = max(earliest_end, self._memory["latest end"] - self._retention + 1)
        # The sessions that matter are the last ones nearly always.
        if sessions[-1][0] < earliest_end:
            return []
        first = bisect_left(sessions, (earliest_end,))
        return [session for session in sessions[first:] if session[1] <= latest_start]

    def put(self, key: bytes, start: int, end: int, value: Any) -> None:
        """Set the value of a key's session; None deletes it."""
        if end > self._memory["latest end"]:
            self._memory["latest end"] = end
        if value is None:
            return self.remove(key, start, end)
        sessions: list[Session] = self._table.change(key).setdefault(key, [])
        place = bisect_left(sessions, (end, start))
        if place < len(sessions) and sessions[place][:2] == (end, start):
            sessions[place] = (end, start, value)
            return None
        sessions.insert(place, (end, start, value))
        if self._timeline is not None:
            self._timeline.put((end, start, key), True)
        # Whenever a key's sessions have doubled, those that are too old go: it costs little for each session.
        size = len(sessions)
        if size >= 16 and size & (size - 1) == 0:
            self._forget(sessions)
        return None

    def remove(self, key: bytes, start: int, end: int) -> None:
        """Delete a key's session, if it is there."""
        rows = self._table.change(key)
        sessions: list[Session] = rows.get(key, [])
        place = bisect_left(sessions, (end, start))
        if place < len(sessions) and sessions[place][:2] == (end, start):
            del sessions[place]
            if not sessions:
                del rows[key]
            if self._timeline is not None:
                self._timeline.pop((end, start, key))

    def take_closed(self, last: int) -> Iterator[tuple[bytes, Session]]:
        """Yield, once, the sessions that end no later than `last`, in the order of end, start and key.

        Needs a store `by_time`.
        """
        timeline = self._timeline
        if timeline is None:
            raise ValueError("Only a store by time knows its closed sessions: make it with by_time=True.")
        for (end, start, key), _ in timeline.take_until(last):
            sessions: list[Session] = self._table.look_at(key).get(key, [])
            place = bisect_left(sessions, (end, start))
            if end >= self._oldest_kept() and place < len(sessions) and sessions[place][:2] == (end, start):
                yield key, sessions[place]

    def _oldest_kept(self) -> int:
        latest: int = self._memory["latest end"]
        return (latest - self._retention) // self._segment * self._segment

    def _forget(self, sessions: list[Session]) -> None:
        oldest = self._oldest_kept()
        sessions[:] = [session for session in sessions if session[0] >= oldest]

    def _clean(self, rows: Rows) -> None:
        for key in list(rows):
            self._forget(rows[key])
            if not rows[key]:
                del rows[key]
