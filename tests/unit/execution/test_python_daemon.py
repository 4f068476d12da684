"""The process from which Spark's Python workers are forked."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamskit.execution.python_daemon import NEEDED

THREADS = """
import os
from streamskit.execution.python_daemon import import_all
import_all()
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted as Linux lists them")
def test_what_is_imported_before_a_fork_starts_no_thread() -> None:
    said = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.strip() == "1"


@pytest.mark.spark
def test_a_worker_has_all_that_it_needs_from_the_start(spark: Any) -> None:
    needed = [*NEEDED]

    def look(batches: Iterator[Any]) -> Iterator[Any]:
        loaded = [name for name in needed if name in sys.modules]
        parent = Path("/proc/self/stat").read_text().split()[3]
        for frame in batches:
            yield frame.assign(loaded=",".join(loaded), parent=Path(f"/proc/{parent}/cmdline").read_text())

    [row] = spark.range(1).mapInPandas(look, "id long, loaded string, parent string").collect()
    assert row["loaded"] == ",".join(NEEDED)
    assert "streamskit.execution.python_daemon" in row["parent"]
