"""Where the programs of the recorded vectors are found by name, and what else a driver has to know to run them."""

from collections.abc import Callable
from typing import Any

from streamskit import StreamsBuilder

Program = Callable[[StreamsBuilder], None]
PROGRAMS: dict[str, Program] = {}

SETTINGS: dict[str, dict[str, Any]] = {
    "joins-stream-stream-left-throttled": {"emit_interval": 1000},
    "ktable-cache-on": {"cache": True},
    "windows-tumbling-emit-on-close-throttled": {"emit_interval": 1000},
}
"""Settings of the driver that differ from the usual: `emit_interval` in milliseconds is 0, `cache` is off."""

EFFECTS: list[tuple[str, str]] = []
"""The side effects that programs had, as kind and text."""


def program(function: Program) -> Program:
    """Register a program under the name of its vector."""
    PROGRAMS[function.__name__.replace("_", "-")] = function
    return function


def note(kind: str, key: object, value: object) -> None:
    """Note a side effect, with null as Java writes it."""
    shown = ("null" if part is None else str(part) for part in (key, value))
    EFFECTS.append((kind, "=".join(shown)))
