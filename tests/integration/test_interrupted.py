"""A test run that is interrupted leaves nothing running."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from streamskit.environment.processes import command_line, wait_until
from tests.reaper import marked

ROOT = Path(__file__).parents[2]
RUN = """
import os, pathlib, subprocess, time

from jupyter_client.manager import start_new_kernel

from streamskit.broker import shared_broker
from streamskit.environment.session import spark_session


def test_that_takes_long():
    start_new_kernel()
    shared_broker()
    spark_session()
    deaf = ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]
    subprocess.Popen(deaf, start_new_session=True)
    (pathlib.Path(__file__).parent / "mark").write_text(os.environ["STREAMSKIT_TEST_RUN"])
    time.sleep(600)
"""

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(400)]


@pytest.mark.soak
@pytest.mark.parametrize(("how", "workers"), [(signal.SIGINT, "1"), (signal.SIGTERM, "0")])
def test_a_run_that_is_interrupted_leaves_nothing_running(tmp_path: Path, how: signal.Signals, workers: str) -> None:
    (tmp_path / "test_long.py").write_text(RUN)
    (tmp_path / "pyproject.toml").touch()
    environment = os.environ | {"STREAMSKIT_PROJECT": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        workers,
        "-p",
        "conftest",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    with (tmp_path / "said").open("wb") as said:
        run = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=said, stderr=said, start_new_session=True)
    wait_until(lambda: (tmp_path / "mark").exists() or run.poll() is not None, "the run's long test", 200)
    assert run.poll() is None, (tmp_path / "said").read_text()
    mark = (tmp_path / "mark").read_text()
    before = family(mark)
    assert len(before) >= 5, before  # a kernel, a broker, Spark, the deaf one, and the worker or its shell
    os.killpg(run.pid, how)  # as a terminal does, to all in the foreground
    wait_until(lambda: not family(mark), f"the end of all of {before}", 60)
    run.wait(60)


def family(mark: str) -> list[str]:
    """The commands of the running processes that have a mark."""
    return [" ".join(command_line(process))[:60] for process in marked(mark)]
