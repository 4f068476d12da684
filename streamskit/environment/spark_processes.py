"""What Spark's processes start with: a home without PySpark's zip, and on a cluster this Python's modules and a log."""

import hashlib
import os
import re
import site
import socket
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from streamskit.common.errors import SetupError
from streamskit.common.paths import cache_dir
from streamskit.environment.jars import pyspark_jars

if TYPE_CHECKING:
    from pyspark import SparkContext

HOME_VARIABLE = "SPARK_HOME"
STANDALONE = "spark://"
MASTER_SECONDS = 10.0
"""How long the master of a cluster may take to accept a connection; one that starts along with us takes a moment."""

LINKED = ("bin", "jars")
LOOPBACK = re.compile(r"spark://(127\.[\d.]+|localhost|\[::1\]):\d+")

UNCHECKED_ARROW = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""Options with which Arrow does not check its bounds for each value; Spark never reads outside them."""


def spark_home(master: str = "local") -> Path:
    """Return the folder to start Spark from: PySpark's own, or one of links to it where that is as good.

    Each Python that Spark starts looks for PySpark in `python/lib/pyspark.zip` of its home first. Python caches nothing
    that it compiles from a zip, so it would compile PySpark again, for half a second, at every start. Where the home
    has no such zip, Python finds the installed PySpark, if it is the Python that PySpark is installed for. On YARN the
    zip has to be there: Spark sends it to the executors.

    >>> (spark_home() / "jars").is_dir()
    True
    """
    package = pyspark_jars().parent
    if master.startswith("yarn") or not _python_finds(package):
        return package
    home = cache_dir() / "spark-home" / hashlib.sha256(str(package).encode()).hexdigest()[:12]
    try:
        home.mkdir(parents=True, exist_ok=True)
        for name in LINKED:
            with suppress(FileExistsError):  # another process links it, too
                (home / name).symlink_to(package / name)
    except OSError:  # a file system without links
        return package
    return home


@contextmanager
def started_from(home: Path) -> Iterator[None]:
    """Let PySpark start Java from a home for the time of a `with`, unless the user has named one."""
    if HOME_VARIABLE in os.environ:
        yield
        return
    os.environ[HOME_VARIABLE] = str(home)
    try:
        yield
    finally:
        del os.environ[HOME_VARIABLE]


def _python_finds(package: Path) -> bool:
    """Whether the Python that Spark is going to start has PySpark installed, and so finds it by itself."""
    if os.environ.get("PYSPARK_PYTHON", sys.executable) != sys.executable:
        return False
    return str(package.parent) in [*site.getsitepackages(), site.getusersitepackages()]


def is_local(master: str) -> bool:
    """Whether a master is this process itself: its executor is the driver."""
    return master == "local" or master.startswith("local[")


def is_on_this_machine(master: str) -> bool:
    """Whether all of Spark runs on this machine, so that nobody else has to reach it."""
    return master.startswith("local") or LOOPBACK.fullmatch(master) is not None


def check_master_answers(master: str) -> None:
    """Make sure that something listens where Spark's own cluster is said to be: Spark would try for a minute.

    Args:
        master: where Spark is to run; of several masters one is enough, and other kinds of clusters are not asked.

    Raises:
        SetupError: nobody takes a connection there.
    """
    places = [place.rpartition(":") for place in master.removeprefix(STANDALONE).split(",")]
    if not master.startswith(STANDALONE) or not all(host and port.isdecimal() for host, _, port in places):
        return  # Spark says what is wrong with it
    deadline = time.monotonic() + MASTER_SECONDS
    while "" not in (refusals := [_refusal(host, int(port)) for host, _, port in places]):
        if time.monotonic() > deadline:  # it may have been starting
            raise SetupError(
                f"No Spark master answers at {master} ({'; '.join(dict.fromkeys(refusals))}). Is its address right, "
                "and does it run? The argument of spark_session(), or STREAMSKIT_MASTER, says where Spark runs; "
                "'local[*]' is this process."
            )
        time.sleep(0.5)


def _refusal(host: str, port: int) -> str:
    """Return why nobody takes a connection; "" if somebody does."""
    try:
        socket.create_connection((host.strip("[]"), port), timeout=MASTER_SECONDS).close()
    except (OSError, OverflowError, UnicodeError) as failure:
        return str(failure)
    return ""


def executor_settings(log_settings: Path, log_file: str) -> dict[str, str]:
    """Return Spark's settings for executors of a cluster; the jars go to them over the network, by `spark.jars`.

    Args:
        log_settings: the file of Log4j's settings; executors that do not find it log as Spark does by default.
        log_file: the system property in it that names the log file.
    """
    return {
        "spark.executorEnv.PYTHONPATH": python_path(),
        # A relative path: each executor has a folder of its own.
        "spark.executor.extraJavaOptions": (
            f'"-Dlog4j2.configurationFile={log_settings}" "-D{log_file}=executor.log" {UNCHECKED_ARROW}'
        ),
        # How long a task waits for the executor that has its state: with Spark's 3 s a new executor would stay idle.
        "spark.locality.wait": "100ms",
        # Executors that stay idle for a moment are kept: a stream has work for them again soon.
        "spark.dynamicAllocation.enabled": "false",
    }


def python_path() -> str:
    """Return where other Python processes find what this one imports: its folder, PYTHONPATH, more of `sys.path`."""
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    own = str(Path(__file__).parents[2])
    found = [str(Path.cwd()), *named, *further_path(), *([] if _is_found_anyway(own) else [own])]
    return os.pathsep.join(dict.fromkeys(filter(None, found)))


def further_path() -> list[str]:
    """Return what of `sys.path` another Python does not have by itself: a script's folder, and what was inserted."""
    found = [str(Path(each).absolute()) for each in sys.path if not each.endswith(".jar")]
    return [each for each in dict.fromkeys(found) if not _is_found_anyway(each) and Path(each).exists()]


def let_workers_import(context: "SparkContext") -> None:
    """Let Spark's Python workers import from where this process does now, which a notebook may change at any time.

    Spark gives them names of files with each function, and they join these to a folder: a whole path stays as it is.
    """
    names = [name for name in context._python_includes or () if not Path(name).is_absolute()]
    context._python_includes = [*names, *reversed(further_path())]  # workers insert each before the last one


def _is_found_anyway(path: str) -> bool:
    """Whether a path is where Python keeps its own modules, packages and commands."""
    return any(Path(path).is_relative_to(place) for place in _own_places())


@cache
def _own_places() -> list[str]:
    kept = [sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib", "scripts")]
    return [*kept, *site.getsitepackages(), site.getusersitepackages()]
