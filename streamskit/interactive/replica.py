"""A replica: the stores of an application, kept up to date from their changelog topics."""

import threading
import time
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from streamskit.errors import StreamsError
from streamskit.interactive.stores import LocalStore

Offsets = dict[TopicPartition, int]


class Replica:
    """Consumes changelog topics into local stores, in a thread of its own.

    Mirrors the standby task of Kafka Streams, which keeps a copy of a store the same way.
    """

    def __init__(self, bootstrap_servers: str, stores: dict[str, LocalStore]) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._stores = stores
        self._positions: Offsets = {}
        self._moved = threading.Condition()
        self._stopping = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="streamskit-replica", daemon=True)

    def start(self) -> None:
        """Begin to read the changelogs from their start."""
        self._thread.start()

    def stop(self) -> None:
        """Stop reading; the stores keep what they have."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(10)
        self._say_stopped("The application is closed; these are the last values it had.")

    def wait_for(self, offsets: Offsets, deadline: float) -> None:
        """Wait until the stores hold all updates before the given offsets.

        Args:
            offsets: for each partition of a changelog the offset to reach.
            deadline: when to give up, as `time.monotonic()` counts.

        Raises:
            StreamsError: they don't by the deadline, or reading has failed.
        """
        with self._moved:
            while any(self._positions.get(partition, 0) < offset for partition, offset in offsets.items()):
                if self._failure is not None:
                    raise StreamsError(
                        f"The stores could not be read from their changelogs: {self._failure}."
                    ) from self._failure
                if not self._moved.wait(min(1.0, deadline - time.monotonic())) and time.monotonic() > deadline:
                    behind = sum(max(0, end - self._positions.get(p, 0)) for p, end in offsets.items())
                    raise StreamsError(
                        f"The stores are still {behind} updates behind their changelogs: give it more time."
                    )

    def _run(self) -> None:
        consumer = KafkaConsumer(
            bootstrap_servers=self._bootstrap_servers, enable_auto_commit=False, auto_offset_reset="earliest"
        )
        try:
            partitions = [
                TopicPartition(topic, number)
                for topic in self._stores
                for number in sorted(consumer.partitions_for_topic(topic) or ())
            ]
            consumer.assign(partitions)
            consumer.seek_to_beginning(*partitions)
            while not self._stopping.is_set():
                self._take(consumer, consumer.poll(timeout_ms=100))
        except Exception as failure:
            self._failure = failure
            self._say_stopped(f"No more updates come: the changelog could not be read ({failure}).")
        finally:
            consumer.close()

    def _say_stopped(self, why: str) -> None:
        for store in self._stores.values():
            store.stopped = store.stopped or why

    def _take(self, consumer: KafkaConsumer, batches: dict[TopicPartition, list[Any]]) -> None:
        if not batches:
            return
        for partition, records in batches.items():
            store = self._stores[partition.topic]
            for record in records:
                if record.key is None:
                    continue  # a global table has no row for it
                store.apply(record.key, record.value, record.timestamp, partition.partition)
        with self._moved:
            self._positions.update({partition: consumer.position(partition) for partition in batches})
            self._moved.notify_all()
