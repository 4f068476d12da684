"""What Spark's executors need when they are processes of their own, on a cluster: this Python's modules, and a log."""

import os
import re
import sys
from pathlib import Path

LOOPBACK = re.compile(r"spark://(127\.[\d.]+|localhost|\[::1\]):\d+")


def is_local(master: str) -> bool:
    """Whether a master is this process itself: its executor is the driver."""
    return master == "local" or master.startswith("local[")


def is_on_this_machine(master: str) -> bool:
    """Whether all of Spark runs on this machine, so that nobody else has to reach it."""
    return master.startswith("local") or LOOPBACK.fullmatch(master) is not None


def executor_settings(log_settings: Path, log_file: str) -> dict[str, str]:
    """Return Spark's settings for executors of a cluster; the jars go to them over the network, by `spark.jars`.

    Args:
        log_settings: the file of Log4j's settings; executors that do not find it log as Spark does by default.
        log_file: the system property in it that names the log file.
    """
    return {
        "spark.executorEnv.PYTHONPATH": python_path(),
        # A path that is relative: each executor has a folder of its own.
        "spark.executor.extraJavaOptions": f'"-Dlog4j2.configurationFile={log_settings}" "-D{log_file}=executor.log"',
        # So long a task waits for the executor that has its state: with Spark's 3 s a new executor would stay idle.
        "spark.locality.wait": "100ms",
        # Executors that stay idle for a moment are kept: a stream has work for them again soon.
        "spark.dynamicAllocation.enabled": "false",
    }


def python_path() -> str:
    """Return where other Python processes find what this one imports: its folder, streamskit, and PYTHONPATH."""
    own = Path(__file__).parents[2]
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join(dict.fromkeys(filter(None, [str(Path.cwd()), *named, *_unless_installed(own)])))


def _unless_installed(folder: Path) -> list[str]:
    """Return a folder unless it is one where Python keeps its packages: those it finds by itself."""
    return [] if folder.is_relative_to(sys.prefix) else [str(folder)]
