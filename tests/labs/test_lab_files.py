"""A lab's words come from a file that a teacher edits; what does not fit is told with the file and the place."""

import json
from pathlib import Path

import pytest

from streamskit.common.errors import StreamsKitError
from streamskit.course.labs import lab_files
from streamskit.course.labs.difference import digest
from streamskit.course.labs.exercise import Exercise, Judges, Lab, Runs, Says, mistaken
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.recording import Recording
from streamskit.course.labs.wrong_answers import unproven, wrong_answers

WORDS = """
title = "Sums"

[mistakes]
"counted topics" = '''
Count
partitions.'''

[total]
task = "Add up."
hints = ["a", "b", "c"]
why = "Because. It adds up."
[total.mistakes]
"off by one" = "{given} is one too many."
[total.mistakes."wrong side"]
left = "Not the left one."
right = "Not the right one."
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(lab_files, "EXERCISES", tmp_path)
    (tmp_path / "sums.toml").write_text(WORDS)
    return tmp_path


def only(made: Lab) -> Exercise:
    return made.exercises[0]


def test_lines_of_a_paragraph_may_break_anywhere(files: Path) -> None:
    exercise = only(lab("99-sums", total=Says(4, "Four.", wrong={"counted topics": 2})))
    assert (exercise.task, exercise.hints) == ("Add up.", ("a", "b", "c"))
    verdict = exercise.examine_answer(2)
    assert verdict.misconception is not None
    assert verdict.says == verdict.misconception.says == "Count partitions."


def test_words_are_filled_in_and_chosen_by_the_case(files: Path) -> None:
    exercise = only(lab("99-sums", total=Judges(lambda answer: mistaken("off by one", given=answer))))
    assert exercise.examine_answer(5).says == "5 is one too many."
    exercise = only(lab("99-sums", total=Judges(lambda answer: mistaken("wrong side", case=answer))))
    assert exercise.examine_answer("right").says == "Not the right one."


def test_recorded_outcomes_are_given_to_the_exercise(files: Path) -> None:
    outcomes = {"total": {"counted topics": ["abc", ""]}}
    (files / "sums.json").write_text(json.dumps({"made_of": "", "outcomes": outcomes}))
    examine = only(lab("99-sums", total=Runs(lambda: Recording((), {})))).examine
    assert isinstance(examine, Runs)
    assert examine.recorded == {"abc": "counted topics"}


def test_a_file_that_is_no_toml_is_told_with_its_line(files: Path) -> None:
    (files / "sums.toml").write_text('title = "Sums\n')
    with pytest.raises(StreamsKitError, match=r"sums\.toml is not written as TOML: .*line 1.*Fix that line"):
        lab("99-sums")


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ('title = "Sums"', "", "has to begin with the lab's title"),
        ("[total", "[totals", "only one of them knows total, totals"),
        ('["a", "b", "c"]', '["a"]', r"\[total\] in sums.toml needs a task, three hints, and why"),
        ('why = "Because. It adds up."', "", "needs a task, three hints, and why the solution is written as it is"),
        ('task = "Add up."', 'task = "Add up."\nhint = "a"', r"\[total\] in sums.toml has 'hint'; an exercise has"),
    ],
)
def test_words_that_do_not_fit_are_told_with_their_place(files: Path, before: str, after: str, says: str) -> None:
    (files / "sums.toml").write_text(WORDS.replace(before, after))
    with pytest.raises(StreamsKitError, match=says):
        lab("99-sums", total=Says(4, "Four."))


def test_a_mistake_without_a_wrong_answer_and_one_without_words_are_gaps(files: Path) -> None:
    made = lab("99-sums", total=Says(4, "Four.", wrong={"counted topics": 2, "guessed": 9, "off by one": [5]}))
    assert unproven(made) == [
        "total: there are no words for 'guessed'",
        "no exercise knows a mistake 'wrong side'",
    ]


def test_a_list_holds_several_wrong_answers_of_one_mistake(files: Path) -> None:
    made = lab("99-sums", total=Says(4, "Four.", wrong={"counted topics": [2, 3]}))
    assert [(wrong.name, wrong.given) for wrong in wrong_answers(made)] == [
        ("total-counted topics-1", 2),
        ("total-counted topics-2", 3),
    ]


def test_a_digest_tells_parts_apart_but_not_the_last_digits_of_a_fraction_nor_the_order_of_a_dict() -> None:
    assert digest("a", 1.0) == digest("a", 1.0 + 1e-12)
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert len({digest(1), digest(1.0), digest("1"), digest(b"1"), digest([1]), digest(None), digest(1.001)}) == 7
