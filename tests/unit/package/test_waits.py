"""Every wait ends: no lesson, lab or test has a loop or a call that goes on for ever when something does not come."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
NOTEBOOKS = sorted([*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "labs" / "source").rglob("*.ipynb")])
FOLDERS = [ROOT / name for name in ("tests", "examples", "streamskit/course", "streamskit/faults")]
PROGRAMS = sorted(path for folder in FOLDERS for path in folder.rglob("*.py"))


CLOCKS = {"monotonic", "perf_counter", "wait", "is_set"}
"""What a loop may ask for in its condition: the time, or an event with which somebody else ends it."""

STREAMS = {"recv", "write"}
"""What comes to an end by itself."""


@pytest.mark.parametrize("path", [*NOTEBOOKS, *PROGRAMS], ids=lambda path: str(path.relative_to(ROOT)))
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


@pytest.mark.parametrize("path", [*NOTEBOOKS, *PROGRAMS], ids=lambda path: str(path.relative_to(ROOT)))
def test_a_call_that_waits_says_for_how_long(path: Path) -> None:
    calls = (node for code in codes(path) for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call))
    assert [f"line {call.lineno}: {ast.unparse(call)}" for call in calls if is_endless(call)] == []


@pytest.mark.parametrize(
    ("call", "is_good"),
    [
        ("thread.join()", False),
        ("thread.join(60)", True),
        ("', '.join(names)", True),
        ("asked.result()", False),
        ("asked.result(timeout=60)", True),
        ("urlopen(address)", False),
        ("urllib.request.urlopen(request, None)", False),
        ("urlopen(address, timeout=30)", True),
        ("urlopen(address, None, 30)", True),
    ],
)
def test_a_call_without_an_end_is_recognised(call: str, is_good: bool) -> None:
    parsed = ast.parse(call, mode="eval").body
    assert isinstance(parsed, ast.Call)
    assert is_endless(parsed) != is_good


def waits(path: Path) -> Iterator[ast.While]:
    """The loops of a file that wait for something."""
    for code in codes(path):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.While) and is_wait(node):
                yield node


def codes(path: Path) -> list[str]:
    """The code of a file: of a notebook that of its cells."""
    if path.suffix != ".ipynb":
        return [path.read_text()]
    return ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


def is_wait(loop: ast.While) -> bool:
    """Whether a loop waits: it sleeps, asks on when it failed, or has nothing to do at all."""
    idle = all(isinstance(step, ast.Pass) for step in loop.body) and not called(loop.test) & STREAMS
    asks_on = isinstance(loop.test, ast.Constant) and any(isinstance(node, ast.Try) for node in ast.walk(loop))
    return idle or asks_on or bool(called(loop) & {"sleep", "wait", "poll", "next", "fetch"})


def is_endless(call: ast.Call) -> bool:
    """Whether a call waits for a thread, a result or an answer, however long that takes."""
    said = {*range(len(call.args)), *(keyword.arg for keyword in call.keywords)}
    limits = {"join": {0, "timeout"}, "result": {0, "timeout"}, "urlopen": {2, "timeout"}}
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    return name in limits and not said & limits[name]


def ends(loop: ast.While) -> bool:
    """Whether a loop looks at the clock and says what did not come, or is ended by somebody else."""
    says = any(isinstance(node, ast.Raise) or (isinstance(node, ast.Assert) and node.msg) for node in ast.walk(loop))
    return bool(called(loop.test) & CLOCKS) or (says and bool(called(loop) & CLOCKS))


def called(tree: ast.AST) -> set[str]:
    """The names of all functions and methods that are called."""
    functions = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {function.attr if isinstance(function, ast.Attribute) else ast.unparse(function) for function in functions}
