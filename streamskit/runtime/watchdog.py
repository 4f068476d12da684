"""Notices when a part of an application dies: a thread that ends by itself would leave it RUNNING and doing nothing."""

import threading
from collections.abc import Callable, Mapping

EVERY_SECONDS = 1.0


class Watchdog:
    """Looks every second whether the parts of an application live, in a thread of its own.

    Args:
        parts: returns for each part, by its name, whether it lives.
        died: called once for each part that does so no more.
    """

    def __init__(self, parts: Callable[[], Mapping[str, bool]], died: Callable[[str], None]) -> None:
        self._parts, self._died = parts, died
        self._dead: set[str] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="streamskit: watchdog", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.wait(EVERY_SECONDS):
            for name, lives in self._parts().items():
                if not lives and name not in self._dead and not self._stopping.is_set():
                    self._dead.add(name)
                    self._died(name)
