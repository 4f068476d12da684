"""Notebooks of a test process share one Java: each begins a Spark of its own there, and nothing of it is left.

Starting Java and compiling Spark's first plans costs twelve seconds of a core in each. Those of `OWN_JAVA` start Java
themselves, as a learner's do. When a process comes to its other tests, their Spark runs in the
Java of its notebooks.
"""

import contextlib
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from nbval.plugin import IPyNbFile
from pyspark import SparkContext

from streamskit.environment.session import spark_session

ROOT = Path(__file__).parents[1]

OWN_JAVA = (
    "00-start-here",
    "12-error-handling",
    "13-topology-and-tasks",
    "14-elasticity",
    "15-fault-tolerance",
    "16-interactive-queries",
    "23b-where-it-runs",
)
"""Notebooks that start Java themselves: a learner's first one, and those that kill it or whose Spark is not local."""

JOIN = """
import os
from pyspark import SparkContext
os.environ |= {{"PYSPARK_GATEWAY_PORT": "{port}", "PYSPARK_GATEWAY_SECRET": "{secret}"}}
SparkContext._ensure_initialized()
# Applications that the notebook starts in processes of their own have their own Java.
del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
"""

JOIN_SECONDS = 120
STOP_SECONDS = 60

_is_ready = pytest.StashKey[bool]()


def prepare(notebook: IPyNbFile) -> None:
    """Let the kernel of a notebook use the Java of this process, if it is to share it; called for each cell."""
    if _is_ready in notebook.stash:
        return
    notebook.stash[_is_ready] = True
    if notebook.path.stem in OWN_JAVA or SparkContext._active_spark_context is not None:
        return
    parameters = shared_java().java_parameters
    _run_silently(notebook, JOIN.format(port=parameters.port, secret=parameters.auth_token))
    notebook.addfinalizer(lambda: _leave(notebook))


def shared_java() -> Any:
    """Return the gateway to the Java of this process, which is started if there is none."""
    if SparkContext._gateway is not None and SparkContext._gateway.proc.poll() is not None:
        SparkContext._gateway = SparkContext._jvm = None
    if SparkContext._gateway is None:
        # Spark's Python workers begin where Java did; those of other tests import from the project's folder.
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        with contextlib.chdir(ROOT / "notebooks"), pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", path)
            spark_session().stop()
    return SparkContext._gateway


def _run_silently(notebook: IPyNbFile, code: str) -> None:
    """Run code in the kernel of a notebook, without an output, a number, or a name that stays."""
    kernel = notebook.kernel
    message = kernel.kc.execute(f"exec({code!r}, {{}})", silent=True, store_history=False)
    reply = kernel.kc.get_shell_msg(timeout=JOIN_SECONDS)["content"]
    assert reply["status"] == "ok", f"The kernel of {notebook.path.name} did not reach Java: {reply}"
    kernel.await_idle(message, JOIN_SECONDS)


def _leave(notebook: IPyNbFile) -> None:
    """End the kernel, the queries it has left running, and its Spark, with all the state that it holds.

    A query may wait for an answer of the Python that is gone, and never end: then Java goes, and the next one starts.
    """
    notebook.teardown()
    if SparkContext._gateway is None or SparkContext._gateway.proc.poll() is not None:
        return
    stopped = threading.Event()

    def stop() -> None:
        stop_spark(SparkContext._jvm)
        stopped.set()

    threading.Thread(target=stop, daemon=True).start()
    if not stopped.wait(STOP_SECONDS):
        print(f"The Spark of {notebook.path.name} did not stop within {STOP_SECONDS} s: its Java is ended.")
        SparkContext._gateway.proc.kill()
        SparkContext._gateway.proc.wait(STOP_SECONDS)


def stop_spark(jvm: Any) -> None:
    """Stop what runs in a Java whose Python is gone; the next Spark that begins there finds nothing of it."""
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    if (session := sessions.getDefaultSession()).isDefined():
        queries = session.get().sharedState().activeStreamingQueries()
        for query in filter(None, [queries.get(key) for key in queries]):  # others may end in the meantime
            query.stop()
        session.get().stop()
    jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
    sessions.clearActiveSession()
    sessions.clearDefaultSession()
