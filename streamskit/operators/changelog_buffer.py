"""What changed in a processor's store, on its way to the changelog."""

from collections.abc import Callable

Emit = Callable[[bytes, bytes | None, int], None]
"""Writes a record to a changelog: key, value, timestamp."""


class ChangelogBuffer:
    """Passes on the updates of a store: each one, or (`folds`) the last of each key when the micro-batch ends.

    Mirrors `ChangeLoggingKeyValueBytesStore`, behind a `CachingKeyValueStore` where it folds.
    """

    def __init__(self, emit: Emit, folds: bool, now: Callable[[], int]) -> None:
        self._emit, self._folds, self._now = emit, folds, now
        self._latest: dict[bytes, tuple[bytes | None, int]] = {}

    def note(self, key: bytes, value: bytes | None, timestamp: int | None = None) -> None:
        """Take an update in; its time is that of the record in hand unless another is given."""
        time = self._now() if timestamp is None else timestamp
        if self._folds:
            self._latest[key] = value, time
        else:
            self._emit(key, value, time)

    def save(self) -> None:
        """Pass on what is left."""
        for key, (value, time) in self._latest.items():
            self._emit(key, value, time)
        self._latest.clear()
