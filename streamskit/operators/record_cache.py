"""Record cache: the updates of a table in a task, merged by key until a commit or a lack of room passes them on."""

from collections.abc import Callable
from dataclasses import dataclass

from streamskit.operators.records import SOURCE_ROW, Output, SourceRecord, source_output

CACHE_BYTES = 10 * 1024 * 1024
"""How many bytes the record caches of a task hold, unless the application says otherwise."""

ENTRY_BYTES = 80
"""How many bytes an entry of the record cache takes beside key and value, about."""

VALUES, NO_VALUES = slice(2, 6), (None, None, None, None)
"""Where an output has its values, new and old; and what is there for a row that was created and deleted again."""

_new = tuple.__new__
"""Makes an `Output` from a tuple, at half the cost of calling Output."""


@dataclass
class CacheRoom:
    """How many bytes the record caches of a task hold together, and how many they may.

    Mirrors `org.apache.kafka.streams.state.internals.ThreadCache`.
    """

    max_bytes: int
    used: int = 0


class RecordCache:
    """Record cache: merges the updates of one key, until the end of the micro-batch flushes it, or there is no room.

    Of a key's updates the last one counts; its old value is the one from before the first of them. A row that was
    created and deleted again in between leaves no trace. Results are emitted in the order of the keys' last updates.
    Mirrors `org.apache.kafka.streams.state.internals.NamedCache`, which flushes all that has changed when it has to
    make room for one update, but keeps what it has passed on, to be read.

    Args:
        room: what the caches of the task share.
        forward: passes its updates on when there is no room.
        source: returns the record in hand, where each update is preceded by the one that it was made from; None where
            nobody asks. Mirrors the record context of an `LRUCacheEntry`.
    """

    def __init__(
        self,
        room: CacheRoom,
        forward: Callable[[list[Output]], None],
        source: Callable[[], SourceRecord] | None = None,
    ) -> None:
        self._updates: dict[bytes | None, Output] = {}
        self._sources: dict[bytes | None, SourceRecord] = {}
        self._room, self._bytes, self._forward, self._source = room, 0, forward, source

    def add(self, output: Output) -> None:
        """Add one update."""
        key, value = output[1], output[2]
        earlier = self._updates.pop(key, None)
        if earlier is not None:
            # What _replace does, in a quarter of the time: old and other_old come from the earlier update.
            output = _new(Output, (*output[:3], earlier[3], output[4], earlier[5], *output[6:]))
            size = len(value or b"") - len(earlier[2] or b"")
        else:
            size = ENTRY_BYTES + len(key or b"") + len(value or b"")
        self._bytes += size
        self._room.used += size
        self._updates[key] = output
        if self._source is not None:
            self._sources[key] = self._source()
        if self._room.used > self._room.max_bytes:
            self._forward(self.flush())

    def flush(self) -> list[Output]:
        """Return the merged updates, and forget them."""
        merged = [update for update in self._updates.values() if update[VALUES] != NO_VALUES]
        if self._source is not None:
            merged = self._behind_sources(merged)
        self._updates.clear()
        self._sources.clear()
        self._room.used -= self._bytes
        self._bytes = 0
        return merged

    def _behind_sources(self, updates: list[Output]) -> list[Output]:
        """Return updates, each behind the record that it was made from, unless that is the one before it too."""
        found: list[Output] = []
        source = None
        for update in updates:
            before, source = source, self._sources[update.key]
            if source is not before:
                found.append(source_output(SOURCE_ROW, source))
            found.append(update)
        return found
