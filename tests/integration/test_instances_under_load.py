"""Four instances under a load of records and queries, while one is killed with signal 9 and one is added."""

import os
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import KafkaStreams, Serdes, StreamsBuilder, StreamsRebalancingError, Topology
from streamskit.broker import Broker
from streamskit.environment.processes import wait_until
from streamskit.queries.client import QueryClient
from streamskit.queries.instances import Instances
from streamskit.queries.metadata import HostInfo

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.timeout(600)]

SECONDS = float(os.environ.get("STREAMSKIT_LOAD_SECONDS", "20"))
KEYS = [f"key-{number}" for number in range(60)]


def totals() -> Topology:
    """Count and sum the numbers of each key: the n-th record of a key says n, so a right answer proves itself."""
    builder = StreamsBuilder()
    numbers = builder.stream("numbers", value=Serdes.long())
    numbers.group_by_key().aggregate(
        lambda v: F.struct(F.count("*").alias("count"), F.sum(v).alias("sum")), materialized="totals"
    )
    return builder.build()


class Load:
    """Produces records, and asks for keys, and remembers whatever is not as it should be."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.sent = dict.fromkeys(KEYS, 0)
        self.wrong: list[str] = []
        self.answered, self.refused, self.by_standby = 0, 0, 0
        self.servers: list[HostInfo] = []
        self.stopping = threading.Event()
        self.longest_gap = 0.0

    def produce(self) -> None:
        while not self.stopping.is_set():
            self.send(random.sample(KEYS, 20))
            self.stopping.wait(0.1)

    def send(self, keys: list[str]) -> None:
        for key in keys:
            self.sent[key] += 1  # before it is sent: an answer may know of it from now on
        self._broker.produce("numbers", [{"key": key, "value": self.sent[key]} for key in keys], value=Serdes.long())

    def ask(self) -> None:
        last = time.monotonic()
        while not self.stopping.is_set():
            key, server = random.choice(KEYS), random.choice(self.servers)
            try:
                store = QueryClient(server.url, timeout="3 seconds", retry="0 seconds").store("totals")
                found = store.get(key)
            except StreamsRebalancingError:
                self.refused += 1
                continue
            except Exception as failure:
                if server in self.servers:
                    self.wrong.append(f"{key} at {server}: {failure!r}")
                continue
            self.answered += 1
            self.longest_gap, last = max(self.longest_gap, time.monotonic() - last), time.monotonic()
            self._check(key, found)

    def _check(self, key: str, found: Any) -> None:
        if found is None:
            self.wrong.append(f"{key}: none, though it has been there from the start")
        elif not 1 <= found["count"] <= self.sent[key] or found["sum"] != found["count"] * (found["count"] + 1) // 2:
            self.wrong.append(f"{key}: {found} of {self.sent[key]}")


@pytest.mark.slow
@pytest.mark.soak
def test_every_answer_is_right_or_says_that_there_is_none_while_one_is_killed_and_one_added(
    broker: Broker, tmp_path: Path
) -> None:
    broker.delete_topics("numbers", missing_ok=True)
    broker.create_topics("numbers", partitions=4)
    streams = KafkaStreams(totals(), "totals-app", broker.bootstrap_servers, state_dir=tmp_path)
    load = Load(broker)
    with (
        streams,
        Instances("totals-app", broker.bootstrap_servers, standby_replicas=1, applications=tmp_path) as instances,
    ):
        load.send(KEYS)
        streams.await_processed("120 seconds")
        load.servers = [instances.start() for _ in range(4)]
        await_answers(load.servers)
        threads = [threading.Thread(target=work) for work in (load.produce, load.ask, load.ask)]
        for thread in threads:
            thread.start()
        time.sleep(SECONDS / 3)
        victim = load.servers[0]
        load.servers = load.servers[1:]
        instances.kill(victim)
        after_kill = seconds_to_full_service(instances, 3)
        time.sleep(SECONDS / 3)
        load.servers = [*load.servers, instances.start()]
        after_start = seconds_to_full_service(instances, 4)
        time.sleep(SECONDS / 3)
        load.stopping.set()
        for thread in threads:
            thread.join(30)
        streams.await_processed("120 seconds")
        expected = {key: {"count": n, "sum": n * (n + 1) // 2} for key, n in load.sent.items()}
        assert load.wrong == []
        assert load.answered > 100
        for server in load.servers:
            store = QueryClient(server.url, retry="60 seconds").store("totals")
            wait_until(lambda: dict(store.all()) == expected, f"the last total at {server}", 60)  # noqa: B023
    print(
        f"{load.answered} answers, {load.refused} refusals, longest without an answer {load.longest_gap:.1f} s; "
        f"all partitions and replicas served {after_kill:.1f} s after the kill, {after_start:.1f} s after the start"
    )
    streams.clean_up()


def seconds_to_full_service(instances: Instances, count: int) -> float:
    """Wait until so many instances have all partitions, each with its standby replica, and return how long it took."""
    began = time.monotonic()
    while True:
        tasks = [task for each in instances.instances() if each.alive for task in each.tasks]
        hosting = sum(1 for each in instances.instances() if each.alive and each.tasks)
        active = [task.partition for task in tasks if task.role == "active"]
        restored = all(task.total - task.restored < 100 for task in tasks)  # records go on coming
        if sorted(active) == [0, 1, 2, 3] and (len(tasks), hosting) == (8, count) and restored:
            return time.monotonic() - began
        assert time.monotonic() - began < 60, tasks
        time.sleep(0.1)


def await_answers(servers: list[HostInfo]) -> None:
    for server in servers:
        store = QueryClient(server.url, retry="60 seconds").store("totals")
        assert len(store.all()) == len(KEYS)
