"""Where the programs of the recorded vectors are found by name, and what else a driver has to know to run them."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from streamskit import StreamsBuilder, Topology

Program = Callable[[StreamsBuilder], None]
PROGRAMS: dict[str, Callable[[], Topology]] = {}
"""By the name of its vector a function that makes the topology."""

SETTINGS: dict[str, dict[str, Any]] = {
    "joins-stream-stream-left-throttled": {"emit_interval": 1000},
    "ktable-cache-group-by": {"cache": True},
    "ktable-cache-on": {"cache": True},
    "ktable-cache-small": {"cache": True, "statestore_cache_max_bytes": 1},
    "windows-tumbling-emit-on-close-throttled": {"emit_interval": 1000},
}
"""Settings of the driver that differ from the usual: `emit_interval` in milliseconds is 0, `cache` is off."""

QUICK = {
    "basic-group-by-count",
    "errors-deserialization-dead-letters",
    "examples-pos-fanout",
    "joins-stream-table-left",
    "ktable-group-by-reduce",
    "processor-key-value-store",
    "queries-key-value",
    "time-out-of-order-count",
    "windows-tumbling-count",
}
"""One vector of each area, for `make check`."""

LETTERS = "dead-letters"
"""The topic on which handlers tell what they saw, as they cannot have side effects in the test's own process."""

EFFECTS: list[tuple[str, str]] = []
"""The side effects that programs had, as kind and text."""


NOTES = Path(gettempdir()) / f"streamskit-side-effects-{os.getpid()}"
"""A file for the side effects of functions that run in a process of Spark's, a line each: kind, tab, text."""


def program(function: Program) -> Program:
    """Register a program of the DSL under the name of its vector."""
    PROGRAMS[function.__name__.replace("_", "-")] = partial(built, function)
    return function


def wired(function: Callable[[], Topology]) -> Callable[[], Topology]:
    """Register a topology that is wired by hand under the name of its vector."""
    PROGRAMS[function.__name__.replace("_", "-")] = function
    return function


def built(function: Program) -> Topology:
    """Return the topology of a program of the DSL."""
    builder = StreamsBuilder()
    function(builder)
    return builder.build()


def note(kind: str, key: object, value: object) -> None:
    """Note a side effect, with null as Java writes it."""
    EFFECTS.append((kind, spelled(key, value)))


def note_elsewhere(notes: Path, kind: str, text: str) -> None:
    """Note a side effect from another process; `notes` is that of the test's own, whose `NOTES` are others there."""
    with notes.open("a") as file:
        file.write(f"{kind}\t{text}\n")


def spelled(key: object, value: object) -> str:
    """Return a key and a value as the vectors spell them."""
    return "=".join("null" if part is None else str(part) for part in (key, value))


def forget_effects() -> None:
    """Begin to note side effects anew."""
    EFFECTS.clear()
    NOTES.unlink(missing_ok=True)


def take_effects() -> list[tuple[str, str]]:
    """Return the side effects that were noted, in this process and elsewhere, as kind and text, and forget them."""
    lines = NOTES.read_text().splitlines() if NOTES.exists() else []
    found = EFFECTS + [(kind, text) for kind, _, text in (line.partition("\t") for line in lines)]
    forget_effects()
    return found
