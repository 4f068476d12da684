"""`make soak`: records at a steady rate, while drivers, brokers and instances die at random; nothing may be lost.

STREAMSKIT_SOAK_MINUTES says for how long in all, 30 if not given, half of it for each processing guarantee.
"""

import os
import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Producer
from pyspark.sql import functions as F

from streamskit import QueryClient, Serdes, StreamsBuilder, StreamsRebalancingError, Topology
from streamskit.broker import EmbeddedBroker
from streamskit.broker.base import Broker
from streamskit.faults import Driver
from streamskit.queries.instances import Instances

SECONDS = 60 * float(os.environ.get("STREAMSKIT_SOAK_MINUTES", "30")) / 2
PER_SECOND, SPAN, OPEN, PARTITIONS = 500, 100, 40, 4
LONG, BYTES = Serdes.long(), Serdes.byte_array()

pytestmark = [pytest.mark.soak, pytest.mark.timeout(0)]


def tallies() -> Topology:
    """Least, most and count of each key by Spark, their sum in Python, and a copy of each record."""
    builder = StreamsBuilder()
    numbers = builder.stream("numbers", value=LONG)
    grouped = numbers.group_by_key()
    grouped.aggregate(
        lambda v: F.struct(F.min(v).alias("least"), F.max(v).alias("most"), F.count("*").alias("n")),
        materialized="tallies",
    )
    grouped.reduce(lambda total, number: total + number, "totals")
    numbers.to("copies", value=LONG)
    return builder.build()


class Load:
    """Writes at a steady rate. A key's name says its least and its greatest number; each between comes once."""

    def __init__(self, broker: Broker) -> None:
        settings = {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 20, "enable.idempotence": True}
        self._producer = Producer(settings | {"delivery.timeout.ms": 600_000})
        self._numbers = self._made()
        self.sent: dict[str, list[int]] = defaultdict(list)
        self.stopping = threading.Event()

    def run(self) -> None:
        began, count = time.monotonic(), 0
        while not self.stopping.is_set():
            while count < (time.monotonic() - began) * PER_SECOND:
                key, number = next(self._numbers)
                self.sent[key].append(number)
                self._producer.produce("numbers", key=key, value=number.to_bytes(8, "big"))
                count += 1
            self._producer.poll(0)
            self.stopping.wait(0.05)
        assert self._producer.flush(600) == 0, "the broker did not take all records"

    @staticmethod
    def _made() -> Iterator[tuple[str, int]]:
        chance, first = random.Random(7), 0
        unfinished: dict[str, list[int]] = {}
        while True:
            while len(unfinished) < OPEN:
                numbers = list(range(first, first + SPAN))
                chance.shuffle(numbers)
                unfinished[f"{first}-{first + SPAN - 1}"] = numbers
                first += SPAN
            key = chance.choice(list(unfinished))
            yield key, unfinished[key].pop()
            if not unfinished[key]:
                del unfinished[key]


class Asking:
    """Asks instances for keys; an answer may be behind, but never wrong."""

    def __init__(self, instances: Instances, load: Load) -> None:
        self._instances, self._load = instances, load
        self.answers, self.refusals, self.wrong = 0, 0, list[str]()
        self._known: set[str] = set()

    def run(self) -> None:
        while not self._load.stopping.wait(0.05):
            servers, keys = list(self._instances), list(self._load.sent)
            if not servers or not keys:
                continue
            server, key = random.choice(servers), random.choice(keys)
            try:
                row = QueryClient(server.url, timeout="3 seconds", retry="0 seconds").store("tallies").get(key)
            except StreamsRebalancingError:
                self.refusals += 1
                self._known.add(str(server))
                continue
            except Exception as failure:
                # One that is just starting cannot answer yet; one that has answered may fall silent by dying only, and
                # a connection may break before its process is seen to be gone.
                time.sleep(1)
                if str(server) in self._known and server in list(self._instances):
                    self.wrong.append(f"{key} at {server}: {failure!r}")
                continue
            self.answers += 1
            self._known.add(str(server))
            least, most = map(int, key.split("-"))
            if row is not None and not (least <= row["least"] <= row["most"] <= most and 1 <= row["n"] <= SPAN):
                self.wrong.append(f"{key} at {server}: {row}")


class Memory:
    """Notes how much memory processes hold, every five seconds."""

    def __init__(self) -> None:
        self.megabytes: dict[tuple[str, int], list[float]] = defaultdict(list)

    def note(self, broker: EmbeddedBroker, driver: Driver) -> None:
        mine = {"driver": [psutil.Process(driver.pid)] if driver.is_running else []}
        mine["broker"] = [process] if (process := broker.process) else []
        mine["instance"] = [each for each in psutil.Process().children() if "streamskit serve" in _command(each)]
        mine["Spark"] = [each for one in mine["driver"] for each in _children(one) if "java" in _command(each)]
        for what, processes in mine.items():
            for process in processes:
                try:
                    self.megabytes[what, process.pid].append(process.memory_info().rss / 1024**2)
                except psutil.Error:
                    continue

    def growth(self) -> dict[str, tuple[float, float]]:
        """Return, of each process that lived for two fifths of the time, its most in the second and last quarter."""
        lived = {who: noted for who, noted in self.megabytes.items() if len(noted) * 5 >= SECONDS * 0.4}
        return {
            f"{what} {pid}": (max(noted[len(noted) // 4 : len(noted) // 2]), max(noted[-len(noted) // 4 :]))
            for (what, pid), noted in lived.items()
        }


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once"])
def test_nothing_is_lost_and_memory_stays_flat_while_everything_dies_at_random(guarantee: str, tmp_path: Path) -> None:
    with (
        EmbeddedBroker(data_dir=tmp_path / "broker") as broker,
        Driver(
            tallies, "soak", _with_topics(broker), state_dir=tmp_path / "state", processing_guarantee=guarantee
        ) as driver,
        Instances("soak", broker.bootstrap_servers, standby_replicas=1, applications=tmp_path / "state") as instances,
    ):
        lasting = instances.start()
        instances.start()
        load, memory = Load(broker), Memory()
        asking = Asking(instances, load)
        threads = [threading.Thread(target=work) for work in (load.run, asking.run)]
        for thread in threads:
            thread.start()
        done = _break_things(broker, driver, instances, lasting, memory)
        load.stopping.set()
        for thread in threads:
            thread.join()
        driver.await_processed("15 minutes")
        _check_tables(driver, load)
        repeated = _check_copies(broker, load)
        _check_instances(instances, load)
    print(f"\n{guarantee}: {sum(map(len, load.sent.values())):,} records, {done}, {repeated} written twice, "
          f"{asking.answers} answers, {asking.refusals} refusals; megabytes early and late: "
          + ", ".join(f"{who} {early:.0f} {late:.0f}" for who, (early, late) in memory.growth().items()))  # fmt: skip
    assert asking.wrong == []
    assert asking.answers > SECONDS
    assert all(done.values())
    assert guarantee == "at_least_once" or repeated == 0
    grown = {who: sizes for who, sizes in memory.growth().items() if sizes[1] > sizes[0] * 1.25 + 50}
    assert grown == {}


def _with_topics(broker: Broker) -> str:
    broker.create_topics("numbers", "copies", partitions=PARTITIONS)
    return broker.bootstrap_servers


def _break_things(
    broker: EmbeddedBroker, driver: Driver, instances: Instances, lasting: Any, memory: Memory
) -> dict[str, int]:
    """Break something every half minute; return how often what was broken. Drivers may live at the end."""
    chance, done = random.Random(11), dict.fromkeys(("driver", "broker", "pause", "instance"), 0)
    began = time.monotonic()
    bag: list[str] = []
    while (passed := time.monotonic() - began) < SECONDS:
        bag = bag or chance.sample(list(done), len(done))
        what = bag.pop()
        if what == "driver" and passed < SECONDS * 0.55:
            driver.kill()
            driver.start()
        elif what == "broker":
            broker.kill()
            _wait(8, broker, driver, memory)
            broker.restart()
        elif what == "pause":
            broker.pause()
            _wait(8, broker, driver, memory)
            broker.resume()
        elif what == "instance":
            instances.kill(next(each for each in instances if each != lasting))
            instances.start()
        else:
            continue
        done[what] += 1
        _wait(chance.uniform(10, 25), broker, driver, memory)
    return done


def _wait(seconds: float, broker: EmbeddedBroker, driver: Driver, memory: Memory) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        memory.note(broker, driver)
        time.sleep(min(5.0, left))


def _expected(load: Load) -> dict[str, dict[str, int]]:
    return {key: {"least": min(n), "most": max(n), "n": len(n)} for key, n in load.sent.items()}


def _check_tables(driver: Driver, load: Load) -> None:
    assert dict(driver.rows("tallies")) == _expected(load)
    assert dict(driver.rows("totals")) == {key: sum(numbers) for key, numbers in load.sent.items()}


def _check_copies(broker: Broker, load: Load) -> int:
    """Check that no record is missing and that those written twice are the same; return how many are."""
    written = broker.consume("copies", key=BYTES, value=BYTES)
    copies = {(row.key, row.value, row.timestamp, row.partition, str(row.headers)) for row in written.itertuples()}
    given = {(key.encode(), number.to_bytes(8, "big")) for key, numbers in load.sent.items() for number in numbers}
    assert {copy[:2] for copy in copies} == given
    assert len(copies) == len(given)
    return len(written) - len(given)


def _check_instances(instances: Instances, load: Load) -> None:
    for server in instances:
        store, until = QueryClient(server.url, retry="60 seconds").store("tallies"), time.monotonic() + 60
        while dict(store.all()) != _expected(load):
            assert time.monotonic() < until, f"{server} does not have all rows"
            time.sleep(0.5)
