"""Changelogs as an application would have written them: a count for each key."""

import struct
import time

from confluent_kafka import Producer

from streamskit.broker.base import Broker

PARTITIONS = 4


def fill(broker: Broker, topic: str, keys: int) -> None:
    """Make a changelog with so many keys, "key-0000000" and on."""
    broker.create_topics(topic, partitions=PARTITIONS, config={"cleanup.policy": "compact"})
    producer = producer_to(broker)
    for number in range(keys):
        update(producer, topic, number, number)
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush()


def producer_to(broker: Broker) -> Producer:
    """Return a producer that puts keys where Kafka Streams would."""
    return Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 20, "partitioner": "murmur2_random"})


def update(producer: Producer, topic: str, key: int, count: int) -> None:
    """Write one update, waiting where the producer's queue is full."""
    deadline = time.monotonic() + 60
    while True:
        try:
            producer.produce(topic, key=f"key-{key:07}".encode(), value=struct.pack(">q", count), timestamp=1)
            return
        except BufferError:
            assert time.monotonic() < deadline, "The producer's queue was full for a minute."
            producer.poll(0.05)
