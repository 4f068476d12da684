"""Every lab: its solutions pass, its stubs are told from wrong answers, and the student's version is in step."""

import ast
from pathlib import Path

import nbformat
import pytest

from streamskit.common.errors import BrokerError
from streamskit.course.labs import catalogue
from streamskit.course.labs.instructors_sheet import questions_of, sheet
from streamskit.course.labs.lab_files import recorded_of
from streamskit.course.labs.rehearsal import cells, rehearse
from streamskit.course.labs.student import student_version
from streamskit.course.labs.wrong_answers import solved
from tests.labs.lab_runner import SOURCES, STUDENTS, source, student

SPREAD = catalogue.NAMES[1::4]
"""The labs whose notebooks run in `make test`; all of them run in `make soak`, and when a lab is recorded."""

LABS = [
    pytest.param(name, marks=[pytest.mark.spark] if name in SPREAD else [pytest.mark.spark, pytest.mark.soak])
    for name in catalogue.NAMES
]

pytestmark = pytest.mark.timeout(600)


@pytest.mark.soak
@pytest.mark.parametrize("name", LABS)
def test_every_cell_of_every_lab_runs(name: str) -> None:
    assert not rehearse(source(name), tries_out=True).errors


@pytest.mark.parametrize("name", LABS)
def test_every_solution_passes_its_check(name: str) -> None:
    found = rehearse(source(name))
    assert not found.errors
    assert {exercise: verdict.says for exercise, verdict in found.verdicts.items() if not verdict.passed} == {}
    assert list(found.verdicts) == [exercise.name for exercise in catalogue.lab(name).exercises]


@pytest.mark.parametrize("name", LABS)
def test_every_stub_is_told_that_it_is_not_written_yet(name: str) -> None:
    found = rehearse(student(name))
    assert list(found.verdicts) == [exercise.name for exercise in catalogue.lab(name).exercises]
    assert {exercise: verdict.says for exercise, verdict in found.verdicts.items() if verdict.written} == {}
    assert {
        cell
        for cell, error in found.errors.items()
        if not isinstance(error, NotImplementedError | NameError | BrokerError)
    } == set()


@pytest.mark.parametrize("name", catalogue.NAMES)
def test_the_solutions_were_tried_as_they_are(name: str) -> None:
    lab = catalogue.lab(name)
    assert recorded_of(name)["solved"] == solved(lab), f"it has changed: run `python -m streamskit labs record {name}`"


@pytest.mark.parametrize("name", catalogue.NAMES)
def test_the_students_version_is_in_step_with_its_source(name: str) -> None:
    assert nbformat.read(student(name), as_version=4) == student_version(source(name))


def test_the_instructors_sheet_is_in_step_with_the_labs() -> None:
    assert (STUDENTS / "instructors.md").read_text() == sheet(STUDENTS.parent), "run `python -m streamskit labs`"


@pytest.mark.parametrize("name", catalogue.NAMES)
def test_every_question_to_think_about_has_an_answer_which_is_folded(name: str) -> None:
    texts = [cell.source for cell in nbformat.read(student(name), as_version=4).cells if cell.cell_type == "markdown"]
    questions = questions_of(source(name))
    assert 3 <= len(questions) <= 4
    assert all(len(answer) > 40 for _, answer in questions)
    assert texts[-1].startswith("## Done?")
    assert not [line for line in texts[-1].splitlines() if line.startswith("- ")]


@pytest.mark.parametrize("name", catalogue.NAMES)
def test_a_lab_has_four_to_seven_exercises_each_with_a_solution_to_cut_out_and_three_hints(name: str) -> None:
    exercises = catalogue.lab(name).exercises
    assert 4 <= len(exercises) <= 7
    assert all(len(exercise.hints) == 3 and all(exercise.hints) for exercise in exercises)
    graded = [
        cell.metadata["nbgrader"]
        for cell in nbformat.read(source(name), as_version=4).cells
        if "nbgrader" in cell.metadata
    ]
    assert [meta["grade_id"] for meta in graded if meta["grade"]] == [f"check-{each.name}" for each in exercises]
    assert "### BEGIN SOLUTION" not in student(name).read_text()


def test_no_exercise_has_the_name_of_another_one() -> None:
    names = [exercise.name for lab in catalogue.labs() for exercise in lab.exercises]
    assert len(names) == len(set(names))


def test_every_lab_notebook_is_in_the_catalogue() -> None:
    assert sorted(path.name for path in SOURCES.iterdir()) == sorted(catalogue.NAMES)
    assert sorted(path.stem for path in STUDENTS.glob("*.ipynb")) == sorted(catalogue.NAMES)


def test_the_recordings_of_the_labs_are_those_of_the_conformance_tests(request: pytest.FixtureRequest) -> None:
    recorded = Path(request.config.rootpath) / "streamskit" / "course" / "labs" / "recorded"
    vectors = Path(request.config.rootpath) / "tests" / "conformance" / "vectors"
    copies = {path.name: path.read_bytes() for path in recorded.glob("*.json")}
    assert copies == {name: (vectors / name).read_bytes() for name in copies}
    assert copies


@pytest.mark.parametrize("name", catalogue.NAMES)
def test_a_lab_imports_what_it_uses_in_plain_python(name: str) -> None:
    for _, cell in cells(student(name)):
        ast.parse(cell)
