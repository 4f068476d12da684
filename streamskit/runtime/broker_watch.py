"""Notices when the broker is away, for how long, and when it is back."""

import threading
import time
from collections.abc import Callable

from streamskit.api.client_settings import BootstrapServers
from streamskit.common.durations import spell
from streamskit.common.errors import StreamsError
from streamskit.kafka.connection import answers
from streamskit.runtime.periodic import Periodic

EVERY_SECONDS = 1.0
ANSWER_SECONDS = 5.0
"""How long a broker that is merely busy may take to answer."""

AFTERMATH_SECONDS = 150.0
"""How long after an outage a request made during it may still fail: a producer's `delivery.timeout.ms` plus a bit."""


class BrokerWatch(Periodic):
    """Pings the broker every second, in its own thread.

    Args:
        bootstrap_servers: the broker's address.
        task_timeout: after how many milliseconds without an answer to give up.
        went: called when the broker stops answering.
        returned: called when it answers again, with the seconds that it was away.
        gave_up: called with the reason when it was away for too long; returns whether to wait as long again.
    """

    def __init__(
        self,
        bootstrap_servers: BootstrapServers,
        task_timeout: int,
        went: Callable[[], None],
        returned: Callable[[float], None],
        gave_up: Callable[[StreamsError], bool],
    ) -> None:
        super().__init__("broker watch", EVERY_SECONDS)
        self._bootstrap_servers, self._task_timeout = bootstrap_servers, task_timeout
        self._went, self._returned, self._gave_up = went, returned, gave_up
        self._here = threading.Event()
        self._here.set()
        self._answered_at = self._away_at = self._waiting_since = float("-inf")

    def start(self) -> None:
        """Start pinging; the broker has just answered."""
        self._answered_at = time.monotonic()
        super().start()

    def stop(self) -> None:
        """Stop pinging, and release all threads that wait for the broker."""
        super().stop()
        self._here.set()

    @property
    def is_away(self) -> bool:
        """Whether the broker did not answer when it was last asked."""
        return not self._here.is_set()

    @property
    def seconds_away(self) -> float:
        """For how long the broker has not answered; 0 when it does."""
        return time.monotonic() - self._answered_at if self.is_away else 0.0

    def was_away(self) -> bool:
        """Return whether the broker is away, or was away so recently that requests may still fail because of it."""
        # Ping first, so that what this watch's thread finds out meanwhile counts as well.
        return not self._asked() or self.is_away or time.monotonic() - self._away_at < AFTERMATH_SECONDS

    def wait_until_back(self) -> None:
        """Wait until the broker answers, or this watch is stopped."""
        while not self._stopping.is_set():
            self._here.wait()
            if self._asked():  # it may have gone a moment ago
                return

    def turn(self) -> None:
        """Ping the broker once."""
        asked_at = time.monotonic()
        if self._asked():
            self._note_answer(asked_at)
        elif not self._stopping.is_set():
            self._note_silence(asked_at)

    def _asked(self) -> bool:
        return answers(self._bootstrap_servers, ANSWER_SECONDS)

    def _note_answer(self, asked_at: float) -> None:
        seconds = self.seconds_away
        self._answered_at = asked_at
        if not self._here.is_set():
            self._here.set()
            self._returned(seconds)

    def _note_silence(self, asked_at: float) -> None:
        self._away_at = asked_at
        if self._here.is_set():
            self._here.clear()
            self._waiting_since = self._answered_at
            self._went()
        if asked_at - self._waiting_since >= self._task_timeout / 1000:
            again = self._gave_up(
                StreamsError(
                    f"The broker at {self._bootstrap_servers} has not answered for {self.seconds_away:.0f} s, longer "
                    f"than task_timeout allows ({spell(self._task_timeout)}). Bring it back: broker.restart(), or "
                    "`python -m streamskit broker status` says how the shared one is. A new KafkaStreams then goes on "
                    "where this one stopped."
                )
            )
            if again:
                self._waiting_since = asked_at
