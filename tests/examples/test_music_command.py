"""Kafka Music by one command: all of it starts, and Ctrl-C ends all of it."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pytest

from streamskit.testing import wait_until

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[2]
TO_END = 100


def has_a_chart(url: str) -> bool:
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(f"{url}charts/top-five", trust_env=False, timeout=10).status_code == 200
    return False


def test_one_command_starts_everything_and_ctrl_c_ends_all_of_it() -> None:
    command = [sys.executable, "-m", "examples.music", "--port", "0", "--per-second", "50"]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    assert process.stdout is not None
    try:
        said = []
        for line in process.stdout:
            said.append(line)
            if "A further instance" in line:
                break
        url = re.search(r"http://\S+/", "".join(said))
        assert url, "".join(said)
        family = psutil.Process(process.pid).children(recursive=True)
        assert any("serve" in each.cmdline() for each in family)
        wait_until(lambda: has_a_chart(url[0]), "a chart", 120)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        rest, _ = process.communicate(timeout=TO_END)
        assert (process.returncode, rest.splitlines()[-1]) == (0, "All of it has ended."), rest
        _, alive = psutil.wait_procs(family, timeout=20)
        assert alive == []
    finally:
        if process.poll() is None:
            process.kill()
