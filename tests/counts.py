"""Counts the code of the package, for the table in docs/architecture.md: `python -m tests.counts` writes it.

A statement is one that Python runs: docstrings and other lone strings are none, and an import is one whatever it names.
"""

import ast
import re
from collections.abc import Callable
from pathlib import Path

from tests.unit.topology.test_node_facts import type_checks

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- counts: python -m tests.counts writes them -->", "<!-- end of counts -->"

Parts = dict[str, list[Path]]


def parts() -> Parts:
    """The modules of the engine, of the course in it, and of the tests."""
    package = sorted((ROOT / "streamskit").rglob("*.py"))
    course = [path for path in package if path.relative_to(ROOT).parts[1] == "course"]
    return {
        "engine": [path for path in package if path not in course],
        "course": course,
        "tests": sorted((ROOT / "tests").rglob("*.py")),
    }


def statements(path: Path) -> int:
    """Return how many statements a module has."""
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.stmt)]
    return len([node for node in nodes if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))])


def lines(path: Path) -> int:
    """Return how many lines a module has, with those that are empty."""
    return len(path.read_text().splitlines())


def isinstances(path: Path) -> int:
    """Return how often a module asks for the type of something."""
    return len(re.findall(r"\bisinstance\(", path.read_text()))


COUNTS: dict[str, Callable[[list[Path]], int]] = {
    "statements": lambda paths: sum(map(statements, paths)),
    "lines": lambda paths: sum(map(lines, paths)),
    "modules": len,
    "of fewer than 80 lines": lambda paths: sum(lines(path) < 80 for path in paths),
    "of 80 to 400 lines": lambda paths: sum(80 <= lines(path) <= 400 for path in paths),
    "of more than 400 lines": lambda paths: sum(lines(path) > 400 for path in paths),
    "`isinstance`": lambda paths: sum(map(isinstances, paths)),
    "of them for a kind of node": lambda paths: sum(len([*type_checks(path)]) for path in paths),
}


def table() -> str:
    """Return the table as Markdown."""
    columns = parts()
    rows = [f"| {name} | " + " | ".join(f"{count(paths):,}" for paths in columns.values()) + " |"
            for name, count in COUNTS.items()]  # fmt: skip
    return "\n".join(["| | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns), *rows])


def on_page(table: str) -> str:
    """Return the table between its marks."""
    return f"{BEGIN}\n\n{table}\n\n{END}"


def numbers(text: str) -> list[int]:
    """Return the numbers of the table in a page's text."""
    there = text.partition(BEGIN)[2].partition(END)[0]
    return [int(number.replace(",", "")) for number in re.findall(r"(?<=\| )[\d,]+(?= \|)", there)]


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + on_page(table()) + rest.partition(END)[2])
    print(table())
