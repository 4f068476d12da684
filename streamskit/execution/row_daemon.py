"""What Spark forks the workers of real-time mode from: as `python_daemon`, but what it forks runs `row_worker`.

Named in `streamskit/jvm/PythonTask.scala`. Spark's daemon calls what is the main function of `pyspark.worker`.
"""

import pyspark.worker
from pyspark.daemon import manager

from streamskit.execution.python_daemon import import_all
from streamskit.execution.row_worker import main

if __name__ == "__main__":
    import_all()
    pyspark.worker.main = main
    manager()
