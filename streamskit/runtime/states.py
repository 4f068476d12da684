"""The states of an application, and the moves between them."""

import logging
import threading
from collections.abc import Callable
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
    """Holds an application's state and tells the listeners each move, as (new, old)."""

    def __init__(self) -> None:
        self.state = State.CREATED
        self._listeners: list[Listener] = []
        self._moving = threading.RLock()

    def add_listener(self, listener: Listener) -> None:
        """Call `listener(new, old)` at each move from now on."""
        self._listeners.append(listener)

    def move(self, new: State) -> bool:
        """Go to `new` and return True, or stay and return False where that move makes no sense."""
        with self._moving:
            old = self.state
            if new not in ALLOWED[old]:
                return False
            self.state = new
        for listener in self._listeners:
            try:
                listener(new, old)
            except Exception:
                logger.exception("A state listener failed at %s; the application goes on.", new.name)
        return True
