"""Where the programs of the recorded vectors are found by name, and what else a driver has to know to run them."""

from collections.abc import Callable
from functools import partial
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
    shown = ("null" if part is None else str(part) for part in (key, value))
    EFFECTS.append((kind, "=".join(shown)))
