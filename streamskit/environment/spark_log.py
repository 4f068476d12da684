"""Where Spark's Java writes its log: a file for each process that uses Spark, as two would roll over each other's."""

import os
import re
from contextlib import suppress
from pathlib import Path

import psutil

from streamskit.common.paths import state_dir

KEPT = 5
"""How many logs of programs that have ended are kept, the last ones."""

NAME = re.compile(r"spark-(\d+)\.log")

REASON = re.compile(r"""^(?::\ |Exception\ in\ thread\ "[^"]*"\ )[\w.$]+:\ (.+) | ^Error:\ (.+)""", re.M | re.X)
"""How a line begins in which Java or its launcher says why it ends, and py4j in the midst of its text."""


def spark_log() -> Path:
    """Return the file to which the Spark of this process writes its log.

    >>> spark_log().name  # doctest: +SKIP
    'spark-4711.log'
    """
    return state_dir() / "logs" / f"spark-{os.getpid()}.log"


def why_not_started(failure: Exception) -> str:
    """Return why Spark did not start, in the words of its Java where it has said any: without the stack trace."""
    log, found = spark_log(), REASON.search(str(failure))
    if found is None and log.is_file():
        *_, found = [None, *REASON.finditer(log.read_text(errors="replace"))]  # the last one: it is of this start
    return (found[1] or found[2] if found else str(failure)).strip().rstrip(".")


def forget_old_logs() -> None:
    """Delete the logs of programs that have ended, except for the last few, each with its rolled-over files."""
    ended = [
        log
        for log in spark_log().parent.glob("spark-*.log")
        if (name := NAME.fullmatch(log.name)) and not psutil.pid_exists(int(name[1]))
    ]
    for log in sorted(ended, key=_last_written, reverse=True)[KEPT:]:
        for file in (log, *log.parent.glob(f"{log.name}.*")):
            with suppress(FileNotFoundError):  # another program deletes it, too
                file.unlink()


def _last_written(log: Path) -> float:
    with suppress(FileNotFoundError):
        return log.stat().st_mtime
    return 0.0
