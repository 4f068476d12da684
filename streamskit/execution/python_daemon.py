"""What Spark forks its Python workers from: it has imported what they need, so they start at once and share memory.

Named by `spark.python.daemon.module`, for functions that Spark itself calls, such as a serde in Python; `task_daemon`
is for tasks. Spark's own daemon imports nothing, so that each worker does so for itself: about a second of processor
time, and 100 MB.
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
"""Keeps libraries from starting threads when they are imported: a process that has some must not be forked."""

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
"""How many more objects there are before Python looks for cycles among them: rows and state have none, and Python's own
threshold of 700 has it look through them all the time."""


def import_all(names: Sequence[str]) -> None:
    """Import what workers need, and keep it out of the garbage collector's way: what it marks is shared no more."""
    os.environ.update(SINGLE_THREADED)
    forget_jars()
    for name in names:
        importlib.import_module(name)
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, 20, 100)


def forget_jars() -> None:
    """Have Python look for modules in no jar: Spark names one of its own, which has none.

    Each new worker would read the list of the thousands of files in it, for a tenth of a second of processor time.
    """
    sys.path[:] = [path for path in sys.path if not path.endswith(".jar")]
    for path in [path for path in sys.path_importer_cache if ".jar" in path]:
        del sys.path_importer_cache[path]


if __name__ == "__main__":
    import_all(NEEDED)
    manager()
