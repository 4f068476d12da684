"""An instructor hands a lab out, collects it and grades it, with nbgrader's own commands."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook
from traitlets.config import Config

from streamskit.course.labs import catalogue, checking, missions
from streamskit.course.labs.time_limit import AGAIN_SECONDS

ROOT = Path(__file__).parents[2]
LAB = "08-windows"
PROGRAMS = Path(sys.executable).parent
"""Where the programs are that nbgrader calls by name, as in an activated environment."""

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A copy of the labs to grade in."""
    folder = tmp_path / "labs"
    shutil.copytree(ROOT / "labs" / "source" / LAB, folder / "source" / LAB)
    shutil.copy(ROOT / "labs" / "nbgrader_config.py", folder)
    (tmp_path / "pyproject.toml").touch()
    return folder


def test_a_check_or_a_live_mission_says_that_an_answer_hangs_before_nbgrader_gives_the_cell_up() -> None:
    said = Config()
    exec((ROOT / "labs" / "nbgrader_config.py").read_text(), {"get_config": lambda: said})
    assert said.ExecutePreprocessor.timeout > max(checking.LONGEST, missions.LONGEST) + AGAIN_SECONDS


@pytest.mark.soak
def test_a_lab_is_released_as_it_is_committed_and_graded_by_its_checks(course: Path) -> None:
    nbgrader(course, "generate_assignment", LAB, "--create")
    released = nbformat.read(course / "release" / LAB / f"{LAB}.ipynb", as_version=4)
    committed = nbformat.read(ROOT / "labs" / f"{LAB}.ipynb", as_version=4)
    assert [cell.source for cell in released.cells] == [cell.source for cell in committed.cells]
    assert [cell.metadata for cell in released.cells] == [cell.metadata for cell in committed.cells]

    submitted = course / "submitted" / "ann" / LAB
    submitted.mkdir(parents=True)
    nbformat.write(with_solution_of("clicks_per_minute", released), submitted / f"{LAB}.ipynb")
    nbgrader(course, "autograde", LAB, "--create")
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
        grades = {grade.name: grade.score for grade in book.find_submission_notebook(LAB, LAB, "ann").grades}
    assert grades.pop("check-clicks_per_minute") == 1
    assert set(grades.values()) == {0}
    assert len(grades) == len(catalogue.lab(LAB).exercises) - 1  # the one that passed was taken out


def with_solution_of(exercise: str, released: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Put the solution of one exercise into a released lab, as a student does."""
    solved = nbformat.read(ROOT / "labs" / "source" / LAB / f"{LAB}.ipynb", as_version=4)
    for mine, theirs in zip(released.cells, solved.cells, strict=True):
        if theirs.metadata.get("nbgrader", {}).get("grade_id") == exercise:
            mine.source = theirs.source
    return released


def nbgrader(course: Path, *arguments: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments],
        cwd=course,
        env=os.environ
        | {"STREAMSKIT_PROJECT": str(course.parent), "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
