"""Sends records at random moments, and looks for what becomes of each: in a topic, a store, a view, or over REST."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from streamskit.broker.base import Broker
from streamskit.environment.processes import eventually, wait_until
from streamskit.state.read_only import ReadOnlySessionStore, ReadOnlyWindowStore
from streamskit.widgets import StoreView

Look = Callable[[set[str]], set[str]]
"""Takes the keys that are awaited, and returns those that have come."""

TOPICS = ("orders", "payments", "users", "out")
PARTITIONS = 2
EVERY_SECONDS = 0.1
WARM_UPS = 20
AGAIN_SECONDS, ATTEMPTS = 10.0, 12


def make_topics(broker: Broker, probes: int) -> None:
    """Create the topics of all programs, with a user of each key that is going to be sent."""
    broker.delete_topics(*TOPICS, missing_ok=True)
    broker.create_topics(*TOPICS, partitions=PARTITIONS)
    broker.produce("users", [{"key": key, "value": f"name of {key}"} for key in (*_warm_ups(), *_keys(probes))])


def time_probes(broker: Broker, look: Look, probes: int, others: int = 0, payments: bool = False) -> list[float]:
    """Send orders, each with a key of its own, and return how many seconds each took to be seen.

    Args:
        broker: where to send them.
        look: finds those that have come.
        probes: how many, ten a second.
        others: how many other records a second come beside them.
        payments: whether each order's payment comes just before it.
    """
    sender, stopping, chance = _Sender(broker, payments), threading.Event(), random.Random(17)
    threads = [
        threading.Thread(target=sender.watch, args=(look, stopping), daemon=True),
        threading.Thread(target=_send_others, args=(broker, others, stopping), daemon=True),
    ]
    for thread in threads:
        thread.start()
    for key in _warm_ups():  # until the program runs, and has compiled what it needs
        sender.send_until_seen(key)
    sender.took.clear()
    for key in _keys(probes):
        sender.send(key)
        time.sleep(chance.uniform(0.5, 1.5) * EVERY_SECONDS)
    wait_until(lambda: not sender.sent, "the output of the last records")
    stopping.set()
    for thread in threads:
        thread.join(60)
    return sender.took


class _Sender:
    """Sends orders, and notes how long each takes.

    Args:
        broker: where to send them.
        payments: whether each order's payment comes just before it.
    """

    def __init__(self, broker: Broker, payments: bool) -> None:
        # Orders meet their users: librdkafka's own partitioner is another than Java's.
        partitioner = {"partitioner": "murmur2_random"}
        self._producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0, **partitioner})
        self._payments = payments
        self.sent = dict[str, float]()
        self.took: list[float] = []

    def send(self, key: str) -> None:
        order = f'{{"user": "{key}", "amount": 900}}'
        if self._payments:
            self._producer.produce("payments", key=key, value=order)
            self._producer.flush()
        self.sent[key] = time.perf_counter()
        self._producer.produce("orders", key=key, value=order)
        self._producer.flush()

    def send_until_seen(self, key: str) -> None:
        """Send it again when nothing comes of it: a table may not have its rows when the first order comes."""
        for _ in range(ATTEMPTS):
            self.send(key)
            if eventually(lambda: not self.sent, AGAIN_SECONDS):
                return
        raise TimeoutError(f"Nothing came out for {ATTEMPTS} orders, {AGAIN_SECONDS:g} s apart.")

    def watch(self, look: Look, stopping: threading.Event) -> None:
        while not stopping.is_set():
            for key in look(set(self.sent)):
                self.took.append(time.perf_counter() - self.sent.pop(key))
            time.sleep(0.0005)


def _send_others(broker: Broker, a_second: int, stopping: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    began, number = time.perf_counter(), 0
    while not stopping.wait(0.01):
        while number < a_second * (time.perf_counter() - began):
            producer.produce("orders", key=f"other-{number % 500}", value='{"user": "other", "amount": 900}')
            number += 1
        producer.poll(0)
    producer.flush()


def _warm_ups() -> list[str]:
    return [f"warm-up-{number}" for number in range(WARM_UPS)]


def _keys(probes: int) -> list[str]:
    return [f"user-{number}" for number in range(probes)]


@contextmanager
def in_output(broker: Broker) -> Iterator[Look]:
    """Look at what comes out, with a plain consumer."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "look", "fetch.wait.max.ms": 5})
    consumer.assign([TopicPartition("out", partition, 0) for partition in range(PARTITIONS)])

    def look(keys: set[str]) -> set[str]:
        return keys.intersection((message.key() or b"").decode() for message in consumer.consume(100, 0.001))

    try:
        yield look
    finally:
        consumer.close()


@contextmanager
def in_view(store: Any) -> Iterator[Look]:
    """Look at what a live view of a store shows."""
    view = StoreView(store, rows=200)
    leave = view.follow()

    def look(keys: set[str]) -> set[str]:
        table = view.seen()["table"]
        return {key for key in keys if f">{key}<" in table}

    try:
        yield look
    finally:
        leave()


@contextmanager
def in_store(store: Any) -> Iterator[Look]:
    """Ask a store for each key: of a session store the sessions, and of a window store its windows of this hour."""
    about = time.time() * 1000
    hour = int(about) - 3_600_000, int(about) + 3_600_000

    def has(key: str) -> bool:
        if isinstance(store, ReadOnlySessionStore):
            return bool(store.fetch(key))
        if isinstance(store, ReadOnlyWindowStore):
            return bool(store.fetch(key, *hour))
        return store.get(key) is not None

    yield lambda keys: {key for key in keys if has(key)}
