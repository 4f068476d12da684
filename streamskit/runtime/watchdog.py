"""Notices when a part of an application dies: a thread that ends by itself would leave it RUNNING and doing nothing."""

from collections.abc import Callable, Mapping

from streamskit.runtime.periodic import Periodic

EVERY_SECONDS = 1.0


class Watchdog(Periodic):
    """Looks every second whether the parts of an application live, in a thread of its own.

    Args:
        parts: returns by name whether each part is alive.
        died: called once for each part that is no longer alive.
    """

    def __init__(self, parts: Callable[[], Mapping[str, bool]], died: Callable[[str], None]) -> None:
        super().__init__("watchdog", EVERY_SECONDS)
        self._parts, self._died = parts, died
        self._dead: set[str] = set()

    def turn(self) -> None:
        """Look once."""
        for name, lives in self._parts().items():
            if not lives and name not in self._dead and not self._stopping.is_set():
                self._dead.add(name)
                self._died(name)
