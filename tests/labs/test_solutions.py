"""What a learner gets from solution(): nothing before a pass, and afterwards ours beside theirs."""

from pathlib import Path
from typing import Any

import pytest

from streamskit.course.labs import catalogue, scores, solutions
from streamskit.course.labs.exercise import Exercise, Lab
from streamskit.course.labs.solutions import solution_of, without_stub, written
from streamskit.labs import solution
from tests.labs.lab_runner import source

WINDOWS = catalogue.lab("08-windows")
CLICKS = WINDOWS.exercises[0]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, empty_progress: Path) -> list[tuple[str, str]]:
    pages = list[tuple[str, str]]()
    monkeypatch.setattr(solutions, "_show", lambda html, text: pages.append((html, text)))
    return pages


def asked(name: str, **notebook: Any) -> None:
    exec(f"solution({name!r})", {"solution": solution} | notebook)


def test_before_a_pass_it_shows_no_solution_and_says_which_hint_comes_next(shown: list[tuple[str, str]]) -> None:
    scores.note(CLICKS, passed=False)
    asked("clicks_per_minute")
    scores.note(CLICKS, hints=1)
    asked("clicks_per_minute")
    assert ["Hint 1 of 3" in shown[0][1], "Hint 2 of 3" in shown[1][1]] == [True, True]
    assert all('hint("clicks_per_minute")' in text for _, text in shown)
    assert not any("TimeWindows" in page or CLICKS.why in page for pair in shown for page in pair)


def test_without_a_name_it_is_about_the_exercise_that_was_named_last(shown: list[tuple[str, str]]) -> None:
    asked("clicks_per_minute")
    solution()
    assert shown[0] == shown[1]
    assert "clicks_per_minute has not passed its check yet" in shown[1][1]


def test_who_has_seen_all_hints_is_sent_back_to_them(shown: list[tuple[str, str]]) -> None:
    scores.note(CLICKS, passed=False, hints=3)
    asked("clicks_per_minute")
    assert "You have seen all hints" in shown[0][1]


def test_after_a_pass_ours_stands_beside_theirs_with_the_reason(shown: list[tuple[str, str]]) -> None:
    scores.note(CLICKS, passed=True)
    mine = "def clicks_per_minute(builder):\n    pass  # <mine>"
    asked("clicks_per_minute", In=["", "import this", mine, 'solution("clicks_per_minute")'])
    html, text = shown[0]
    assert CLICKS.why in text
    assert 'counts = grouped.windowed_by(TimeWindows.of_size_with_no_grace("1 minute"))' in text
    assert mine in text
    assert "# &lt;mine&gt;" in html


def test_a_copy_of_the_course_without_solutions_says_whom_to_ask(
    shown: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solutions, "project_dir", lambda: tmp_path)
    scores.note(CLICKS, passed=True)
    asked("clicks_per_minute", clicks_per_minute=4)
    assert "comes without solutions" in shown[0][1]
    assert CLICKS.why in shown[0][1]


def test_theirs_is_the_cell_that_wrote_it_last() -> None:
    cells = ["tasks = 3", "%matplotlib inline", "def other():\n    tasks = 5", "print(tasks)"]
    assert written("tasks", {"In": cells, "tasks": 3}) == "tasks = 3"
    assert written("tasks", {"In": [*cells, "class tasks:\n    pass"], "tasks": 3}) == "class tasks:\n    pass"


def test_without_a_history_theirs_is_the_value_and_without_a_value_a_sentence() -> None:
    assert written("tasks", {"tasks": 3}) == "tasks = 3"
    assert "run the cell" in written("tasks", {})


def test_stubs_and_marks_are_left_out_of_our_solution() -> None:
    cell = 'parts = {\n    "a": ...,  # first\n}\n### BEGIN SOLUTION\nparts = {"a": 1}\n### END SOLUTION'
    assert without_stub(cell) == 'parts = {"a": 1}'


def test_no_more_than_two_empty_lines_are_left_where_a_mark_was() -> None:
    assert without_stub("### BEGIN SOLUTION\na = 1\n\n\n### END SOLUTION\n\n\nb = 2") == "a = 1\n\n\nb = 2"


@pytest.mark.parametrize("lab", catalogue.labs(), ids=lambda lab: lab.name)
def test_every_exercise_has_a_solution_to_show_and_two_sentences_why(lab: Lab) -> None:
    def sentences(exercise: Exercise) -> int:
        return exercise.why.count(". ") + exercise.why.endswith(".")

    assert {each.name: sentences(each) for each in lab.exercises if sentences(each) not in (2, 3)} == {}
    assert [each.name for each in lab.exercises if each.name not in solution_of(source(lab.name), each.name)] == []
    assert not any("SOLUTION" in solution_of(source(lab.name), each.name) for each in lab.exercises)
