"""The Spark session that streamskit runs on: local or a cluster, with the Kafka connector and settings for streams."""

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

from streamskit.common.errors import SetupError
from streamskit.common.ownership import check_writable
from streamskit.common.paths import state_dir
from streamskit.environment.archives import java_options
from streamskit.environment.jars import spark_jars
from streamskit.environment.java import find_java, java_environment
from streamskit.environment.spark_log import forget_old_logs, spark_log, why_not_started
from streamskit.environment.spark_processes import (
    UNCHECKED_ARROW,
    check_master_answers,
    executor_settings,
    is_local,
    is_on_this_machine,
    let_workers_import,
    spark_home,
    started_from,
)

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_STATE = "org.apache.spark.sql.execution.streaming.state"

SLOT_CHECK = "spark.scheduler.pipelinedGroup.slotCheck.enabled"
"""Whether Spark stops a query in real-time mode for which it has fewer slots than it began with."""

SETTINGS = {
    "spark.ui.enabled": "false",
    # Python workers are forked from a process that has imported what they need.
    "spark.python.daemon.module": "streamskit.execution.python_daemon",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    # A stream runs the same small plan for ever: adapting each batch costs more than it brings.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.stateStore.providerClass": f"{_STATE}.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # A snapshot is as large as the state; a micro-batch's changes are small, and quick to read again.
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "50",
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.sql.streaming.metricsEnabled": "false",
    # Spark would measure a batch for Python again with each of its rows, which costs more than all the rest.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.streaming.numRecentProgressUpdates": "500",
    # In real-time mode a record goes from task to task without waiting for others.
    "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "1",
    # Our start provides the slots of such an application. Spark would stop it if any other job took one for a moment.
    SLOT_CHECK: "false",
    # Each query has a producer of its own: an unused one is closed after a minute, not ten.
    "spark.kafka.producer.cache.timeout": "60s",
}
"""What streamskit sets on a session it makes; a setting passed to `spark_session` wins."""

CHECKPOINTS = "streamskit.LocalCheckpoints"
"""What writes our queries' checkpoints (in `streamskit/jvm`): Spark's own way starts dozens of processes a batch."""

FLEETING_CHECKPOINTS = "streamskit.FleetingCheckpoints"
"""The same where nothing has to survive a power failure: it does not wait for the disk."""

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
"""The setting with more options for the JVM of this process; where it contradicts the variable below, it wins."""

JAVA_OPTIONS_VARIABLE = "STREAMSKIT_SPARK_JAVA_OPTIONS"
"""The environment variable with more options for Spark's JVM."""

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Settings with which Spark interprets a plan's expressions, and generates and compiles no Java for them.

A few records are processed sooner than Java for their plan is compiled; for millions, compile.
"""

LESSON_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
"""Options for lessons and tests: half the work of a start and half the memory, less speed in the long run.

With its quick compiler alone, Java would keep 48 MB of compiled code, which Spark fills within a few minutes.
"""

ON_THIS_MACHINE = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
"""Further settings for when nothing outside this machine has to reach the driver."""

LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
LOG_FILE = "streamskit.log"
MASTER_VARIABLE = "STREAMSKIT_MASTER"

logger = logging.getLogger("streamskit")

_starting = threading.Lock()
_with_classes = WeakSet["SparkContext"]()  # those that were found to have streamskit's classes
_starting_query = threading.RLock()  # a query takes its settings from the session, which all threads share


def spark_session(master: str | None = None, **settings: str) -> "SparkSession":
    """Return the running Spark session, or start one that can read and write Kafka.

    Args:
        master: where Spark runs, as in `SparkSession.builder.master`; when not given the environment variable
            STREAMSKIT_MASTER says so, and without that it is "local[*]": this process and its cores.
        settings: more Spark settings, with `__` for each dot, as in `spark__driver__memory="4g"`.

    A session whose Java has ended (killed, or out of memory) is forgotten, and a new one started in its place.

    Raises:
        SetupError: no usable Java, the jars can't be fetched, the project's folder is read-only, no master answers
            where one is said to be, or Spark runs in this process with another master, or was started without
            streamskit's classes.

    >>> spark = spark_session()
    >>> spark.range(3).count()
    3

    Mirrors `SparkSession.builder.getOrCreate`.
    """
    from py4j.protocol import Py4JError
    from pyspark import SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    from streamskit.environment import spark_java
    from streamskit.jvm import has_own_classes, remember_functions

    spark_java.end_interrupted_calls_alone()
    with _starting:
        if spark_java.has_ended():
            spark_java.forget()
            logger.warning(
                "Spark's Java had ended, and a new one starts. DataFrames and Columns made before belong to the old "
                "one: run the cells again that made them."
            )
        running = running_session()
        master = master or os.environ.get(MASTER_VARIABLE)
        if running is not None:
            _check_master(running, master)
            _check_classes(running.sparkContext)
            let_workers_import(running.sparkContext)
            return running
        if SparkContext._active_spark_context is not None:  # made by itself, and no session with it
            _check_classes(SparkContext._active_spark_context)
        elif SparkContext._gateway is not None and not has_own_classes():
            spark_java.end()  # the Java of a stopped session of the user's: its class path stays as it was
        master = master or "local[*]"
        check_master_answers(master)
        # Spark's launcher reads JAVA_HOME; it may name a Java that Spark can't run on.
        os.environ.update(java_environment() | {"JAVA_HOME": str(find_java().home)})
        # Spark would run Python functions with the first python3 on PATH, which need not be this one.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        if is_on_this_machine(master):
            # Otherwise Spark looks the machine's name up and warns about what it finds.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = SparkSession.builder.master(master).appName("streamskit")
        for name, value in (_all_settings(master) | {k.replace("__", "."): v for k, v in settings.items()}).items():
            builder = builder.config(name, value)
        check_writable(state_dir())  # for the log
        forget_old_logs()
        with _stderr_to(spark_log()), started_from(spark_home(master)), spark_java.ended_unless_ready():
            try:
                session = builder.getOrCreate()
            except (PySparkRuntimeError, Py4JError) as failure:
                raise _not_started(failure, master) from failure
        _check_classes(session.sparkContext)
        remember_functions()
        let_workers_import(session.sparkContext)
        # It repeats every failed query as one long line of JSON, which hides the sentence we raise.
        logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL + 1)
        return session


def _not_started(failure: Exception, master: str) -> SetupError:
    also = f" with the options in {JAVA_OPTIONS_VARIABLE}" if os.environ.get(JAVA_OPTIONS_VARIABLE, "").strip() else ""
    return SetupError(
        f"Spark did not start on {master}{also}: {why_not_started(failure)}. Java's output is in {spark_log()}. The "
        f"argument of spark_session(), or {MASTER_VARIABLE}, says where Spark runs."
    )


def is_chosen() -> bool:
    """Whether it is settled where Spark runs: it runs already, or the environment says so."""
    from streamskit.environment import spark_java

    return MASTER_VARIABLE in os.environ or (not spark_java.has_ended() and running_session() is not None)


def running_session() -> "SparkSession | None":
    """Return the session that runs in this process, whichever thread has started it; None if none does.

    Spark knows a session in the thread that made it, and another thread would take a second for the same answer.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    made = SparkSession._instantiatedSession
    if active is not None or made is None or made._sc is not SparkContext._active_spark_context:
        return active
    made._jvm.SparkSession.setActiveSession(made._jsparkSession)  # type: ignore[union-attr]
    return SparkSession.getActiveSession()


def _check_master(running: "SparkSession", master: str | None) -> None:
    """Refuse to hand out a session that runs elsewhere than was asked for."""
    runs_on = running.sparkContext.master
    if master is not None and master != runs_on:
        raise SetupError(
            f"Spark runs in this process already, on {runs_on}, and only one SparkContext can live in a process; "
            f"{master} was asked for. Close its applications, end it with SparkSession.getActiveSession().stop(), and "
            "run this again. If a cell that starts a cluster or a session ran twice, restart the kernel and run the "
            "notebook from its first cell."
        )


def _check_classes(running: "SparkContext") -> None:
    """Refuse a Spark whose Java cannot run streamskit's queries: it was started by something else."""
    from streamskit.jvm import has_own_classes

    if running in _with_classes:
        return
    if not has_own_classes():
        raise SetupError(
            "Spark runs in this process already, started without streamskit: its Java has neither streamskit's classes "
            "nor the Kafka connector. End it with SparkSession.getActiveSession().stop(), a SparkContext sc with "
            "sc.stop(), and run this again, which starts a Spark that has them. From then on, get the session from "
            "spark_session() in place of SparkSession.builder; it takes Spark's settings, as in "
            "spark_session('local[4]', spark__driver__memory='4g'). DataFrames made before have to be made again."
        )
    _with_classes.add(running)


@contextmanager
def settings(spark: "SparkSession", values: dict[str, str]) -> Iterator[None]:
    """Change settings of a session for the time of a `with`; a query keeps those it was started with."""
    before = {name: spark.conf.get(name, None) for name in values}
    try:
        for name, value in values.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)


@contextmanager
def query_settings(spark: "SparkSession", values: dict[str, str]) -> Iterator[None]:
    """Change settings of a session while one query is started in a `with`; another thread that starts one waits."""
    with _starting_query, settings(spark, values):
        yield


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Send what a process started now says on stderr to a file, such as Java's remarks at its start."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = os.dup(2)
    try:
        with path.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _all_settings(master: str) -> dict[str, str]:
    jars = [str(jar) for jar in spark_jars()]
    options = " ".join(
        [*(f'"{option}"' for option in java_options("spark")), os.environ.get(JAVA_OPTIONS_VARIABLE, "")]
    )
    log = f'"-Dlog4j2.configurationFile={LOG_SETTINGS}" "-D{LOG_FILE}={spark_log()}"'
    found = SETTINGS | {
        "spark.sql.warehouse.dir": str(state_dir() / "warehouse"),
        # On the class path of the JVM itself, so that a session starts without copying jars around.
        "spark.driver.extraClassPath": os.pathsep.join(jars),
        "spark.jars": ",".join(jars),
        JAVA_OPTIONS: " ".join(filter(None, [log, UNCHECKED_ARROW, options, SETTINGS.get(JAVA_OPTIONS, "")])),
    }
    found |= ON_THIS_MACHINE if is_on_this_machine(master) else {}
    return found | ({} if is_local(master) else executor_settings(LOG_SETTINGS, LOG_FILE))
