"""Stream threads: how many tasks of a query run at a time, at the start and changed while it runs."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from streamskit.broker import Broker

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.soak]  # lesson 13 does it in `make test`


@pytest.mark.timeout(900)
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once"])
def test_no_more_tasks_run_at_a_time_than_there_are_stream_threads_and_a_change_loses_and_doubles_nothing(
    guarantee: str, broker: Broker, name: str, state_dir: Path
) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out", partitions=4)
    command = [sys.executable, "-m", "tests.integration.stream_threads_program", broker.bootstrap_servers, name]
    done = subprocess.run([*command, str(state_dir), guarantee], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr[-3000:]
    said: list[tuple[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    seen = dict(said)

    for number in (1, 2, 4):
        of_number = seen[str(number)]
        assert of_number["records"] == number  # as many, and not fewer: they run side by side
        assert max(of_number["tasks"].values()) <= number
        assert (of_number["slots"], of_number["explained"]) == ([number], True)
    for without in ("none", "none again"):
        assert (seen[without]["records"], seen[without]["slots"], seen[without]["explained"]) == (4, [0], False)

    names = [f"{name}-StreamThread-{number}" for number in (2, 3, 4)]
    assert [value for what, value in said if what == "added"] == names
    assert [value for what, value in said if what == "removed"] == names[::-1]
    assert len(seen["changing"]["slots"]) > 1
    assert {each["restarts"] for each in seen.values() if "restarts" in each} == {0}

    end = seen["end"]
    assert end["written"] == list(range(end["sent"]))
    assert end["seen"] == [1]
    assert end["counts"] == Counter(f"g{number % 3}" for number in range(end["sent"]))
