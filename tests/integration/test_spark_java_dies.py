"""Spark's Java dies, as it does when memory runs out: the application says so, and the same process starts again."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamskit.broker.base import Broker

pytestmark = [pytest.mark.broker, pytest.mark.spark]

ROOT = Path(__file__).parents[2]


def test_a_dead_java_ends_the_application_with_a_sentence_and_a_new_one_starts_in_the_same_process(
    broker: Broker, name: str, state_dir: Path
) -> None:
    program = [sys.executable, "-m", "tests.integration.java_death_program"]
    ran = subprocess.run(
        [*program, broker.bootstrap_servers, name, str(state_dir)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    seen = json.loads(ran.stdout.splitlines()[-1])
    row, health, ready = seen["before"]
    assert (row[0], row[1]["value"]) == (200, 1)
    assert health == ready == [200, health[1]]
    assert (health[1]["status"], health[1]["state"], set(health[1]["parts"].values())) == ("ok", "RUNNING", {True})
    row, health, ready = seen["after"]
    assert (row[0], health[0], ready[0]) == (503, 503, 503)
    assert "application has stopped: Spark's Java process has ended (killed by SIGKILL" in row[1]["error"]
    assert health[1]["error"].startswith("Spark's Java process has ended")
    assert (health[1]["status"], health[1]["state"], health[1]["parts"]["Spark's Java"]) == ("failed", "ERROR", False)
    assert seen["told"] == [health[1]["error"]]
    assert seen["raised"] == [health[1]["error"]] * 3
    assert seen["count"] == 2
