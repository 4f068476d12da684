"""Something done again and again, in a thread of its own, for as long as it is wanted."""

import threading
import time
from collections.abc import Callable

SHARE = 0.2
"""The most of one core's time that the beats may take: after a slow one the next waits longer."""


class Pulse:
    """Calls `beat` every `interval()` seconds while `wanted()`; when it no longer is, `rest()`, and the thread ends."""

    def __init__(
        self,
        beat: Callable[[], None],
        interval: Callable[[], float],
        wanted: Callable[[], bool],
        rest: Callable[[], None] = lambda: None,
    ) -> None:
        self._beat, self._interval, self._wanted, self._rest = beat, interval, wanted, rest
        self._wake, self._changing = threading.Event(), threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def is_beating(self) -> bool:
        """Whether the thread is there."""
        return self._thread is not None

    def start(self) -> None:
        """Begin to beat if it is wanted; if it beats already, beat now."""
        with self._changing:
            self._wake.set()
            if self._thread is None and self._wanted():
                self._thread = threading.Thread(target=self._run, name="streamskit-view", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while self._goes_on():
            self._wake.clear()
            began = time.perf_counter()
            self._beat()
            took = time.perf_counter() - began
            self._wake.wait(max(self._interval(), took / SHARE))
        self._rest()

    def _goes_on(self) -> bool:
        # Under the lock, so that a start() at the same moment sees either a thread that goes on or none.
        with self._changing:
            if not self._wanted():
                self._thread = None
            return self._thread is not None
