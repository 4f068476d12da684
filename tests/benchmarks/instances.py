"""Query instances, measured: restoring against state size, a local `get`, and how old an answer is."""

import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from streamskit import KafkaStreams, QueryClient, Serdes, StreamsBuilder
from streamskit.broker.base import Broker
from streamskit.environment.processes import wait_until
from streamskit.queries import Catalogue, Instance, QueryableStore
from streamskit.queries.metadata import HostInfo
from streamskit.state.stores import Store
from tests.benchmarks.changelogs import PARTITIONS, fill
from tests.benchmarks.table import Row

STORE = Store("counts", "key-value", Serdes.string(), Serdes.long())


def rows(broker: Broker, folder: Path, sizes: Sequence[int], probes: int) -> Iterator[Row]:
    """Measure restoring stores of several sizes, a `get`, and how old answers are.

    Args:
        broker: the broker to restore from.
        folder: where stores on disk go.
        sizes: how many keys each store to restore has.
        probes: how many records to follow from their producer to the answer.
    """
    for keys in sizes:
        yield from _restored(broker, keys, folder / f"restored-{keys}")
    yield _freshness(broker, probes, folder)


def _restored(broker: Broker, keys: int, folder: Path) -> Iterator[Row]:
    name = f"app-{keys}"
    catalogue = Catalogue(name, (QueryableStore(STORE, f"{name}-counts-changelog", 0),))
    fill(broker, catalogue.entries[0].changelog, keys)
    memory, get_memory = _started(broker, catalogue, keys, None)
    disk, get_disk = _started(broker, catalogue, keys, folder)
    again, _ = _started(broker, catalogue, keys, folder)
    for where, took, get in (("in memory", memory, get_memory), ("RocksDB", disk, get_disk)):
        more = f"{keys / took:,.0f} keys/s, a local get {get:.1f} us"
        more += f", started again on its folder {again:.2f} s" if where == "RocksDB" else ""
        yield Row(f"restoring {keys:,} keys, {where}", "", f"{took:.2f} s", None, more)


def _started(broker: Broker, catalogue: Catalogue, keys: int, folder: Path | None) -> tuple[float, float]:
    """Return how long an instance took from its share to all rows, and how long a `get` takes in microseconds."""
    instance = Instance(catalogue, broker.bootstrap_servers, HostInfo("127.0.0.1", 1), state_dir=folder)
    instance.start()
    try:
        wait_until(lambda: instance.states("counts"), "the instance's part of the store")
        began = time.perf_counter()
        deadline = began + 600
        while not all(state.ready for state in instance.states("counts")):
            assert time.perf_counter() < deadline, "The instance did not restore its store in ten minutes."
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


def _freshness(broker: Broker, probes: int, folder: Path) -> Row:
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
        instance = streams._application.copies.instance  # type: ignore[union-attr]
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
                assert time.perf_counter() < began + 60, "The probe did not come into the store within a minute."
            ended = time.perf_counter()
            for name, took in zip(
                parts,
                (sent - began, in_topic - sent, in_store - in_topic, ended - in_store, ended - began),
                strict=True,
            ):
                parts[name].append(took)
        watching.set()
    everything = parts.pop("all")
    return Row(
        "from a record's producer to the answer",
        "",
        f"p50 {_cut(everything, 50):,.0f} p99 {_cut(everything, 99):,.0f} ms",
        None,
        "over REST; p50 of its parts: "
        + ", ".join(f"{name} {_cut(times, 50):.0f} ms" for name, times in parts.items()),
    )


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
