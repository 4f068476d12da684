"""How far topics have been read, by one thread that reads and others that wait for it."""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Generic, TypeVar

from streamskit.common.errors import StreamsError

Place = TypeVar("Place", bound=tuple[str, int])
"""A topic and a partition."""


class ReadingProgress(Generic[Place]):
    """The offsets up to which partitions were read.

    Args:
        what: who is served, for sentences such as "The stores are still 3 records behind".
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self.positions: dict[Place, int] = {}
        self.failure: StreamsError | None = None
        self.stopping = threading.Event()
        self._moved = threading.Condition()

    def move(self, positions: Mapping[Place, int]) -> None:
        """Note how far partitions were read."""
        with self._moved:
            self.positions.update(positions)
            self._moved.notify_all()

    def forget(self, partitions: Collection[Place]) -> None:
        """Note that partitions are not read any more."""
        with self._moved:
            for where in partitions:
                self.positions.pop(where, None)

    def raise_failure(self) -> None:
        """Raise what ended the reading, if something did."""
        if self.failure is not None:
            raise StreamsError(str(self.failure)) from self.failure

    def wait_for(self, offsets: Mapping[Place, int], deadline: float, check: Callable[[], None] = lambda: None) -> None:
        """Wait until all records before the given offsets were read.

        Args:
            offsets: for each partition the offset to reach.
            deadline: when to give up, as `time.monotonic()` counts.
            check: called now and then, to end the waiting by an error of its own.

        Raises:
            StreamsError: they were not by the deadline, or no more will be.
        """
        with self._moved:
            while behind := sum(max(0, end - self.positions.get(where, 0)) for where, end in offsets.items()):
                check()
                self.raise_failure()
                if self.stopping.is_set():
                    raise StreamsError(f"{self._what} are {behind} records behind, and stopped: nothing reads on.")
                if time.monotonic() > deadline:
                    raise StreamsError(f"{self._what} are still {behind} records behind their topics: wait longer.")
                self._moved.wait(0.1)


def join(thread: threading.Thread, timeout: float) -> None:
    """Wait for a thread to end, unless it was never started or is the one that asks."""
    if thread.is_alive() and thread is not threading.current_thread():
        thread.join(timeout)
