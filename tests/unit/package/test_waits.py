"""Every wait ends: no lesson, lab or test has a loop that goes on for ever when something does not come."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
NOTEBOOKS = sorted([*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "labs" / "source").rglob("*.ipynb")])
TESTS = sorted((ROOT / "tests").rglob("*.py"))

CLOCKS = {"monotonic", "perf_counter", "wait", "is_set"}
"""What a loop may ask for in its condition: the time, or an event with which somebody else ends it."""

STREAMS = {"recv", "write"}
"""What comes to an end by itself."""


@pytest.mark.parametrize("path", [*NOTEBOOKS, *TESTS], ids=lambda path: str(path.relative_to(ROOT)))
def test_a_loop_that_waits_has_an_end_and_a_sentence(path: Path) -> None:
    assert [f"line {loop.lineno}: {ast.unparse(loop.test)}" for loop in waits(path) if not ends(loop)] == []


@pytest.mark.parametrize(
    ("loop", "is_good"),
    [
        ("while not store.all():\n    time.sleep(1)", False),
        ("while store.all() != wanted:\n    pass", False),
        ("while True:\n    try:\n        return ask()\n    except OSError:\n        continue", False),
        ("while line.recv(9):\n    pass", True),
        ("while not done.wait(0.1):\n    ask()", True),
        ("while time.monotonic() < deadline:\n    time.sleep(1)", True),
        ("while not store.all():\n    assert time.monotonic() < deadline, 'no rows'\n    time.sleep(1)", True),
        ("while len(rows) < 5:\n    rows.append(ask())", True),
    ],
)
def test_a_wait_without_an_end_is_recognised(loop: str, is_good: bool) -> None:
    (parsed,) = ast.parse(loop).body
    assert isinstance(parsed, ast.While)
    assert (not is_wait(parsed) or ends(parsed)) == is_good


def waits(path: Path) -> Iterator[ast.While]:
    """The loops of a file that wait for something."""
    for code in cells(path) if path.suffix == ".ipynb" else [path.read_text()]:
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.While) and is_wait(node):
                yield node


def cells(path: Path) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


def is_wait(loop: ast.While) -> bool:
    """Whether a loop waits: it sleeps, asks on when it failed, or has nothing to do at all."""
    idle = all(isinstance(step, ast.Pass) for step in loop.body) and not called(loop.test) & STREAMS
    asks_on = isinstance(loop.test, ast.Constant) and any(isinstance(node, ast.Try) for node in ast.walk(loop))
    return idle or asks_on or bool(called(loop) & {"sleep", "wait", "poll"})


def ends(loop: ast.While) -> bool:
    """Whether a loop looks at the clock and says what did not come, or is ended by somebody else."""
    says = any(isinstance(node, ast.Raise) or (isinstance(node, ast.Assert) and node.msg) for node in ast.walk(loop))
    return bool(called(loop.test) & CLOCKS) or (says and bool(called(loop) & CLOCKS))


def called(tree: ast.AST) -> set[str]:
    """The names of all functions and methods that are called."""
    functions = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {function.attr if isinstance(function, ast.Attribute) else ast.unparse(function) for function in functions}
