"""Kafka Streams itself, in a Java of its own: two threads, and Kafka's defaults for the rest."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from streamskit.broker.base import Broker
from streamskit.environment.java import find_java
from streamskit.kafka.topics import list_topics
from tests.benchmarks.measure import Run

SOURCE = Path(__file__).parent / "java" / "KafkaStreamsPrograms.java"
APPLICATION = "kafka-streams"
"""How the names of its applications begin."""


@dataclass(frozen=True)
class KafkaStreamsJava:
    """Runs programs of `KafkaStreamsPrograms.java`, which are named like those of `cases` and `latency`.

    Args:
        classpath: with the jars of Kafka Streams and of Jackson, as Java takes it.
        broker: the broker to go through.
    """

    classpath: str
    broker: Broker

    @contextmanager
    def following(self, program: str) -> Iterator[None]:
        """Run a program that sends on each update at once, without a cache."""
        with tempfile.TemporaryDirectory() as folder:
            command = self._command("follow", program, folder)
            application = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                yield
            finally:
                application.terminate()
                application.wait(60)
                self._clean_up()

    def timed(self, program: str, records: int, rounds: int, cache: int | None = None) -> list[Run]:
        """Run a program over topics that are full, once to compile and then as often as asked for.

        Args:
            program: its name.
            records: how many there are in its topics.
            rounds: how many runs to return.
            cache: of its record cache, in bytes; Kafka Streams' default if not given.
        """
        told = "default" if cache is None else str(cache)
        with tempfile.TemporaryDirectory() as folder:
            command = [*self._command("time", program, folder), str(records), str(rounds), told]
            done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
        self._clean_up()
        if done.returncode != 0:
            raise RuntimeError(
                f"Kafka Streams did not run '{program}': Java ended with {done.returncode}.\n{done.stderr[-2000:]}"
            )
        runs = [line.split() for line in done.stdout.splitlines()[1:]]
        return [Run(float(seconds), float(busy), records) for seconds, busy in runs]

    def _command(self, way: str, program: str, folder: str) -> list[str]:
        java = str(find_java().executable)
        return [java, "-cp", self.classpath, str(SOURCE), way, program, self.broker.bootstrap_servers, folder]

    def _clean_up(self) -> None:
        """Delete its changelogs."""
        there = list_topics(self.broker.connection, internal=False)
        if changelogs := [topic for topic in there if topic.startswith(APPLICATION)]:
            self.broker.delete_topics(*changelogs, missing_ok=True)
