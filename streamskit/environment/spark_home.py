"""Spark's home: PySpark's jars and programs, without the zip that makes each Python of Spark's start slowly."""

import hashlib
import os
import site
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from streamskit.common.paths import cache_dir
from streamskit.environment.jars import pyspark_jars

VARIABLE = "SPARK_HOME"
LINKED = ("bin", "jars")


def spark_home() -> Path:
    """Return the folder to start Spark from: PySpark's own, or one of links to it where that is as good.

    Each Python that Spark starts looks for PySpark in `python/lib/pyspark.zip` of its home first. Of a zip Python keeps
    nothing compiled, so that it would compile PySpark anew, for half a second, at every start. Where the home has no
    such zip Python finds the installed PySpark, if it is the Python that PySpark is installed for.

    >>> (spark_home() / "jars").is_dir()
    True
    """
    package = pyspark_jars().parent
    if not _python_finds(package):
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
    if VARIABLE in os.environ:
        yield
        return
    os.environ[VARIABLE] = str(home)
    try:
        yield
    finally:
        del os.environ[VARIABLE]


def _python_finds(package: Path) -> bool:
    """Whether the Python that Spark is going to start has PySpark installed, and need not be told where it is."""
    if os.environ.get("PYSPARK_PYTHON", sys.executable) != sys.executable:
        return False
    return str(package.parent) in [*site.getsitepackages(), site.getusersitepackages()]
