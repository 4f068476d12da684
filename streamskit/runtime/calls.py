"""Brings records to a learner's `peek`, `foreach` and `print` functions, in the process that started the application.

Spark's operators run elsewhere, where a notebook's variables are copies and nobody sees what is printed. So the records
of such a step travel on a topic, and a thread here calls the function for each.
"""

import threading
import time
from collections.abc import Callable

from kafka import KafkaConsumer, TopicPartition

from streamskit.topology import SideEffect


class Calls:
    """Calls functions for the records of their topics, in a thread of its own, from now on."""

    def __init__(
        self, bootstrap_servers: str, nodes: dict[str, SideEffect], failed: Callable[[SideEffect, Exception], None]
    ) -> None:
        self._bootstrap_servers, self._nodes, self._failed = bootstrap_servers, nodes, failed
        self._positions: dict[TopicPartition, int] = {}
        self._moved = threading.Condition()
        self._stopping = threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="streamskit-calls", daemon=True)

    def start(self) -> None:
        """Begin with the records that come from now on."""
        if self._nodes:
            self._thread.start()
            self._ready.wait(30)

    def stop(self) -> None:
        """Stop calling."""
        self._stopping.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(10)

    def wait_for(self, offsets: dict[TopicPartition, int], deadline: float) -> None:
        """Wait until the functions were called for all records before the given offsets, or the deadline."""
        with self._moved:
            while any(self._positions.get(partition, 0) < offset for partition, offset in offsets.items()):
                if not self._thread.is_alive() or time.monotonic() > deadline:
                    return
                self._moved.wait(0.1)

    def _run(self) -> None:
        consumer = KafkaConsumer(bootstrap_servers=self._bootstrap_servers, enable_auto_commit=False)
        try:
            partitions = [TopicPartition(topic, 0) for topic in self._nodes]
            consumer.assign(partitions)
            consumer.seek_to_end(*partitions)
            self._positions = {partition: consumer.position(partition) for partition in partitions}
            self._ready.set()
            while not self._stopping.is_set():
                for partition, records in consumer.poll(timeout_ms=100).items():
                    node = self._nodes[partition.topic]
                    for record in records:
                        self._call(node, record.key, record.value)
                    with self._moved:
                        self._positions[partition] = consumer.position(partition)
                        self._moved.notify_all()
        finally:
            consumer.close()

    def _call(self, node: SideEffect, key: bytes | None, value: bytes | None) -> None:
        try:
            node.action(node.key.deserialize(key), node.value.deserialize(value))
        except Exception as failure:
            self._failed(node, failure)
            self._stopping.set()
