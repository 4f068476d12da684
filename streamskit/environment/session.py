"""The Spark session that streamskit runs on: local by default, with the Kafka connector and the settings streams need."""

import logging
import os
import tempfile
import threading
from typing import TYPE_CHECKING

from streamskit.environment.jars import spark_jars
from streamskit.environment.java import find_java
from streamskit.environment.paths import state_dir

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STATE = "org.apache.spark.sql.execution.streaming.state"

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    # A stream runs the same small plan for ever: adapting each batch costs more than it brings.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.stateStore.providerClass": f"{_STATE}.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "500",
}
"""What streamskit sets on a session it makes; a setting passed to `spark_session` wins."""

_starting = threading.Lock()


def spark_session(master: str = "local[*]", **settings: str) -> "SparkSession":
    """Return the running Spark session, or start one that can read and write Kafka.

    Args:
        master: where Spark runs, as in `SparkSession.builder.master`.
        settings: more Spark settings, with `__` for each dot, as in `spark__driver__memory="4g"`.

    Raises:
        SetupError: no usable Java, or the jars can't be fetched.

    >>> spark = spark_session()
    >>> spark.range(3).count()
    3

    Mirrors `SparkSession.builder.getOrCreate`.
    """
    from pyspark.sql import SparkSession

    with _starting:
        running = SparkSession.getActiveSession()
        if running is not None:
            return running
        # Spark's launcher reads JAVA_HOME; it may name a Java that Spark can't run on.
        os.environ["JAVA_HOME"] = str(find_java().home)
        builder = SparkSession.builder.master(master).appName("streamskit")
        for name, value in (_all_settings() | {k.replace("__", "."): v for k, v in settings.items()}).items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        # It repeats every failed query as one long line of JSON, which hides the sentence we raise.
        logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL + 1)
        return session


def _all_settings() -> dict[str, str]:
    jars = [str(jar) for jar in spark_jars()]
    folders = {
        "spark.sql.warehouse.dir": str(state_dir() / "warehouse"),
        "spark.local.dir": tempfile.gettempdir(),
    }
    # On the class path of the JVM itself, so that a session starts without copying jars around.
    return SETTINGS | folders | {"spark.driver.extraClassPath": os.pathsep.join(jars), "spark.jars": ",".join(jars)}
