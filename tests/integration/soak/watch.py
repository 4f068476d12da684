"""What a soak watches: the memory of each process, and the disk that the application takes."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from streamskit.broker import EmbeddedBroker
from streamskit.environment.processes import command_line
from streamskit.faults import Driver

EVERY = 3.0
"""How often it looks, in seconds."""

WARM_UP, LEAST = 90.0, 60.0
"""For how many seconds a process is left to grow as it likes, and for how many it is looked at then, at least."""

SLOPE = 2.0
"""How many megabytes anything may grow in a minute, beside what its size differs by chance."""

NOISE = {"Spark": 250.0, "workers": 120.0, "folder": 150.0}
"""Differences by chance, in megabytes: Java's heap fills up to its limit before Java cleans it, Spark starts Python
processes as it needs them, and keeps the changes of some fifty micro-batches. A burst of large records
(`Load.add_large`: up to 250 of 300 kB) makes one 75 MB larger than others, and two bursts may be among the fifty."""

WORKER = "pyspark.worker"
"""What stands in the command lines of Spark's Python processes."""

OTHERS_NOISE = 60.0

WORKER_LIMIT = 500.0
"""How many megabytes a Python process of Spark's may have."""


class Watch:
    """Notes sizes in megabytes until it is stopped.

    Args:
        broker: the broker.
        driver: returns the application.
        folder: returns the folder where it keeps its state.
    """

    def __init__(self, broker: EmbeddedBroker, driver: Callable[[], Driver], folder: Callable[[], Path]) -> None:
        self._broker, self._driver, self._folder = broker, driver, folder
        self.sizes: dict[str, list[tuple[float, float]]] = defaultdict(list)
        """By what it is the moments, in seconds, and sizes."""
        self.largest_worker = 0.0
        self.stopping = threading.Event()

    def run(self) -> None:
        """Note sizes until it is stopped."""
        while not self.stopping.wait(EVERY):
            now = time.monotonic()
            for what, size in self._seen():
                self.sizes[what].append((now, size))

    def growth(self, since: float) -> dict[str, tuple[float, float, float]]:
        """Return what grew how much since a moment: the greatest size in the first half, in the second, the minutes."""
        since, grown = since + WARM_UP, {}
        for what, noted in self.sizes.items():
            late = [(at, size) for at, size in noted if at >= since]
            if not late or late[0][0] > since + 3 * EVERY or late[-1][0] - since < LEAST:
                continue  # it did not live for all of that time
            half = since + (late[-1][0] - since) / 2
            first, second = ([size for at, size in late if (at > half) is later] for later in (False, True))
            if first and second:
                grown[what] = max(first), max(second), (late[-1][0] - since) / 120
        return grown

    def too_much(self, since: float) -> dict[str, tuple[float, float, float]]:
        """Return what grew more than it may."""
        found = {}
        for what, (first, second, minutes) in self.growth(since).items():
            if second - first > NOISE.get(what.split()[0], OTHERS_NOISE) + SLOPE * minutes:
                found[what] = first, second, minutes
        return found

    def _seen(self) -> Iterator[tuple[str, float]]:
        if (broker := self._broker.process) is not None:
            yield f"broker {broker.pid}", _resident(broker)
        for each in psutil.Process().children():
            if "streamskit serve" in command(each):
                yield f"instance {each.pid}", _resident(each)
        yield "folder", _on_disk(self._folder())
        driver = self._driver()
        if not driver.is_running:
            return
        try:
            process = psutil.Process(driver.pid)
            family = process.children(recursive=True)
        except psutil.Error:
            return
        yield f"driver {process.pid}", _resident(process)
        for java in (each for each in family if "java" in command(each)):
            yield f"Spark {java.pid}", _resident(java)
        workers = [_resident(each) for each in family if WORKER in command(each)]
        self.largest_worker = max(self.largest_worker, *workers, 0.0)
        yield f"workers of {process.pid}", sum(workers)


def command(process: psutil.Process) -> str:
    """Return the command line of a process, "" where it has ended."""
    return " ".join(command_line(process))


def _resident(process: psutil.Process) -> float:
    try:
        return float(process.memory_info().rss) / 1024**2
    except psutil.Error:
        return 0.0


def _on_disk(folder: Path) -> float:
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_blocks * 512
        except OSError:  # Spark deletes all the while
            continue
    return total / 1024**2
