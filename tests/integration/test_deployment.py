"""Kafka Music as it would be deployed: on three brokers, and on a Spark cluster or on YARN. Parts of both die."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from streamskit import Cluster
from streamskit.broker import EmbeddedCluster
from streamskit.environment.jars import pyspark_jars
from streamskit.environment.processes import command_line
from streamskit.testing import wait_until
from tests.integration import yarn_cluster

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
EXECUTOR = "org.apache.spark.executor."
ON_ONE_MACHINE = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
YARN = ON_ONE_MACHINE | {
    "spark.yarn.jars": f"local:{pyspark_jars()}/*",
    "spark.yarn.am.memory": "512m",
    "spark.executor.instances": "2",
    "spark.executor.cores": "2",
    "spark.executor.memory": "600m",
}


@pytest.fixture(scope="module")
def brokers() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(nodes=3) as running:
        yield running


@contextmanager
def spark_on(kind: str, folder: Path) -> Iterator[dict[str, str]]:
    """Run a cluster, and give the environment that sends an application there."""
    if kind == "standalone":
        with Cluster(workers=2, cores=2) as cluster:
            yield {"STREAMSKIT_MASTER": cluster.master_url}
        return
    (folder / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in YARN.items()))
    with yarn_cluster.running() as yarn:
        yield {
            "STREAMSKIT_MASTER": "yarn",
            "HADOOP_CONF_DIR": str(yarn.settings),
            "SPARK_CONF_DIR": str(folder),
        }


@contextmanager
def music(brokers: EmbeddedCluster, environment: dict[str, str], log: Path) -> Iterator[str]:
    """Run the service, give its address, and end it by Ctrl-C."""
    command = [sys.executable, "-m", "examples.music", "--bootstrap-servers", brokers.bootstrap_servers]
    with log.open("w") as said:
        process = subprocess.Popen(
            [*command, "--port", "0", "--instances", "1", "--per-second", "30"],
            cwd=ROOT,
            env=os.environ | environment,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_until(
            lambda: process.poll() is not None or "Kafka Music is at" in log.read_text(), "the service's start", 240
        )
        address = re.search(r"http://\S+/", log.read_text())
        assert address, log.read_text()
        yield address[0]
        os.killpg(process.pid, signal.SIGINT)
        process.wait(150)
        assert (process.returncode, log.read_text().splitlines()[-1]) == (0, "All of it has ended."), log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(30)


def plays_in_charts(url: str) -> int:
    """Return how many plays the five songs have together that are played most; 0 while nobody answers."""
    with contextlib.suppress(httpx.HTTPError):
        answer = httpx.get(f"{url}charts/top-five", trust_env=False, timeout=10)
        if answer.status_code == 200:
            return sum(int(song["plays"]) for song in answer.json())
    return 0


def check_that_charts_go_on(url: str) -> None:
    """Wait until fifty more plays are counted."""
    before = plays_in_charts(url)
    wait_until(lambda: plays_in_charts(url) > before + 50, "fifty more plays in the charts", 300)


def executors() -> list[psutil.Process]:
    """Return the executors of Spark that this test's processes have started."""
    commands = {each: command_line(each) for each in psutil.Process().children(recursive=True)}
    return [
        each  # the shell that starts it has the same words
        for each, words in commands.items()
        if words and words[0].endswith("java") and any(EXECUTOR in word for word in words)
    ]


@pytest.mark.parametrize("kind", ["standalone", "yarn"])
def test_charts_go_on_when_a_broker_of_three_dies_and_then_an_executor(
    kind: str, brokers: EmbeddedCluster, tmp_path: Path
) -> None:
    with spark_on(kind, tmp_path) as environment, music(brokers, environment, tmp_path / "said.log") as url:
        check_that_charts_go_on(url)
        assert {len(nodes) for nodes in brokers.in_sync_replicas("play-events").values()} == {3}
        brokers.kill_node(1)
        check_that_charts_go_on(url)
        brokers.start_node(1)
        running = executors()
        assert running, "all of Spark's work is done in the driver"
        running[0].kill()
        check_that_charts_go_on(url)
        wait_until(
            lambda: all(len(nodes) == 3 for nodes in brokers.in_sync_replicas("play-events").values()),
            "three replicas of each partition",
            60,
        )
