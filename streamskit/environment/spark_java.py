"""The Java process of Spark: whether it still runs, what to say of one that has ended, and how to get another one."""

import gc
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil
from py4j.clientserver import ClientServerConnection
from py4j.java_gateway import GatewayConnection
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.udf import UserDefinedFunction

from streamskit.environment.spark_log import spark_log

LOST = (Py4JNetworkError, ConnectionError)
"""What a call of Spark raises when its Java has ended."""

STOPPED = re.compile(r"SparkContext (was|has been) shut ?down|stopped SparkContext")
"""What Spark says once its session was stopped; its Java still runs then."""

END_SECONDS = 2.0
"""How long a process may take to end after its connections have closed, in seconds."""

STARTED_BY_PYSPARK = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""The environment variable by which PySpark tells the Java that it starts where to write how it is reached."""


def end_interrupted_calls_alone() -> None:
    """Have a call of Spark that is interrupted, as by Ctrl-C, close its own connection, and no other thread's.

    Otherwise py4j asks Java to close it, by the ports at its two ends, and Java closes all that have one of the two: at
    its own end that is every connection, so the calls under way in all other threads would fail.
    """

    def shutdown_socket(connection: ClientServerConnection | GatewayConnection, *ports: int) -> None:
        connection.close()

    for kind in (ClientServerConnection, GatewayConnection):
        kind.shutdown_socket = shutdown_socket


@contextmanager
def ended_unless_ready() -> Iterator[None]:
    """End the Java that PySpark starts inside if the start fails or is interrupted, as by Ctrl-C.

    PySpark forgets it then. Java would not notice that this process ends before it has told how it is reached.
    """
    before = {each.pid for each in _started_by_pyspark()}
    try:
        yield
    except BaseException:
        started = [each for each in _started_by_pyspark() if each.pid not in before]
        _end(started)
        if getattr(getattr(SparkContext._gateway, "proc", None), "pid", None) in {each.pid for each in started}:
            forget()
        raise


def end() -> None:
    """End Spark and its Java, if this process has started one; a later session starts another."""
    if (gateway := SparkContext._gateway) is None:
        return
    if SparkContext._active_spark_context is not None:
        with suppress(*LOST):
            SparkContext._active_spark_context.stop()
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is not None:
        _end([each for each in _started_by_pyspark() if each.pid == process.pid])
        process.wait()
    forget()


def _started_by_pyspark() -> list[psutil.Process]:
    """Return this process's children that PySpark has started, each with those of its own."""
    found = []
    for child in psutil.Process(os.getpid()).children():
        with suppress(psutil.Error):
            if STARTED_BY_PYSPARK in child.environ():
                found += [child, *child.children(recursive=True)]
    return found


def _end(processes: list[psutil.Process]) -> None:
    """Kill processes, and wait until they have ended."""
    for each in processes:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    psutil.wait_procs(processes, END_SECONDS)


def has_ended(seconds: float = 0.0) -> bool:
    """Return whether this process has had a Java for Spark which does not run any more.

    Args:
        seconds: how long to wait for its end: connections close a moment before.
    """
    gateway = SparkContext._gateway
    if gateway is None:
        return False
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is not None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        return process.poll() is not None
    try:  # another program has started it
        gateway.jvm.System.currentTimeMillis()
    except LOST:
        return True
    return False


def is_stopped(failure: Exception) -> bool:
    """Return whether a query or a call of Spark has failed because its session was stopped, whatever it says."""
    if STOPPED.search(str(failure)) is not None:
        return True
    context = SparkContext._active_spark_context
    with suppress(*LOST):
        return context is None or context._jsc is None or bool(context._jsc.sc().isStopped())
    return False


@contextmanager
def although_stopped() -> Iterator[None]:
    """Do without a call of Spark that fails because its Java has ended, or its session was stopped."""
    try:
        yield
    except LOST:
        pass
    except (Py4JError, PySparkException) as failure:
        if not is_stopped(failure):
            raise


def why_lost(failure: BaseException) -> str:
    """Return a sentence about a call of Spark that raised one of `LOST`, and what to do."""
    ended = has_ended(END_SECONDS)
    said = f"Spark's Java process has ended{_how()}" if ended else f"Spark's Java does not answer any more ({failure})"
    return (
        f"{said}, and all its queries with it. What it said last is in {spark_log()}. Where memory ran "
        "out, give it more before anything else starts: spark_session(spark__driver__memory='4g'), or free some on "
        "this machine. What was written stays written: close() this application, and a new KafkaStreams starts another "
        "Java and goes on after the last whole micro-batch."
    )


def _how() -> str:
    """Say how the process has ended, as far as the operating system tells."""
    process = getattr(SparkContext._gateway, "proc", None)
    code = None if process is None else process.poll()
    if code is None:
        return ""
    if code >= 0:
        return f" (exit code {code})"
    with suppress(ValueError):
        name = signal.Signals(-code).name
        by_system = ", as an operating system does whose memory is used up" if name == "SIGKILL" else ""
        return f" (killed by {name}{by_system})"
    return f" (signal {-code})"


def forget() -> None:
    """Forget a session whose Java has ended, so that PySpark starts a new one when it is asked for a session."""
    from pyspark.sql.context import SQLContext

    context, gateway = SparkContext._active_spark_context, SparkContext._gateway
    with suppress(Exception):  # closes what is left on Python's side of the connections
        gateway.shutdown()  # type: ignore[union-attr]
    if context is not None:
        with suppress(*LOST):
            context.stop()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SQLContext._instantiatedContext = None
    for each in gc.get_objects():
        if type(each) is UserDefinedFunction:  # each remembers its object in the old Java
            each._judf_placeholder = None
