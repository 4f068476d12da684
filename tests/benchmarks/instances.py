"""Query instances, measured: restoring against state size, a local `get`, and how old an answer is."""

import argparse
import statistics
import struct
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Producer

from streamskit import KafkaStreams, QueryClient, Serdes, StreamsBuilder
from streamskit.broker import EmbeddedBroker
from streamskit.broker.base import Broker
from streamskit.interactive import Catalogue, CatalogueEntry, Instance
from streamskit.interactive.metadata import HostInfo
from streamskit.stores import Store

STORE = Store("counts", "key-value", Serdes.string(), Serdes.long())
PARTITIONS = 4


def main() -> None:
    """Print what restoring, reading and freshness cost."""
    arguments = argparse.ArgumentParser(prog="python -m tests.benchmarks.instances", description=__doc__)
    arguments.add_argument("--keys", type=int, nargs="*", default=[100_000, 300_000, 1_000_000])
    arguments.add_argument("--probes", type=int, default=60)
    chosen = arguments.parse_args()
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        EmbeddedBroker(data_dir=Path(folder) / "broker") as broker,
    ):
        print(f"{'restoring':<14} {'in memory':>22} {'RocksDB':>22} {'RocksDB again':>16} {'get, memory/RocksDB':>22}")
        for keys in chosen.keys:
            _restore(broker, keys, Path(folder) / str(keys))
        _freshness(broker, chosen.probes, Path(folder))


def fill(broker: Broker, topic: str, keys: int) -> None:
    """Make a changelog with so many keys."""
    broker.create_topics(topic, partitions=PARTITIONS, config={"cleanup.policy": "compact"})
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 50, "partitioner": "murmur2_random"}
    )
    for number in range(keys):
        while True:
            try:
                producer.produce(topic, key=f"key-{number:07}".encode(), value=struct.pack(">q", number), timestamp=1)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush()


def _restore(broker: Broker, keys: int, folder: Path) -> None:
    name = f"app-{keys}"
    catalogue = Catalogue(name, (CatalogueEntry(STORE, f"{name}-counts-changelog", 0),))
    fill(broker, catalogue.entries[0].changelog, keys)
    memory, get_memory = _started(broker, catalogue, keys, None)
    disk, get_disk = _started(broker, catalogue, keys, folder)
    again, _ = _started(broker, catalogue, keys, folder)
    print(
        f"{keys:>9,} keys {memory:>8.2f} s {keys / memory:>9,.0f}/s {disk:>8.2f} s {keys / disk:>9,.0f}/s "
        f"{again:>14.2f} s {get_memory:>10.1f} / {get_disk:.1f} us",
        flush=True,
    )


def _started(broker: Broker, catalogue: Catalogue, keys: int, folder: Path | None) -> tuple[float, float]:
    """Return how long an instance took from its share to all rows, and how long a `get` takes in microseconds."""
    instance = Instance(catalogue, broker.bootstrap_servers, HostInfo("127.0.0.1", 1), state_dir=folder)
    instance.start()
    try:
        while not instance.states("counts"):
            time.sleep(0.001)
        began = time.perf_counter()
        while not all(state.ready for state in instance.states("counts")):
            time.sleep(0.005)
        took = time.perf_counter() - began
        store = instance.local("counts", range(PARTITIONS))
        names = [f"key-{number * 7919 % keys:07}" for number in range(50_000)]
        began = time.perf_counter()
        for key in names:
            store.get(key)  # type: ignore[attr-defined]
        return took, (time.perf_counter() - began) / len(names) * 1e6
    finally:
        instance.stop()


def _freshness(broker: Broker, probes: int, folder: Path) -> None:
    """Measure how long a record takes from its producer to an answer, and where it spends that time."""
    builder = StreamsBuilder()
    builder.stream("visits").group_by_key().count("visits")
    broker.create_topics("visits", partitions=PARTITIONS)
    parts: dict[str, list[float]] = {
        "produce": [],
        "micro-batch": [],
        "changelog to store": [],
        "answer": [],
        "all": [],
    }
    with KafkaStreams(
        builder.build(), "fresh", broker.bootstrap_servers, state_dir=folder, application_server="127.0.0.1:0"
    ) as streams:
        store = QueryClient(f"http://{streams.application_server}").store("visits")
        broker.produce("visits", [{"key": "probe", "value": "x"}])
        streams.await_processed("120 seconds")
        landed, written = threading.Event(), threading.Event()
        instance = streams._copies.instance  # type: ignore[union-attr]
        instance.subscribe("visits", lambda update: landed.set())
        watching = _watch(broker, "fresh-visits-changelog", written)
        for number in range(probes):
            landed.clear()
            written.clear()
            time.sleep(0.3 + 0.37 * (number % 3))
            began = time.perf_counter()
            broker.produce("visits", [{"key": "probe", "value": "x"}])
            sent = time.perf_counter()
            written.wait(10)
            in_topic = time.perf_counter()
            landed.wait(10)
            in_store = time.perf_counter()
            while store.get("probe") != number + 2:
                pass
            ended = time.perf_counter()
            for name, took in zip(
                parts,
                (sent - began, in_topic - sent, in_store - in_topic, ended - in_store, ended - began),
                strict=True,
            ):
                parts[name].append(took)
        watching.set()
    print("\nfrom a record's producer to the answer over REST, in ms:  " + "  ".join(
        f"{name} p50 {_cut(times, 50):.0f} p99 {_cut(times, 99):.0f}" for name, times in parts.items()
    ))  # fmt: skip


def _watch(broker: Broker, topic: str, seen: threading.Event) -> threading.Event:
    """Set `seen` whenever a plain consumer gets a record of a topic; returns what stops that."""
    from confluent_kafka import Consumer, TopicPartition

    stopping = threading.Event()
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "watch"})
    consumer.assign([TopicPartition(topic, number, -1) for number in range(PARTITIONS)])
    consumer.poll(2)

    def run() -> None:
        while not stopping.is_set():
            if consumer.poll(0.1) is not None:
                seen.set()
        consumer.close()

    threading.Thread(target=run, daemon=True).start()
    return stopping


def _cut(times: Sequence[float], percent: int) -> float:
    return statistics.quantiles(times, n=100)[percent - 1] * 1000


if __name__ == "__main__":
    main()
