"""`Feed`: data that never ends, for as long as you like: so many records a second, bursts, late and broken ones."""

import itertools
import threading
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from streamskit.common.durations import Duration, to_milliseconds
from streamskit.common.errors import StreamsError
from streamskit.faults.records import POISON
from streamskit.serdes import Serde

TICK = 0.2
"""How often records are sent, in seconds: so many at once as are due."""

MOST_PER_SECOND = 10_000
STOP_SECONDS = 45.0
"""How long a stop waits for records that are under way; a broker that is away is given up before that."""


class Producer(Protocol):
    """What a feed needs of a broker."""

    def produce(self, topic: str, records: Iterable[Any]) -> int:
        """Send records to a topic, and return their number once they are there."""


class Feed:
    """Sends records to a topic from `start()` to `stop()`, as a world does that does not wait for you.

    What is sent follows from the records, which a seed makes, and from what you ask for; only the pace is the clock's.
    `sent` has all records that can be read, in their order, so that results can be checked when the feed has stopped.

    Args:
        broker: where to.
        topic: the topic, which is there.
        records: those to send, without end: such as `plays()`, or the rest of a generator whose first ones are history.
        per_second: how many a second; it may be changed while the feed runs.
        value: the serde of the values; without it, text and dicts are sent as `broker.produce` sends them.
        broken: what broken records have in place of a value, in turn.

    Raises:
        StreamsError: nobody can send so many a second.

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
    ) -> None:
        self.topic, self.sent = topic, list[dict[str, Any]]()
        self.sent_late = self.sent_broken = 0
        self.trouble = ""
        """Why it has stopped by itself, if it has."""
        self._broker, self._records, self._value = broker, iter(records), value
        self._broken = itertools.cycle(broken)
        self._asking = threading.Lock()
        self._burst = self._late = self._poison = self._late_by = 0
        self._stop = threading.Event()
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
        if not 0 <= rate <= MOST_PER_SECOND:
            raise StreamsError(f"per_second={rate!r} cannot be sent: choose a number from 0 to {MOST_PER_SECOND:,}.")
        self._per_second = float(rate)

    @property
    def is_running(self) -> bool:
        """Whether it sends."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Begin to send, or go on behind the last record; does nothing where it runs."""
        if not self.is_running:
            self._stop.clear()
            self.trouble = ""
            self._thread = threading.Thread(target=self._run, name=f"streamskit: feed of {self.topic}", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Send no more; what was asked for before is sent first.

        Raises:
            StreamsError: records are under way, and the broker does not take them.
        """
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(STOP_SECONDS)
            if self._thread.is_alive():
                raise StreamsError(f"{self!r} does not end: the broker does not take what is under way. Is it there?")

    def burst(self, count: int) -> None:
        """Send so many records more, all at once."""
        with self._asking:
            self._burst += count

    def late(self, count: int, by: Duration = "1 hour") -> None:
        """Send so many records more whose timestamps are older than they should be.

        Args:
            count: how many.
            by: by how much, a duration.
        """
        milliseconds = to_milliseconds(by, "by")
        with self._asking:
            self._late, self._late_by = self._late + count, milliseconds

    def poison(self, count: int = 1) -> None:
        """Send so many records that no serde reads, each with the key of the next record."""
        with self._asking:
            self._poison += count

    def _run(self) -> None:
        last, owed, is_over = time.monotonic(), 0.0, False
        try:
            while not is_over:
                is_over = self._stop.wait(TICK)
                now = time.monotonic()
                owed += (now - last) * self._per_second
                last = now
                count, owed = int(owed), owed % 1
                is_over |= not self._send(count)
        except Exception as failure:  # said where people look: in a thread nobody would hear it
            self.trouble = str(failure)

    def _send(self, count: int) -> bool:
        """Send what is due and what was asked for; return whether there are more records."""
        with self._asking:
            count, late, poison, by = count + self._burst, self._late, self._poison, self._late_by
            self._burst = self._late = self._poison = 0
        usual, older = self._take(count), self._take(late)
        older = [each | {"timestamp": each["timestamp"] - by} for each in older]
        broken = [
            {"key": each.get("key"), "value": next(self._broken), "timestamp": each["timestamp"]}
            for each in self._take(poison)
        ]
        good = [*usual, *older]
        if good or broken:
            self._broker.produce(self.topic, [*map(self._written, good), *broken])
        self.sent += good
        self.sent_late += len(older)
        self.sent_broken += len(broken)
        return len(good) + len(broken) == count + late + poison

    def _take(self, count: int) -> list[dict[str, Any]]:
        return list(itertools.islice(self._records, count))

    def _written(self, record: dict[str, Any]) -> dict[str, Any]:
        return record if self._value is None else record | {"value": self._value.serialize(record["value"])}
