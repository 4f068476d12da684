"""Work that is done every few seconds beside the queries, in a thread of its own."""

import logging
import threading
from abc import ABC, abstractmethod

logger = logging.getLogger("streamskit")


class Periodic(ABC):
    """Does its work every few seconds until it is stopped; a subclass says what the work is.

    Args:
        name: what its thread is called.
        seconds: how long it waits before each turn.
    """

    def __init__(self, name: str, seconds: float) -> None:
        self._name, self._seconds = name, seconds
        self._stopping, self._has_last_turn = threading.Event(), False
        self._has_failed = False
        self._thread = threading.Thread(target=self._run, name=f"streamskit: {name}", daemon=True)

    def start(self) -> None:
        """Start, in its own thread; the first turn comes after one interval."""
        self._thread.start()

    def stop(self) -> None:
        """Start no further turn."""
        self._stopping.set()

    def finish(self, seconds: float) -> None:
        """Run one last turn, stop, and wait for both; do nothing if it does not run.

        Args:
            seconds: how long to wait at most.
        """
        if self._thread.is_alive() and not self._stopping.is_set():
            self._has_last_turn = True
            self.stop()
            self._thread.join(seconds)

    @property
    def lives(self) -> bool:
        """Whether its thread is alive; also true before it is started and after it was asked to stop."""
        return self._thread.ident is None or self._thread.is_alive() or self._stopping.is_set()

    @abstractmethod
    def turn(self) -> None:
        """Do the work once; exceptions are logged, and the next turn comes as usual."""

    def close(self) -> None:  # noqa: B027  most have nothing to let go of
        """Let go of what it has opened; called in its thread after the last turn."""

    def _run(self) -> None:
        try:
            while not self._stopping.wait(self._seconds):
                self._try()
            if self._has_last_turn:
                self._try()
        finally:
            self.close()

    def _try(self) -> None:
        try:
            self.turn()
            self._has_failed = False
        except Exception as failure:  # a full disk, too few file handles: the next turn may succeed
            if not self._has_failed:
                logger.warning("The %s failed, and tries again: %r", self._name, failure)
            logger.debug("The %s failed.", self._name, exc_info=True)
            self._has_failed = True
