"""Notebooks that share a Java: what one leaves behind does not reach the next, however it ends."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.soak]

NOTEBOOK = """
import os, signal
from streamskit.environment.processes import wait_until
from streamskit.environment.session import spark_session

spark = spark_session()
found = [spark.catalog.listTables(), spark.streams.active, spark.conf.get("spark.sql.shuffle.partitions")]
print(found, [name for name in os.environ if name.startswith("PYSPARK_GATEWAY")], flush=True)
spark.conf.set("spark.sql.shuffle.partitions", "99")
spark.range(3).createOrReplaceTempView("left_over")
ticks = spark.readStream.format("rate").load()
seen = []
ticks.writeStream.format("memory").queryName("ticks").start()
ticks.writeStream.foreachBatch(lambda batch, number: seen.append(number)).start()
wait_until(lambda: seen, "a call of the query's function", seconds=60)
print("two queries run", flush=True)
os.kill(os.getpid(), signal.SIGKILL)  # as nbval ends a kernel
"""

PROCESS = """
import subprocess, sys
from pyspark import SparkContext
from tests import notebook_spark

parameters = notebook_spark.shared_java().java_parameters
for _ in range(2):
    join = notebook_spark.JOIN.format(port=parameters.port, secret=parameters.auth_token)
    subprocess.run([sys.executable, "-c", join + sys.argv[1]], timeout=120)
    notebook_spark.stop_spark(SparkContext._jvm)
"""


def test_the_next_notebook_finds_no_view_no_setting_and_no_query(request: pytest.FixtureRequest) -> None:
    root = Path(request.config.rootpath)
    command = [sys.executable, "-c", PROCESS, NOTEBOOK]
    said = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=280)
    assert said.stdout.splitlines() == ["[[], [], '4'] []", "two queries run"] * 2, said.stderr
