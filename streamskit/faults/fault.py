"""`Fault`: something that was broken on purpose, and how to undo it."""

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

logger = logging.getLogger("streamskit")


class Fault:
    """What was done, what to watch, and how to undo it: by hand, by the end of a `with` block, or after a time.

    Args:
        description: what was done, a sentence.
        watch: what can be observed now, a sentence.
        way_back: what `undo` does, a sentence.
        undo: undoes it; it may raise an error that says what to do first.
        seconds: after how many seconds it is undone automatically; only by hand when not given.

    >>> with faults.pause_broker(None):  # doctest: +SKIP
    ...     streams.state
    <State.REBALANCING: 'REBALANCING'>
    """

    def __init__(
        self, description: str, watch: str, way_back: str, undo: Callable[[], object], seconds: float | None = None
    ) -> None:
        self.description, self.watch, self.way_back = description, watch, way_back
        self.trouble = ""
        self._undo, self._mending = undo, threading.Lock()
        self._undone = False
        self._until = None if seconds is None else time.monotonic() + seconds
        if seconds is not None:
            self._timer = threading.Timer(seconds, self._by_itself)
            self._timer.daemon = True
            self._timer.start()

    def __repr__(self) -> str:
        return f"{self.description}\n  now:   {self.state}\n  watch: {self.watch}\n  undo:  {self.way_back}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.undo()

    @property
    def is_active(self) -> bool:
        """Whether it has not been undone."""
        return not self._undone

    @property
    def seconds_left(self) -> float | None:
        """After how many seconds it is undone automatically; None if it never is."""
        return None if self._until is None else max(0.0, self._until - time.monotonic())

    @property
    def state(self) -> str:
        """The current state, in words: "lasts", "lasts 12 s more", "undone", or why it could not be undone."""
        if self._undone:
            return "undone"
        left = self.seconds_left
        return self.trouble or ("lasts" if left is None else f"lasts {left:.0f} s more")

    def undo(self) -> None:
        """Undo it now; do nothing if that is already done.

        Raises:
            StreamsKitError: it cannot be undone now; the sentence says what to do first.
        """
        with self._mending:
            if self._undone:
                return
            try:
                self._undo()
            except Exception as failure:
                self.trouble = str(failure)
                raise
            self._undone, self.trouble = True, ""

    def _by_itself(self) -> None:
        try:
            self.undo()
        except Exception as failure:
            logger.warning("A fault could not be undone: %s It was this: %s", failure, self.description)
