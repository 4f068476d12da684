"""In which order a test run comes to its files: what takes long comes first, so that the end is shared out, too."""

from pathlib import Path

import pytest
from nbval.plugin import IPyNbCell

TURNS = ("browser", "notebook", "container")
"""What comes first. Notebooks share a Java only while no other test of their process has started Spark."""


def arrange(items: list[pytest.Item]) -> None:
    """Sort the tests of a run; those of a file stay together, in the order in which they are written."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    turns = {item.path: _turn(item, slow) for item in items}
    items.sort(key=lambda item: turns[item.path])


def _turn(item: pytest.Item, slow: set[Path]) -> tuple[int, bool]:
    kind = _kind(item)
    return (TURNS.index(kind) if kind in TURNS else len(TURNS)), item.path not in slow


def _kind(item: pytest.Item) -> str | None:
    if isinstance(item, IPyNbCell):
        return "notebook"
    return next((kind for kind in TURNS if item.get_closest_marker(kind)), None)
