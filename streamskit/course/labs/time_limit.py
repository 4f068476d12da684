"""How long a check waits for an answer, which may never come to an end, and what an interruption has to wait for."""

import _thread
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any] | int
"""What Python has for a signal: a function, or one of the two numbers for the system's own way and for none."""

AGAIN_SECONDS = 30.0
"""How long after an interruption the next one comes, if the answer has caught it and goes on."""


class TookTooLong(KeyboardInterrupt):
    """Raised in code whose time is over; like Ctrl-C, so that no `except Exception` keeps it going."""


class _Interruptions:
    """Interrupts the main thread when a time is over, and again while it goes on.

    Args:
        seconds: the time.
        before: the handler of SIGINT so far, which other interruptions get.
    """

    def __init__(self, seconds: float, before: Handler) -> None:
        self.is_late, self.counts = False, True
        self._seconds, self._over = seconds, threading.Event()
        self._before: Handler = before
        self._thread = threading.Thread(target=self._watch, name="streamskit: time limit", daemon=True)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGINT, in the main thread."""
        if self.is_late:
            if self.counts:
                raise TookTooLong
        elif callable(self._before):
            self._before(number, frame)
        elif self._before is signal.SIG_DFL:
            raise KeyboardInterrupt

    def start(self) -> None:
        """Begin to measure."""
        signal.signal(signal.SIGINT, self)
        self._thread.start()

    def end(self) -> None:
        """Interrupt nothing any more."""
        self._over.set()
        self._thread.join(AGAIN_SECONDS)  # it has nothing to do any more
        is_its_own = signal.getsignal(signal.SIGINT) is self
        if is_its_own:  # Spark's start may have put another there
            signal.signal(signal.SIGINT, self._before)

    def _watch(self) -> None:
        wait = self._seconds
        while not self._over.wait(wait):
            self.is_late, wait = True, AGAIN_SECONDS
            _interrupt_main()


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Interrupt what runs in this block if it takes longer than so many seconds.

    Only the main thread can be interrupted; in any other there is no limit. On Windows, a call that waits outside of
    Python, such as one of Spark, is interrupted only when it returns.

    Raises:
        TookTooLong: it took longer.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    interruptions = _Interruptions(seconds, before)
    interruptions.start()
    try:
        try:
            yield
        finally:
            interruptions.counts = False
    except KeyboardInterrupt as interruption:
        if not interruptions.is_late or isinstance(interruption, TookTooLong):
            raise
        raise TookTooLong from interruption
    finally:
        interruptions.end()


@contextmanager
def finished_first() -> Iterator[None]:
    """Let this block come to its end; an interruption, as by Ctrl-C, is raised after it, and a second one at once.

    For what takes things down: half of it would leave the rest behind. Other threads are never interrupted.
    """
    before, held = signal.getsignal(signal.SIGINT), list[int]()
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def hold(number: int, frame: FrameType | None) -> None:
        held.append(number)
        if len(held) > 1:
            signal.signal(signal.SIGINT, before)
            signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is hold:
            signal.signal(signal.SIGINT, before)
        if len(held) == 1:
            signal.raise_signal(signal.SIGINT)


def _interrupt_main() -> None:
    """Interrupt the main thread, where the system can do that even while it waits for something."""
    if sys.platform == "win32":
        _thread.interrupt_main()
    else:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
