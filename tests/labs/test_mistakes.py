"""Every mistake that a lab knows is made by a wrong answer, which is told as that mistake and as no other.

What comes of each wrong answer is recorded. These tests compare the recordings; a few wrong answers of each lab are
examined in `make test`, and all of them in `make soak`.
"""

import ast
from pathlib import Path
from typing import Any

import pytest

from streamskit.common.errors import StreamsKitError
from streamskit.course.labs import catalogue
from streamskit.course.labs import wrong_answers as recording_of_answers
from streamskit.course.labs.edits import Edit
from streamskit.course.labs.exercise import Lab, Runs
from streamskit.course.labs.lab_files import recorded_of
from streamskit.course.labs.student import main
from streamskit.course.labs.wrong_answers import WrongAnswer, dead_signs, is_stale, told, unproven, wrong_answers

LABS = catalogue.labs()

pytestmark = pytest.mark.timeout(600)

of_each_lab = pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)


def examined(lab: Lab) -> list[Any]:
    """Return a lab's wrong answers: in `make test` those are examined for which nothing has to run, and one other."""
    known = list(wrong_answers(lab))
    slow = [wrong for wrong in known if not wrong.is_quick and isinstance(wrong.exercise.examine, Runs)]
    spread = slow[int(lab.name[:2]) % len(slow)] if slow else None  # another exercise in each lab

    def marks(wrong: WrongAnswer) -> list[Any]:
        if wrong is spread:
            return [pytest.mark.spark]
        return [] if wrong.is_quick else [pytest.mark.spark, pytest.mark.soak]

    return [pytest.param(wrong, id=wrong.name, marks=marks(wrong)) for wrong in known]


@of_each_lab
def test_every_mistake_of_a_lab_has_its_words_and_a_wrong_answer_that_makes_it(lab: Lab) -> None:
    assert unproven(lab) == []


@of_each_lab
def test_the_recorded_outcomes_are_those_of_the_lab_as_it_is(lab: Lab) -> None:
    assert not is_stale(lab), f"the lab has changed: run `python -m streamskit labs record {lab.name}`"


def test_a_lab_is_recorded_again_where_its_code_changes_and_not_where_its_words_do(tmp_path: Path) -> None:
    module = tmp_path / "sums.py"

    def statements(code: str) -> list[str]:
        module.write_text(code)
        return recording_of_answers._statements(module)

    code = '"""Sums."""\ndef judge(x):\n    """Judge."""\n    return right("Good.") if x > 1 else wrong(f"{x}.", "low")'
    known = statements(code)
    reworded = code.replace("Sums.", "Adding up.").replace("Judge.", "Look.").replace("Good.", "Well done.")
    assert statements(reworded.replace("{x}.", "{x} is too low.")) == known
    assert statements(code.replace("x > 1", "x > 2")) != known
    assert statements(code.replace("low", "below")) != known


@of_each_lab
def test_a_recorded_outcome_belongs_to_one_mistake_and_every_wrong_answer_has_one(lab: Lab) -> None:
    recorded = recorded_of(lab.name)["outcomes"]
    for exercise in lab.exercises:
        known = [wrong.mistake for wrong in wrong_answers(lab) if wrong.exercise is exercise]
        outcomes = recorded.get(exercise.name, {})
        assert {mistake: len(each) for mistake, each in outcomes.items()} == {m: known.count(m) for m in known}
        if isinstance(exercise.examine, Runs):
            owners = [
                {mistake for mistake in outcomes if each in outcomes[mistake]} for each in exercise.examine.recorded
            ]
            assert all(len(mistakes) == 1 for mistakes in owners)


@of_each_lab
def test_each_sign_of_a_lab_is_seen_in_a_wrong_answer_that_makes_its_mistake(lab: Lab) -> None:
    assert dead_signs(lab, recorded_of(lab.name)["signs"]) == []


@pytest.mark.parametrize("wrong", [param for lab in catalogue.labs() for param in examined(lab)])
def test_a_wrong_answer_is_told_as_the_mistake_that_it_makes(wrong: WrongAnswer) -> None:
    assert told(wrong) == wrong.mistake


@of_each_lab
def test_every_wrong_answer_that_is_an_edit_fits_the_solution_as_it_is(lab: Lab) -> None:
    edits = [wrong.answer for wrong in wrong_answers(lab) if isinstance(wrong.answer, Edit)]
    solutions = {edit.exercise: ast.dump(Edit(lab.name, edit.exercise).program()) for edit in edits}
    assert [edit for edit in edits if ast.dump(edit.program()) == solutions[edit.exercise]] == []


def test_record_takes_the_labs_that_are_named_or_those_that_changed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = list[str]()
    monkeypatch.setattr(recording_of_answers, "record", lambda lab: recorded.append(lab.name))
    monkeypatch.setattr(recording_of_answers, "_is_due", lambda lab: lab.name == "05-joins")
    assert main(["record"]) == 0
    assert main(["record", "windows", "12"]) == 0
    monkeypatch.setattr(recording_of_answers, "_is_due", lambda lab: False)
    assert main(["record"]) == 0
    assert recorded == ["05-joins", "08-windows", "12-error-handling"]
    assert capsys.readouterr().out.splitlines()[-1] == "No lab has changed since it was recorded."


def test_a_lab_that_cannot_be_recorded_does_not_keep_the_others_from_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = list[str]()

    def record(lab: Lab) -> None:
        if lab.name == "05-joins":
            raise StreamsKitError("A sign is never seen.")
        recorded.append(lab.name)

    monkeypatch.setattr(recording_of_answers, "record", record)
    with pytest.raises(StreamsKitError, match=r"Not recorded: 05-joins\."):
        recording_of_answers.main(["04", "joins", "07"])
    assert "A sign is never seen." in capsys.readouterr().out
    assert recorded == ["04-serialization", "07-stateful-operations"]
