"""`python -m streamskit class-sharing`: keeps the Java classes of Spark and of the broker for their next starts.

It lets both work for a moment and then end; the classes they have loaded go into an archive in the user's cache.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from streamskit.broker import EmbeddedBroker
from streamskit.common.errors import SetupError
from streamskit.environment.archives import (
    DRAFTS_VARIABLE,
    PROGRAMS,
    QUIET,
    archive,
    base_archive,
    has_own_archive,
)
from streamskit.environment.java import Java, find_java
from streamskit.environment.processes import alive, eventually, name_of

END_SECONDS = 300.0
"""How long a Java program may take to write its classes, on a busy machine."""


def make_archives(progress: Callable[[str], object] = print) -> bool:
    """Make the archives that are missing, unless another process is doing so; return whether all exist afterwards.

    Args:
        progress: called with a line of text for each step.

    >>> make_archives()  # doctest: +SKIP
    Keeping Java's classes for faster starts ...
    ... done in 24 s.
    True

    Raises:
        SetupError: there is no Java, or what should load the classes failed.
    """
    java = find_java()
    wanted = {program: archive(program, java) for program in PROGRAMS}
    if all(place.is_file() for place in wanted.values()):
        return True
    folder = wanted[PROGRAMS[0]].parent
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / "lock", timeout=0), _drafts(folder) as drafts:
            progress("Keeping Java's classes for faster starts ...")
            began = time.monotonic()
            _make_base(java)
            environment = os.environ | {DRAFTS_VARIABLE: drafts, "STREAMSKIT_PROJECT": drafts}
            work = [sys.executable, "-m", "streamskit", "class-sharing", "--work"]
            done = subprocess.run(work, env=environment, check=False, capture_output=True, text=True, errors="replace")
            for program, place in wanted.items():
                draft = Path(drafts) / program
                if draft.is_file():
                    _remove_old(place)
                    draft.replace(place)
            if not all(place.is_file() for place in wanted.values()):
                raise SetupError(_why_there_is_none(done))
            progress(f"... done in {time.monotonic() - began:.0f} s.")
    except Timeout:
        return False
    return all(place.is_file() for place in wanted.values())


def _drafts(folder: Path) -> tempfile.TemporaryDirectory[str]:
    """Return a folder for archives that are not whole yet; remove what killed processes left, up to 250 MB each."""
    for left in folder.glob("draft-*"):
        shutil.rmtree(left, ignore_errors=True)
    return tempfile.TemporaryDirectory(dir=folder, prefix="draft-")


def _why_there_is_none(done: subprocess.CompletedProcess[str]) -> str:
    last = ([line.strip() for line in done.stderr.splitlines() if line.strip()] or ["nothing"])[-1]
    return (
        "Java's classes were not kept, so that Java starts as slowly as before; all else works the same. The program "
        f"that loads them ended with code {done.returncode}; its last output: {last}"
    )


def _remove_old(place: Path) -> None:
    """Keep only one other archive of the program, such as that of another project: each takes up to 200 MB."""
    program, _, _ = place.name.partition("-")
    others = sorted(place.parent.glob(f"{program}-*.jsa"), key=lambda other: other.stat().st_mtime)
    for other in others[:-1]:
        other.unlink()


def _make_base(java: Java) -> None:
    place = base_archive(java)
    if has_own_archive(java) or place.is_file():
        return
    command = [str(java.executable), "-Xshare:dump", f"-XX:SharedArchiveFile={place}", QUIET]
    subprocess.run(command, check=False, capture_output=True)


def _work() -> None:
    """Let a broker and Spark do what they do in lessons, and end: they write their classes when they exit."""
    from pyspark.sql import functions as F

    from streamskit import KafkaStreams, Serdes, StreamsBuilder
    from streamskit.environment.session import spark_session

    with tempfile.TemporaryDirectory() as folder, EmbeddedBroker(data_dir=Path(folder) / "broker") as broker:
        broker.create_topics("words", "shouts", "counts", partitions=2)
        builder = StreamsBuilder()
        words = builder.stream("words")
        words.map_values(F.upper).to("shouts")
        words.group_by_key().count("by-word").to_stream().to("counts", value=Serdes.long())
        words.group_by_key().reduce(lambda joined, word: joined + word, "joined")
        spark = spark_session()
        streams = KafkaStreams(builder.build(), "classes", broker.bootstrap_servers, state_dir=folder)
        with streams:
            for number in range(3):
                broker.produce("words", [(f"key-{number}", "word")])
                streams.await_processed("300 seconds")
        java = [each for each in psutil.Process().children(recursive=True) if name_of(each).startswith("java")]
        gateway = spark.sparkContext._gateway
        spark.stop()
        if gateway is not None:
            gateway.shutdown()
            gateway.proc.stdin.close()  # Spark's Java ends with its input
        if (process := broker.process) is not None:
            process.terminate()
        eventually(lambda: not any(map(alive, java)), END_SECONDS)


def main(arguments: Sequence[str]) -> int:
    """Make the archives, or with `--work` what they are made of; return the exit code.

    Raises:
        SetupError: there is no Java, or the archives could not be made.
    """
    parser = argparse.ArgumentParser(prog="python -m streamskit class-sharing", description=__doc__)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    _work() if parser.parse_args(arguments).work else make_archives()
    return 0
