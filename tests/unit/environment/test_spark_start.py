"""A start of Spark that fails or is interrupted leaves nothing that runs, and Spark can be ended for good."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from streamskit.environment.spark_java import STARTED_BY_PYSPARK, ended_unless_ready

SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]

ENDS_SPARK = """
import psutil
from streamskit.environment import spark_java
from streamskit.environment.session import spark_session

spark_java.end()
children = psutil.Process().children
assert children() == []
for _ in range(2):
    assert spark_session().range(3).count() == 3
    java = children()
    assert java
    spark_java.end()
    assert children() == []
"""

AFTER_A_SESSION_OF_ITS_OWN = """
from pyspark.sql import SparkSession
from streamskit import StreamsBuilder, TopologyTestDriver
from streamskit.common.errors import SetupError
from streamskit.environment import spark_java

own = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
builder = StreamsBuilder()
builder.stream("in").group_by_key().reduce(lambda one, other: one + other).to_stream().to("out")
for _ in range(2):
    try:
        TopologyTestDriver(builder.build())
    except SetupError as refused:
        assert "SparkSession.getActiveSession().stop()" in str(refused), refused
        assert "spark_session('local[4]', spark__driver__memory='4g')" in str(refused), refused
    else:
        raise AssertionError("not refused")
assert own.range(3).count() == 3
SparkSession.getActiveSession().stop()
with TopologyTestDriver(builder.build()) as driver:
    driver.create_input_topic("in").pipe_input("k", "v")
    assert [record.value for record in driver.create_output_topic("out").read_records_to_list()] == ["v"]
spark_java.end()
"""


@pytest.fixture
def started() -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    processes: dict[str, subprocess.Popen[bytes]] = {}
    yield processes
    for each in processes.values():
        each.kill()
        each.wait()


@pytest.mark.parametrize("failure", [KeyboardInterrupt, RuntimeError])
def test_a_start_that_does_not_succeed_ends_the_java_that_it_started_and_nothing_else(
    failure: type[BaseException], started: dict[str, subprocess.Popen[bytes]]
) -> None:
    of_pyspark = os.environ | {STARTED_BY_PYSPARK: "a file that never comes"}
    started["before"] = subprocess.Popen(SLEEPS, env=of_pyspark)

    @ended_unless_ready()
    def start() -> None:
        started["java"] = subprocess.Popen(SLEEPS, env=of_pyspark)
        started["of another thread"] = subprocess.Popen(SLEEPS)
        raise failure

    with pytest.raises(failure):
        start()
    started["java"].wait(10)
    assert [name for name, process in started.items() if process.poll() is None] == ["before", "of another thread"]


def test_a_start_that_succeeds_ends_nothing(started: dict[str, subprocess.Popen[bytes]]) -> None:
    with ended_unless_ready():
        started["java"] = subprocess.Popen(SLEEPS, env=os.environ | {STARTED_BY_PYSPARK: "a file"})
    assert started["java"].poll() is None


@pytest.mark.spark
def test_spark_and_its_java_end_when_they_are_told_to_and_can_be_started_again() -> None:
    done = subprocess.run([sys.executable, "-c", ENDS_SPARK], capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.spark
def test_a_session_made_without_streamskit_is_refused_with_a_sentence_and_replaced_once_it_is_stopped() -> None:
    program = [sys.executable, "-c", AFTER_A_SESSION_OF_ITS_OWN]
    done = subprocess.run(program, capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode == 0, done.stderr
