"""The process from which Spark's Python workers are forked."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamskit.execution import python_daemon, task_daemon
from streamskit.execution.python_daemon import NEEDED

IMPORTED = """
import os, sys
from streamskit.execution.python_daemon import import_all
import_all(sys.argv[1:])
print(len(os.listdir("/proc/self/task")), "pandas" in sys.modules)
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted as Linux lists them")
@pytest.mark.parametrize(("daemon", "has_pandas"), [(python_daemon, True), (task_daemon, False)])
def test_what_is_imported_before_a_fork_starts_no_thread_and_tasks_do_without_pandas(
    daemon: Any, has_pandas: bool
) -> None:
    command = [sys.executable, "-c", IMPORTED, *daemon.NEEDED]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.split() == ["1", str(has_pandas)]


@pytest.mark.spark
def test_a_worker_has_all_that_it_needs_from_the_start(spark: Any) -> None:
    needed = [*NEEDED]

    def look(batches: Iterator[Any]) -> Iterator[Any]:
        loaded = ",".join(name for name in needed if name in sys.modules)
        jars = ",".join(path for path in [*sys.path, *sys.path_importer_cache] if ".jar" in path)
        parent = Path("/proc/self/stat").read_text().split()[3]
        for frame in batches:
            yield frame.assign(loaded=loaded, jars=jars, parent=Path(f"/proc/{parent}/cmdline").read_text())

    [row] = spark.range(1).mapInPandas(look, "id long, loaded string, jars string, parent string").collect()
    assert row["loaded"] == ",".join(NEEDED)
    assert row["jars"] == ""  # each worker would read anew what is in them
    assert "streamskit.execution.python_daemon" in row["parent"]
