"""A store that keeps the versions of a row, so that one can ask what it was at a time."""

from bisect import bisect_right
from typing import NamedTuple

from streamskit.operators.pages import Rows
from streamskit.operators.stream_task import OperatorContext

Versions = list[tuple[int, bytes | None]]
"""Times from which on a row had a value, in order; None is a row that was deleted."""


class Put(NamedTuple):
    """What became of a version: whether it was taken in, and whether it is the latest of its row."""

    is_kept: bool
    is_latest: bool


class BytesVersionedStore:
    """A table of keys, times and values. Mirrors `org.apache.kafka.streams.state.VersionedKeyValueStore`.

    Args:
        task: the task whose state it is part of.
        name: the store's name.
        history: how far back versions are kept, in milliseconds, from the latest time the store has seen.
    """

    def __init__(self, task: OperatorContext, name: str, history: int) -> None:
        self._table, self._memory, self._history = task.table(name, self._clean), task.memory_of(name), history
        self._memory.setdefault("latest", -1)

    def get(self, key: bytes, as_of: int | None = None) -> bytes | None:
        """Return the value of `key`, now or as of a time in milliseconds, or None if there is none."""
        versions: Versions | None = self._table.look_at(key).get(key)
        if not versions:
            return None
        if as_of is None:
            return versions[-1][1]
        if as_of < self._memory["latest"] - self._history and as_of < versions[-1][0]:
            return None
        index = bisect_right(versions, as_of, key=_time)
        return versions[index - 1][1] if index else None

    def put(self, key: bytes, value: bytes | None, timestamp: int) -> Put:
        """Set the value of `key` from a time on; None deletes it. What is older than the history is not taken in."""
        memory = self._memory
        if timestamp < memory["latest"] - self._history:
            return Put(False, False)
        memory["latest"] = max(memory["latest"], timestamp)
        versions: Versions = self._table.change(key).setdefault(key, [])
        index = bisect_right(versions, timestamp, key=_time)
        if index and versions[index - 1][0] == timestamp:
            versions[index - 1] = (timestamp, value)
        else:
            versions.insert(index, (timestamp, value))
            index += 1
        is_latest = index == len(versions)
        self._forget(versions)
        return Put(True, is_latest)

    def _forget(self, versions: Versions) -> None:
        """Delete the versions that were over before the history begins."""
        begin = bisect_right(versions, self._memory["latest"] - self._history, key=_time)
        del versions[: max(begin - 1, 0)]
        if versions and versions[0][1] is None and versions[0][0] <= self._memory["latest"] - self._history:
            del versions[0]

    def _clean(self, rows: Rows) -> None:
        for key in list(rows):
            self._forget(rows[key])
            if not rows[key]:
                del rows[key]


def _time(version: tuple[int, bytes | None]) -> int:
    return version[0]
