"""The process from which Spark forks Python workers: its imports are done, so they start at once and share memory.

`spark.python.daemon.module` names it, for functions that Spark itself calls, such as a serde in Python; `task_daemon`
is for tasks. Spark's own daemon imports nothing, so each worker would import everything itself, which takes about a
second of processor time and 100 MB.
"""

import gc
import importlib
import os
import sys
from collections.abc import Sequence

from pyspark.daemon import manager

SINGLE_THREADED = {
    "OPENBLAS_NUM_THREADS": "1",  # as OMP_NUM_THREADS, which Spark sets: a task has one slot
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""Keeps libraries from starting threads when they are imported: a process with threads must not be forked."""

NEEDED = (
    "numpy",
    "pandas",
    "pyarrow.compute",
    "pyspark.worker",
    "pyspark.sql.functions",
    "pyspark.sql.pandas.serializers",
    "streamskit.columns",
    "streamskit.dsl",
    "streamskit.execution.partitioning",
    "streamskit.serdes",
)

COLLECT_AFTER = 100_000
"""How many new objects there are before Python looks for cycles among them: rows and state have none, and with its
default threshold of 700 Python would look through them all the time."""


def import_all(names: Sequence[str]) -> None:
    """Import what workers need, and hide it from the garbage collector: memory that it marks is no longer shared."""
    os.environ.update(SINGLE_THREADED)
    forget_jars()
    for name in names:
        importlib.import_module(name)
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, 20, 100)


def forget_jars() -> None:
    """Stop Python from looking for modules in jars: Spark lists one of its own, which has none.

    Each new worker would read the list of its thousands of files, which takes a tenth of a second of processor time.
    """
    sys.path[:] = [path for path in sys.path if not path.endswith(".jar")]
    for path in [path for path in sys.path_importer_cache if ".jar" in path]:
        del sys.path_importer_cache[path]


if __name__ == "__main__":
    import_all(NEEDED)
    manager()
