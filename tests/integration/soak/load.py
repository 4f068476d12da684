"""The records of a soak: a steady rate, bursts, partitions that lag or are hours apart, and what nobody can read."""

import queue
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from streamskit import Serdes
from streamskit.broker.base import Broker
from streamskit.kafka.topic_partition import partition_for
from tests.integration.soak.program import ACCOUNTS, INPUTS, OUTPUTS, PARTITIONS, rate

NUMBERS, ORDERS, BLOBS = 80.0, 20.0, 0.5
"""How many of each a second."""

SPEED = 20
"""How many seconds of event time pass in a second."""

HOURS_AGO = 48
APART = 2 * 3600 * 1000
"""How far apart neighbouring partitions are in event time, in milliseconds."""

HOT = 40
"""Accounts that have two fifths of all numbers."""


class Load:
    """Writes records until it is stopped, and knows all that it has written.

    Args:
        broker: where to.
        chance: what decides.
    """

    def __init__(self, broker: Broker, chance: random.Random) -> None:
        settings = {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 20, "enable.idempotence": True}
        limits = {"delivery.timeout.ms": 900_000, "message.max.bytes": 2_000_000}
        self._producer = Producer(settings | limits)
        self._chance = chance
        self._base = int(time.time() * 1000) - HOURS_AGO * 3600 * 1000
        self._began = time.monotonic()
        self._last = [0] * PARTITIONS
        self._held: dict[int, list[dict[str, Any]]] = {}
        self._until = [0.0] * PARTITIONS
        self._lock = threading.Lock()
        self._asked = queue.SimpleQueue[Callable[[], object]]()
        self.numbers: list[tuple[str, int, int, int]] = []
        """Of each number its key, itself, its timestamp and its partition."""
        self.orders = 0
        self.paid: list[int] = []
        """What joins of orders and payments give; known once all has been settled, as are the digests of blobs."""
        self.digests: list[str] = []
        self.notes: list[str] = []
        self._sent: dict[str, Counter[tuple[bytes, bytes]]] = defaultdict(Counter)
        self.refused: list[tuple[str, bytes, bytes]] = []
        """Topic, key and value of each record that the broker answered with an error; large values are short here."""
        self.blobs: dict[str, int] = {}
        self.poison: list[bytes] = []
        self.stopping, self.resting = threading.Event(), threading.Event()
        self.failure: BaseException | None = None

    @staticmethod
    def create_topics(broker: Broker) -> None:
        """Create the topics that are read and written."""
        large = {"max.message.bytes": "2000000"}
        broker.create_topics(*INPUTS, *OUTPUTS, partitions=PARTITIONS, config=large)

    def write_table(self) -> None:
        """Write the table, all of it earlier than any number."""
        for account in range(ACCOUNTS):
            self._send("accounts", f"a{account}", _eight_bytes(rate(account)), time=self._base - 7_200_000)
            if account % 1000 == 0:
                self._producer.poll(0)
        assert self._producer.flush(60) == 0, "the broker did not take the table"

    def run(self) -> None:
        """Write until it is stopped."""
        try:
            self._run()
        except BaseException as failure:
            self.failure = failure
            raise

    def _run(self) -> None:
        counts: dict[str, float] = defaultdict(float)
        before = time.monotonic()
        while not self.stopping.wait(0.05):
            now = time.monotonic()
            passed, before = min(now - before, 2.0), now
            if self.resting.is_set():
                continue
            for kind, per_second in (("number", NUMBERS), ("order", ORDERS), ("blob", BLOBS)):
                counts[kind] += passed * per_second
                while counts[kind] >= 1:
                    counts[kind] -= 1
                    getattr(self, f"_{kind}")()
            while not self._asked.empty():
                self._asked.get()()
            self._release(now)
            self._producer.poll(0)
        self._release(float("inf"))
        assert self._producer.flush(900) == 0, "the broker did not take all records"

    def settle(self, broker: Broker) -> None:
        """Take for written what is in the topics: of a broker that is killed nobody else knows.

        Its answer may have been an error though it has the record. `notes` tells of records that it acknowledged and
        that are not there, or there twice: an application can neither read the former nor leave out the latter.
        """
        taken = {topic: Counter(_pairs(broker, topic)) for topic in ("numbers", "orders", "payments", "blobs")}
        for topic, there in taken.items():
            sent, refused = self._sent[topic], Counter(pair[1:] for pair in self.refused if pair[0] == topic)
            lost, doubled = (sent - there - refused).total(), (there - sent).total()
            if lost or doubled:
                self.notes.append(f"{topic}: the broker or the producer has lost {lost}, and doubled {doubled}")
        values = Counter[bytes]()
        for (_, value), count in taken["numbers"].items():
            values[value] += count
        self.numbers = [each for each in self.numbers for _ in range(values[_eight_bytes(each[1])])]
        self.poison = [each for each in self.poison for _ in range(values[each])]
        meetings = {order: _times(taken, order) for order in range(self.orders)}
        self.paid = [order * 10 + order % 10 for order, times in meetings.items() for _ in range(times)]
        self.digests = [value.decode() for _, value in taken["blobs"].elements()]

    def hold_back(self, partition: int, seconds: float) -> None:
        """Let what is written to a partition of all topics come later, all at once."""
        with self._lock:
            self._until[partition] = time.monotonic() + seconds
            self._held.setdefault(partition, [])

    def add_large(self, count: int) -> None:
        """Write so many records of 100 kB and more."""
        for _ in range(count):
            self._asked.put(self._blob)

    def add_poison(self) -> None:
        """Write a number that is none."""
        self._asked.put(self._poison)

    def _poison(self) -> None:
        value = b"no number: %d" % len(self.poison)
        self.poison.append(value)
        self._send("numbers", f"a{self._chance.randrange(ACCOUNTS)}", value)

    def stream_times(self) -> list[int]:
        """Return the greatest timestamp of a number in each partition."""
        times = [0] * PARTITIONS
        for _, _, at, partition in self.numbers:
            times[partition] = max(times[partition], at)
        return times

    def _number(self) -> None:
        many = HOT if self._chance.random() < 0.4 else ACCOUNTS
        key, number = f"a{self._chance.randrange(many)}", len(self.numbers)
        at, partition = self._send("numbers", key, _eight_bytes(number))
        self.numbers.append((key, number, at, partition))

    def _order(self) -> None:
        key, number = f"o{self.orders}", self.orders
        at, _ = self._send("orders", key, _eight_bytes(number))
        self._send("payments", key, _eight_bytes(number % 10), time=at)
        self.orders += 1

    def _blob(self) -> None:
        number, length = len(self.blobs), self._chance.randrange(100_000, 500_000)
        name = f"{number:012}"
        self.blobs[name] = length
        self._send("blobs", f"b{number % 20}", name.encode() + self._chance.randbytes(length - 12))

    def _send(self, topic: str, key: str, value: bytes, time: int | None = None) -> tuple[int, int]:
        """Send a record, or keep it back; return its timestamp and its partition."""
        partition = partition_for(key.encode(), PARTITIONS)
        with self._lock:
            at = self._now(partition) if time is None else time
            self._sent[topic][key.encode(), _short(value)] += 1
            record = {"topic": topic, "key": key, "value": value, "partition": partition, "timestamp": at}
            if partition in self._held:
                self._held[partition].append(record)
            else:
                self._produce(record)
        return at, partition

    def _now(self, partition: int) -> int:
        passed = int((time.monotonic() - self._began) * 1000 * SPEED)
        self._last[partition] = max(self._last[partition], self._base + passed + partition * APART)
        return self._last[partition]

    def _release(self, now: float) -> None:
        with self._lock:
            for partition in [each for each in self._held if self._until[each] <= now]:
                for record in self._held.pop(partition):
                    self._produce(record)

    def _produce(self, record: dict[str, Any]) -> None:
        deadline = time.monotonic() + 900
        while time.monotonic() < deadline:
            try:
                self._producer.produce(**record, on_delivery=self._answered)
                return
            except BufferError:  # the broker is away
                self._producer.poll(0.5)
        raise AssertionError("the broker has taken no records for 15 minutes")

    def _answered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.refused.append((message.topic() or "", message.key() or b"", _short(message.value() or b"")))


def _eight_bytes(number: int) -> bytes:
    return number.to_bytes(8, "big")


def _times(taken: dict[str, Counter[tuple[bytes, bytes]]], order: int) -> int:
    """Return how many times an order meets its payment: once, unless one is not there or there twice."""
    key = f"o{order}".encode()
    return taken["orders"][key, _eight_bytes(order)] * taken["payments"][key, _eight_bytes(order % 10)]


def _pairs(broker: Broker, topic: str) -> Iterator[tuple[bytes, bytes]]:
    rows = broker.consume(topic, key=Serdes.byte_array(), value=Serdes.byte_array())
    return zip(rows["key"], map(_short, rows["value"]), strict=True)


def _short(value: bytes) -> bytes:
    """Return a value, of a large one its name and length."""
    return value if len(value) < 100 else b"%s:%d" % (value[:12], len(value))
