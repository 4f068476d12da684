"""The processes of a standalone cluster: one master, and workers, each a Java process that ends with this one."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from streamskit.broker import settings
from streamskit.broker.settings import HOST
from streamskit.common.errors import SetupError
from streamskit.environment.jars import pyspark_jars
from streamskit.environment.java import find_java, java_environment
from streamskit.environment.processes import Dependent, alive, eventually, listened_ports
from streamskit.environment.spark_processes import python_path, spark_home

START_SECONDS = 60.0
ATTEMPTS = 3
PORT_TAKEN = ("Address already in use", "Failed to bind to")
"""What a daemon logs if another program has taken its own port, or that of its web page."""

HEAP = "256m"
"""The heap of a master or worker: they only start others and keep lists."""

QUICK = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""For every Java of the cluster: it lives for minutes, so a quick start is worth more than top speed."""

OPTIONS = (
    "-Djava.awt.headless=true",
    # A port that is taken meanwhile is an error; otherwise, Spark would silently take the next one.
    "-Dspark.port.maxRetries=0",
    "-Dspark.master.rest.enabled=false",
)


@dataclass(frozen=True)
class Daemon:
    """A master or worker that runs: its name, its process, and the port of its own web page."""

    name: str
    running: Dependent
    port: int
    page: int

    @property
    def is_alive(self) -> bool:
        """Whether its process runs."""
        return alive(self.running.process)


def start_master(folder: Path) -> Daemon:
    """Start a master that keeps its log in a folder.

    Raises:
        SetupError: it does not start.
    """
    return _start("master", "org.apache.spark.deploy.master.Master", (), folder)


def start_worker(name: str, master: Daemon, cores: int, memory: str, folder: Path) -> Daemon:
    """Start a worker that offers cores and memory to the applications of a master.

    Raises:
        SetupError: it does not start.
    """
    offer = ["--cores", str(cores), "--memory", memory, "--work-dir", str(folder / name)]
    return _start(name, "org.apache.spark.deploy.worker.Worker", [*offer, f"spark://{HOST}:{master.port}"], folder)


def end_all(owner: int, daemons: list[Daemon], folder: Path) -> None:
    """End the processes of a cluster and remove its files with the program that started it, not with a fork."""
    if os.getpid() != owner:
        return
    while daemons:
        daemons.pop().running.end()
    shutil.rmtree(folder, ignore_errors=True)


def sweep(home: Path) -> None:
    """Remove what killed programs have left behind; their processes have ended with them."""
    for folder in home.iterdir():
        owner = folder.name.partition("-")[0]
        if owner.isdecimal() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)


def _start(name: str, runs: str, arguments: Sequence[str], folder: Path) -> Daemon:
    log = folder / f"{name}.log"
    for _ in range(ATTEMPTS):  # a free port can be taken before Java binds it
        port, page = settings.free_ports(2)
        where = ["--host", HOST, "--port", str(port), "--webui-port", str(page)]
        command = [str(find_java().executable), f"-Xmx{HEAP}", *OPTIONS, "-cp", f"{pyspark_jars()}/*", runs]
        daemon = Daemon(name, Dependent([*command, *where, *arguments], folder, log, _environment(folder)), port, page)
        if _comes_up(daemon):
            return daemon
        daemon.running.end(orderly=False)
        if not any(words in log.read_text(errors="replace") for words in PORT_TAKEN):
            break
    said = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    raise SetupError(
        f"The {name} of the Spark cluster did not start. Its last output: {said[-1] if said else 'nothing'} "
        f"(log: {log}). On a busy machine try again."
    )


def _comes_up(daemon: Daemon) -> bool:
    def is_there() -> bool:
        # Look at the process's ports: trying to bind one would take it from Java for that moment.
        return {daemon.port, daemon.page} <= listened_ports(daemon.running.process)

    return eventually(lambda: is_there() or not daemon.is_alive, START_SECONDS) and daemon.is_alive


def _environment(folder: Path) -> dict[str, str]:
    """Return the environment of a daemon: a worker hands it on to its executors, and they to their Python."""
    (core,) = pyspark_jars().glob("spark-core_*.jar")
    return java_environment() | {
        # Without it, the worker looks for a build of Spark from source.
        "SPARK_SCALA_VERSION": core.name.removeprefix("spark-core_").partition("-")[0],
        "SPARK_HOME": str(spark_home()),
        "JAVA_HOME": str(find_java().home),
        "JDK_JAVA_OPTIONS": f"{os.environ.get('JDK_JAVA_OPTIONS', '')} {QUICK}".strip(),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "PYTHONPATH": python_path(),
    }
