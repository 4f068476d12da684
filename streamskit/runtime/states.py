"""The states of an application, and the moves between them."""

import logging
import threading
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from enum import Enum

logger = logging.getLogger("streamskit")


class State(Enum):
    """What an application is doing. Mirrors `org.apache.kafka.streams.KafkaStreams.State`."""

    CREATED = "created"
    REBALANCING = "rebalancing"
    RUNNING = "running"
    PENDING_SHUTDOWN = "pending shutdown"
    NOT_RUNNING = "not running"
    PENDING_ERROR = "pending error"
    ERROR = "error"


ACTIVE = (State.RUNNING, State.REBALANCING)
"""The states of an application that processes records, or is about to."""

ENDING = (State.PENDING_ERROR, State.PENDING_SHUTDOWN)
"""The states of an application that is about to stop."""

ALLOWED = {
    State.CREATED: {State.REBALANCING, State.NOT_RUNNING, State.PENDING_SHUTDOWN},
    State.REBALANCING: {State.RUNNING, State.PENDING_SHUTDOWN, State.PENDING_ERROR},
    State.RUNNING: {State.REBALANCING, State.PENDING_SHUTDOWN, State.PENDING_ERROR},
    State.PENDING_SHUTDOWN: {State.NOT_RUNNING},
    State.PENDING_ERROR: {State.ERROR},
    State.ERROR: {State.PENDING_SHUTDOWN},
    State.NOT_RUNNING: set(),
}

Listener = Callable[[State, State], None]


class StateMachine:
    """Holds an application's state and notifies the listeners of each move, with (new, old)."""

    def __init__(self) -> None:
        self.state = State.CREATED
        self._listeners: list[Listener] = []
        self._moving = threading.Condition()
        self._held_by: set[str] = set()
        self._ending_threads: set[int] = set()

    def add_listener(self, listener: Listener) -> None:
        """Call `listener(new, old)` at each move from now on."""
        self._listeners.append(listener)

    def move(self, new: State) -> bool:
        """Go to `new` and return True, or stay and return False where that move makes no sense."""
        with self._moving:
            old = self._change(new)
        return self._told(new, old)

    def hold(self, reason: str) -> bool:
        """Be REBALANCING until this reason and all others are released; return whether that was a move."""
        with self._moving:
            self._held_by.add(reason)
            old = self._change(State.REBALANCING)
        return self._told(State.REBALANCING, old)

    def release(self, reason: str) -> None:
        """Forget a reason to be REBALANCING; without any left, go to RUNNING."""
        with self._moving:
            self._held_by.discard(reason)
            old = None if self._held_by else self._change(State.RUNNING)
        self._told(State.RUNNING, old)

    def is_held(self, reason: str) -> bool:
        """Return whether this is a reason to be REBALANCING now."""
        return reason in self._held_by

    def await_none_of(self, states: Container[State], seconds: float) -> bool:
        """Wait until the state is none of these, and return whether that happened in time.

        A thread that is ending the application does not wait for itself, as in a state listener or a signal's handler.
        """
        with self._moving:
            if threading.get_ident() in self._ending_threads:
                seconds = 0.0
            return self._moving.wait_for(lambda: self.state not in states, seconds)

    @contextmanager
    def ending_here(self) -> Iterator[None]:
        """Say that this thread ends the application in a `with`, listeners included."""
        thread = threading.get_ident()
        is_nested = thread in self._ending_threads
        self._ending_threads.add(thread)
        try:
            yield
        finally:
            if not is_nested:
                self._ending_threads.discard(thread)

    def _change(self, new: State) -> State | None:
        """Go to `new` and return the state before it, or stay and return None."""
        old = self.state
        if new not in ALLOWED[old]:
            return None
        self.state = new
        self._moving.notify_all()
        return old

    def _told(self, new: State, old: State | None) -> bool:
        """Notify the listeners of a move and return True, or return False if there was none."""
        if old is None:
            return False
        for listener in self._listeners:
            try:
                listener(new, old)
            except Exception:
                logger.exception("A state listener failed at %s; the application goes on.", new.name)
        return True
