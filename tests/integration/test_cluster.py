"""The same application on a Spark standalone cluster: an executor is killed, workers come and go, nothing is lost."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pyspark.sql import functions as F

from streamskit import Cluster, Serdes, StreamsBuilder, Topology, faults
from streamskit.broker.base import Broker
from streamskit.environment.processes import alive, wait_until
from streamskit.faults import Driver

# Lessons 14 and 23b do much of this in `make test`.
pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.soak, pytest.mark.timeout(600)]

APPLICATION = "on-a-cluster"
KEYS, EACH, BATCH = 40, 150, 1_500
LONG = Serdes.long()


def key_of(number: int) -> str:
    """Return the key of a number: it says what is to come of all numbers with it, their minimum, maximum and count."""
    first = number % KEYS
    return f"k{first}:{first}:{first + KEYS * (EACH - 1)}:{EACH}"


def program() -> Topology:
    """Return an aggregation that Spark does itself, a sum in Python, and a copy of each record."""
    builder = StreamsBuilder()
    numbers = builder.stream("cluster-numbers", value=LONG)
    numbers.group_by_key().aggregate(
        lambda v: F.struct(F.min(v).alias("min"), F.max(v).alias("max"), F.count("*").alias("count")), "extremes"
    )
    numbers.group_by_key().reduce(lambda total, value: total + value, "totals")
    numbers.map_values(lambda v: v + 1).to("cluster-copies", value=LONG)
    return builder.build()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(workers=2) as running:
        yield running


@pytest.fixture(scope="module", params=["at_least_once", "exactly_once"])
def guarantee(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def state_dir(guarantee: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp(guarantee)


@pytest.fixture(scope="module")
def driver(broker: Broker, cluster: Cluster, state_dir: Path, guarantee: str) -> Iterator[Driver]:
    """The application, with some micro-batches of records before it."""
    broker.delete_topics("cluster-numbers", "cluster-copies", missing_ok=True)
    broker.create_topics("cluster-numbers", "cluster-copies", partitions=4)
    broker.produce("cluster-numbers", [(key_of(number), number) for number in range(KEYS * EACH)], value=LONG)
    options = {"state_dir": state_dir, "max_records_per_batch": BATCH, "processing_guarantee": guarantee}
    with Driver(program, APPLICATION, broker.bootstrap_servers, master=cluster.master_url, **options) as running:
        yield running


def batches(state_dir: Path) -> list[tuple[int, int]]:
    """Return how many micro-batches each query has begun, and how many of them it has done."""
    queries = [path.parent for path in (state_dir / APPLICATION).glob("*/metadata")]
    begun_and_done = [
        [len(list((query / kind).glob("[0-9]*"))) for kind in ("offsets", "commits")] for query in queries
    ]
    return [(begun, done) for begun, done in begun_and_done]


def check_nothing_is_lost(broker: Broker, driver: Driver, guarantee: str) -> None:
    """Compare tables with what their keys say, and the copies with the numbers that were written.

    Exactly once each copy is there once; at least once those that are there again are alike.
    """
    expected = {key: tuple(map(int, key.split(":")[1:])) for key in map(key_of, range(KEYS))}
    assert {key: (v["min"], v["max"], v["count"]) for key, v in driver.rows("extremes")} == expected
    sums = {key: (least + most) * count // 2 for key, (least, most, count) in expected.items()}
    assert dict(driver.rows("totals")) == sums
    copies = broker.consume("cluster-copies", value=LONG, isolation="read_committed")
    copies = copies.drop(columns="offset").assign(number=copies["value"] - 1, headers=copies["headers"].map(repr))
    assert set(copies["number"]) == set(range(KEYS * EACH))
    assert copies.drop_duplicates()["number"].is_unique, "a record that was written twice is not alike"
    assert guarantee == "at_least_once" or copies["number"].is_unique, "a record was written twice"
    assert (copies["key"] == copies["number"].map(key_of)).all()


def test_nothing_is_lost_when_an_executor_is_killed_in_the_middle_of_a_micro_batch(
    broker: Broker, cluster: Cluster, driver: Driver, state_dir: Path, guarantee: str
) -> None:
    assert [worker.cores_used for worker in cluster.workers()] == [1, 1]
    before = {executor.id for executor in cluster.executors()}
    assert len(before) == 2
    wait_until(lambda: all(done for _, done in batches(state_dir)), "the end of all micro-batches", 200)
    fault = faults.kill_executor(cluster)
    begun_and_done = batches(state_dir)
    assert any(begun > done for begun, done in begun_and_done), "no micro-batch was under way"
    assert all(done < KEYS * EACH // BATCH for _, done in begun_and_done), "the work was done before the kill"
    driver.await_processed("200 seconds")
    check_nothing_is_lost(broker, driver, guarantee)
    assert driver.state == "RUNNING"
    assert driver.metrics()["restarts"].tolist() == [0] * len(begun_and_done)  # Spark did it, within the micro-batch
    fault.undo()
    after = {executor.id for executor in cluster.executors()}
    assert len(after) == 2
    assert after != before


def test_a_worker_that_comes_gets_an_executor_and_one_that_goes_takes_its_own_along(
    broker: Broker, cluster: Cluster, driver: Driver, guarantee: str
) -> None:
    cluster.add_worker()
    assert len(cluster.executors()) == 3, "add_worker() returned before its executor was there"
    assert {executor.worker for executor in cluster.executors()} == {worker.name for worker in cluster.workers()}
    leaving = cluster.workers()[0].name
    cluster.remove_worker(leaving)
    wait_until(lambda: leaving not in {each.worker for each in cluster.executors()}, "the end of its executor", 60)
    assert len(cluster.executors()) == 2
    driver.await_processed("200 seconds")
    check_nothing_is_lost(broker, driver, guarantee)


def test_a_driver_that_is_killed_goes_on_where_its_checkpoint_says(
    broker: Broker, driver: Driver, guarantee: str
) -> None:
    with faults.kill_driver(driver):
        assert driver.state == "KILLED"
    assert driver.state == "RUNNING"
    driver.await_processed("120 seconds")
    check_nothing_is_lost(broker, driver, guarantee)


HOLDS = """
import time
from streamskit import Cluster
with Cluster(workers=1) as cluster:
    print(*(daemon.running.process.pid for daemon in cluster._daemons), flush=True)
    time.sleep(100)
"""


def test_the_processes_of_a_cluster_end_with_a_program_that_is_killed(empty_project: Path) -> None:
    program = subprocess.Popen([sys.executable, "-c", HOLDS], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    daemons = [psutil.Process(int(pid)) for pid in program.stdout.readline().split()]
    assert [alive(daemon) for daemon in daemons] == [True, True]
    program.kill()
    program.wait()
    wait_until(lambda: not any(alive(daemon) for daemon in daemons), "the end of all daemons", 60)
    with Cluster(workers=1) as cluster:  # and removes what the other one has left
        assert len(list((empty_project / ".streamskit/clusters").iterdir())) == 1
        assert [worker.state for worker in cluster.workers()] == ["ALIVE"]
    assert list((empty_project / ".streamskit/clusters").iterdir()) == []
