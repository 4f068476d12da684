"""Class data sharing: a Java program starts in half the time when its classes are in an archive.

`python -m streamskit class-sharing` makes the archives; without them everything works the same, only slower to start.
"""

import hashlib
import os
from pathlib import Path

from streamskit.common.paths import cache_dir
from streamskit.environment.jars import broker_jars, spark_jars
from streamskit.environment.java import Java, find_java
from streamskit.environment.spark_processes import spark_home

PROGRAMS = ("spark", "broker")
DRAFTS_VARIABLE = "STREAMSKIT_CLASS_DRAFTS"
"""The environment variable with the folder into which programs write their classes when they end."""

QUIET = "-Xlog:disable"
"""An archive that does not fit is no problem, and not worth a line."""


def java_options(program: str) -> list[str]:
    """Return the options with which a program uses its archive, or makes one; no options if there is no archive.

    Args:
        program: "spark" or "broker".

    >>> java_options("spark")  # doctest: +SKIP
    ['-XX:SharedArchiveFile=.../classes/java-0b1f.jsa:.../classes/spark-2c4e.jsa', '-Xlog:disable']
    """
    java = find_java()
    base = [] if has_own_archive(java) else [str(base_archive(java))]
    if drafts := os.environ.get(DRAFTS_VARIABLE):
        shared = [f"-XX:SharedArchiveFile={base[0]}"] if base else []
        return [*shared, f"-XX:ArchiveClassesAtExit={drafts}/{program}", QUIET]
    if not archive(program, java).is_file():
        return []
    return [f"-XX:SharedArchiveFile={os.pathsep.join([*base, str(archive(program, java))])}", QUIET]


def archives_are_here() -> bool:
    """Whether there is an archive for each program."""
    return all(archive(program, find_java()).is_file() for program in PROGRAMS)


def archive(program: str, java: Java) -> Path:
    """Return the path of a program's archive: a different one for each Java, and for each set of jars."""
    jars = [*(spark_home() / "jars").glob("*.jar"), *spark_jars()] if program == "spark" else broker_jars()
    told = [f"{jar} {jar.stat().st_size} {jar.stat().st_mtime_ns}" for jar in sorted(jars)]
    return cache_dir() / "classes" / f"{program}-{_digest(java, told)}.jsa"


def base_archive(java: Java) -> Path:
    """Return the path of the archive of Java's own classes, for a Java that comes without one."""
    return cache_dir() / "classes" / f"java-{_digest(java, [])}.jsa"


def has_own_archive(java: Java) -> bool:
    """Return whether a Java has an archive of its own classes, on which ours can build."""
    return (java.home / "lib" / "server" / "classes.jsa").is_file()


def _digest(java: Java, options: list[str]) -> str:
    release = java.home / "release"
    version = release.read_text() if release.is_file() else str(java.version)
    return hashlib.sha256("\n".join([str(java.home), version, *options]).encode()).hexdigest()[:12]
