"""`Feed`: endless data for as long as you like, at a chosen rate, with bursts, late records and broken ones."""

import itertools
import math
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from streamskit.common.durations import Duration, to_milliseconds
from streamskit.common.errors import StreamsError
from streamskit.course.datasets.arguments import check_argument, is_finite
from streamskit.faults.records import POISON
from streamskit.serdes import Serde

TICK = 0.2
"""How often records are sent, in seconds: each time, as many as are due."""

ROUND = 5.0
"""After how many seconds a feed makes sure that what it has sent has arrived; each time it reconnects."""

MOST_PER_SECOND = 10_000
STOP_SECONDS = 45.0
"""How long a stop waits for records still being sent; an unavailable broker is given up on before that."""


class Producer(Protocol):
    """What a feed needs of a broker."""

    def produce(self, topic: str, records: Iterable[Any]) -> int:
        """Send records to a topic, and return their number once they have arrived."""


class Feed:
    """Sends records to a topic from `start()` to `stop()`, as in a world that does not wait for you.

    What is sent follows from the records, which a seed makes, and from what you ask for; only the pace is the clock's.
    `sent` has all readable records, in order, so that results can be checked when the feed has stopped;
    if it stopped because of an error, the last of them may not have arrived.

    Args:
        broker: the broker to send to.
        topic: the topic, which must exist.
        records: those to send, without end: such as `plays()`, or the rest of a generator whose first ones are history.
        per_second: how many a second; it may be changed while the feed runs.
        value: the serde of the values; without it, text and dicts are sent as `broker.produce` sends them.
        broken: what broken records have in place of a value, in turn.
        stop_at: after how many records it stops by itself; `start()` then continues without end. So everybody has the
            same records up to that point, however slow the machine is.

    Raises:
        StreamsError: `per_second` is out of range, `stop_at` is no whole number, or `broken` is empty or one value.

    >>> feed = Feed(broker, "music-plays", plays(), per_second=50)  # doctest: +SKIP
    >>> with feed:  # doctest: +SKIP
    ...     feed.burst(500)
    ...     feed.late(10, by="2 hours")
    ...     feed.poison(3)
    """

    def __init__(
        self,
        broker: Producer,
        topic: str,
        records: Iterable[dict[str, Any]],
        *,
        per_second: float = 20.0,
        value: Serde | None = None,
        broken: Sequence[bytes] = (POISON,),
        stop_at: int | None = None,
    ) -> None:
        self.topic, self.sent = topic, list[dict[str, Any]]()
        self.sent_late = self.sent_broken = 0
        self.trouble = ""
        """The error that stopped the feed, if there was one."""
        check_argument("Feed", "broken", broken)
        if stop_at is not None:
            check_argument("Feed", "stop_at", stop_at)
        self._broker, self._records, self._value = broker, iter(records), value
        self._broken = itertools.cycle(broken)
        self._asking = threading.Lock()
        self._burst = self._late = self._poison = self._late_by = self._at_least = 0
        self._stop_at: float = math.inf if stop_at is None else stop_at
        self._stop, self._is_over = threading.Event(), False
        self._due, self._last = 0.0, 0.0
        self._thread: threading.Thread | None = None
        self.per_second = per_second

    def __repr__(self) -> str:
        return f"<Feed of '{self.topic}': {self}>"

    def __str__(self) -> str:
        pace = f"{self.per_second:g} a second" if self.is_running else "stopped"
        return f"{pace}; {len(self.sent):,} sent, {self.sent_late:,} of them late, and {self.sent_broken:,} broken"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    @property
    def per_second(self) -> float:
        """How many records are sent a second; 0 sends only what is asked for."""
        return self._per_second

    @per_second.setter
    def per_second(self, rate: float) -> None:
        if not is_finite(rate) or not 0 <= rate <= MOST_PER_SECOND:
            raise StreamsError(f"per_second={rate!r} cannot be sent: choose a number from 0 to {MOST_PER_SECOND:,}.")
        self._per_second = float(rate)

    @property
    def is_running(self) -> bool:
        """Whether the feed is sending."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Begin to send, or continue after the last record; do nothing if the feed is running."""
        if not self.is_running:
            self._stop.clear()
            self._at_least = 0
            if len(self.sent) >= self._stop_at:
                self._stop_at = math.inf
            self.trouble, self._is_over = "", False
            self._due, self._last = 0.0, time.monotonic()
            self._thread = threading.Thread(target=self._run, name=f"streamskit: feed of {self.topic}", daemon=True)
            self._thread.start()

    def stop(self, at_least: int = 0) -> None:
        """Stop sending; what was requested before is sent first.

        Args:
            at_least: how many records to have sent in all by the end: what is missing is sent at once. So a notebook
                that runs from its first cell to its last has the same records each time.

        Raises:
            StreamsError: the broker does not accept the records still being sent.
        """
        self._at_least = at_least
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(STOP_SECONDS)
            if self._thread.is_alive():
                raise StreamsError(f"{self!r} does not end: the broker does not take its last records. Is it running?")

    def burst(self, count: int) -> None:
        """Send this many more records, all at once.

        Raises:
            StreamsError: that is no whole number from 0 on.
        """
        check_argument("burst", "count", count)
        with self._asking:
            self._burst += count

    def late(self, count: int, by: Duration = "1 hour") -> None:
        """Send this many more records, with timestamps older than they should be.

        Args:
            count: how many.
            by: by how much, a duration.

        Raises:
            StreamsError: `count` is no whole number from 0 on.
            ValueError: `by` is no duration.
        """
        check_argument("late", "count", count)
        milliseconds = to_milliseconds(by, "by")
        with self._asking:
            self._late, self._late_by = self._late + count, milliseconds

    def poison(self, count: int = 1) -> None:
        """Send this many records that no serde can read, each with the key of the next record.

        Raises:
            StreamsError: that is no whole number from 0 on.
        """
        check_argument("poison", "count", count)
        with self._asking:
            self._poison += count

    def _run(self) -> None:
        try:
            while not self._is_over:
                self._broker.produce(self.topic, self._round())
        except Exception as failure:  # kept for the panel: nobody would see an error in a thread
            missing = isinstance(failure, KeyError) and failure.args[0] in ("key", "value", "timestamp")
            self.trouble = f"A record has no {failure}." if missing else str(failure)

    def _round(self) -> Iterator[dict[str, Any]]:
        """Yield records as they become due, for some seconds, until the feed is stopped or there are none left."""
        ends = time.monotonic() + ROUND
        while not self._is_over and time.monotonic() < ends:
            is_told = self._stop.wait(TICK)
            now = time.monotonic()
            self._due += (now - self._last) * self._per_second
            self._last = now
            count, self._due = int(self._due), self._due % 1
            yield from self._asked_for(int(min(count, max(0, self._stop_at - len(self.sent)))))
            self._is_over |= is_told or len(self.sent) >= self._stop_at

    def _asked_for(self, count: int) -> Iterator[dict[str, Any]]:
        """Yield this many records, and any bursts, late and broken records that were requested."""
        with self._asking:
            count, late, poison, by = count + self._burst, self._late, self._poison, self._late_by
            self._burst = self._late = self._poison = 0
        if self._stop.is_set():
            count = max(count, self._at_least - len(self.sent) - late)
        for record in self._take(count):
            self.sent.append(record)
            yield self._written(record)
        for record in self._take(late):
            older = record | {"timestamp": record["timestamp"] - by}
            self.sent.append(older)
            self.sent_late += 1
            yield self._written(older)
        for record in self._take(poison):
            self.sent_broken += 1
            yield {"key": record.get("key"), "value": next(self._broken), "timestamp": record["timestamp"]}

    def _take(self, count: int) -> Iterator[dict[str, Any]]:
        """Yield the next records; if there are fewer than that, the feed is over."""
        for _ in range(count):
            try:
                yield next(self._records)
            except StopIteration:
                self._is_over = True
                return

    def _written(self, record: dict[str, Any]) -> dict[str, Any]:
        return record if self._value is None else record | {"value": self._value.serialize(record["value"])}
