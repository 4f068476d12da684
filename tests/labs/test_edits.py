"""A wrong answer may be our solution with a few words changed: the cell of its exercise runs, and what that needs."""

import ast
from pathlib import Path
from typing import Any

import nbformat
import pytest

from streamskit.common.errors import StreamsKitError
from streamskit.course.labs import edits
from streamskit.course.labs.edits import Edit, needed

CELLS = {
    "": [
        "from math import floor\n\nLIMIT = 100\nother = 1 / 0",
        "def over(limit):\n    return lambda grams: grams > limit",
    ],
    "is_heavy": ["is_heavy = ...\n### BEGIN SOLUTION\nis_heavy = over(LIMIT)\n### END SOLUTION"],
}
"""By exercise the cells of a notebook; one of them cannot run."""


@pytest.fixture(autouse=True)
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [
        nbformat.v4.new_code_cell(cell, metadata={"nbgrader": {"grade_id": name}} if name else {})
        for name, cells in CELLS.items()
        for cell in cells
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=made), tmp_path / "lab.ipynb")
    monkeypatch.setattr(edits, "project_dir", lambda: tmp_path)


def edit(*texts: str) -> Edit:
    return Edit("lab", "is_heavy", texts, "{name}.ipynb")


def test_a_solution_is_made_of_its_cell_and_of_the_statements_before_it_that_it_needs() -> None:
    is_heavy = edit().answer()
    assert [grams for grams in (99, 100, 101) if is_heavy(grams)] == [101]


def test_a_changed_text_makes_another_answer() -> None:
    is_heavy = edit("over(LIMIT)", "lambda grams: grams >= LIMIT").answer()
    assert [grams for grams in (99, 100, 101) if is_heavy(grams)] == [100, 101]


@pytest.mark.parametrize(("text", "times"), [("under(LIMIT)", "0 times"), ("is_heavy", "2 times")])
def test_a_text_that_is_not_in_the_solution_exactly_once_is_refused(text: str, times: str) -> None:
    with pytest.raises(StreamsKitError, match=times):
        edit(text, "over(1)").answer()


def test_an_exercise_without_a_cell_is_refused() -> None:
    missing = Edit("lab", "is_light", (), "{name}.ipynb")
    with pytest.raises(StreamsKitError, match="No cell of lab has the solution of is_light"):
        missing.answer()


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        ({"area"}, ["from math import pi", "def area(radius):\n    return square(radius) * pi", "square = pow_of(2)"]),
        ({"pi"}, ["from math import pi"]),
        ({"radius"}, []),
    ],
)
def test_what_is_needed_is_followed_through_functions_and_no_further(names: set[str], kept: list[str]) -> None:
    cells = [
        "from math import pi\nimport os",
        "def area(radius):\n    return square(radius) * pi",
        "square = pow_of(2)",
    ]
    found: list[Any] = needed(cells, names)
    assert sorted(map(ast.unparse, found)) == sorted(kept)
