"""The process from which Spark forks the workers of tasks: like `python_daemon`, but its forks run `task_worker`.

Named in `streamskit/jvm/PythonTask.scala`. Spark's daemon calls whatever is the main function of `pyspark.worker`.
"""

import pyspark.worker
from pyspark.daemon import manager

from streamskit.execution.python_daemon import import_all
from streamskit.execution.task_worker import main

NEEDED = (
    "numpy",
    "pyarrow.compute",
    "streamskit.columns",
    "streamskit.dsl",
    "streamskit.execution.task_processor",
    "streamskit.operators.latest_row_lookup",
    "streamskit.serdes",
)
"""pandas, which takes as much memory as all of these together, is not among them: rows need none."""

if __name__ == "__main__":
    import_all(NEEDED)
    pyspark.worker.main = main
    manager()
