"""What a learner gets from check(), hint(), try_out(), progress() and reset()."""

import json
import re
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pandas as pd
import psutil
import pytest
from pyspark.sql import functions as F

from streamskit import StreamsBuilder, TimeWindows
from streamskit.common.errors import StreamsKitError
from streamskit.course.labs import catalogue, checking, scores
from streamskit.course.labs.exercise import Exercise, Judges, Lab, Runs, Says, Verdict, is_answer, right
from streamskit.course.labs.missions import Lives, Site
from streamskit.course.labs.parts import SaysEach
from streamskit.course.labs.recording import OutcomeRow, Piped, Recording
from streamskit.course.labs.student import student_version
from streamskit.course.labs.time_limit import TookTooLong, finished_first, time_limit
from streamskit.labs import CheckFailed, check, hint, progress, reset, solution, try_out
from tests.labs.lab_runner import source

pytestmark = pytest.mark.usefixtures("empty_progress")

Shown = list[tuple[str, str, Any]]


def upper_cased() -> Recording:
    return Recording(
        steps=(Piped("words", "k", "one", 0), Piped("words", "k", "two", 1)),
        outputs={"loud": (OutcomeRow(0, "k", "ONE", 0), OutcomeRow(1, "k", "TWO", 1))},
    )


TASKS = Exercise(
    "tasks",
    "Say how many.",
    Says(4, "Four it is.", wrong={"counted topics": 2}),
    ("a", "b", "c"),
    {"counted topics": "Count partitions."},
)
LOUD = Exercise("loud", "Shout.", Runs(upper_cased), ("Louder.", "Upper case.", "F.upper"))
LAB = Lab("99-tests", "Tests", (TASKS, LOUD))


@pytest.fixture(autouse=True)
def only_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "labs", lambda: (LAB,))
    monkeypatch.setattr("streamskit.course.labs.scores.labs", lambda: (LAB,))
    monkeypatch.setattr(checking._Latest, "exercise", None)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    pages: Shown = []
    monkeypatch.setattr(checking, "_show", lambda html, text, found: pages.append((html, text, found)))
    return pages


def failure(name: str, answer: Any) -> Verdict:
    with pytest.raises(CheckFailed) as raised:
        check(name, answer)
    return raised.value.verdict


def test_a_right_answer_passes_and_says_what_was_tested(shown: Shown) -> None:
    check("tasks", 4)
    assert "Four it is." in shown[0][1]
    assert shown[0][2] == {"exercise": "tasks", "passed": True}


def test_a_typical_wrong_answer_is_told_its_misconception(shown: Shown) -> None:
    failure("tasks", 2)
    assert "counted topics: Count partitions." in shown[0][1]


def test_an_answer_that_is_not_there_is_not_a_wrong_one(shown: Shown, empty_progress: Path) -> None:
    with pytest.raises(CheckFailed) as raised:
        check("tasks")
    assert not raised.value.verdict.written
    assert "has no tasks yet" in shown[0][1]
    assert not empty_progress.exists()


def test_the_answer_is_what_has_that_name_where_check_is_called(shown: Shown) -> None:
    names = {"check": check, "tasks": 4}
    exec('check("tasks")', names)
    assert shown[0][2] == {"exercise": "tasks", "passed": True}


def test_an_exercise_of_another_name_is_refused_with_the_nearest_ones() -> None:
    with pytest.raises(StreamsKitError, match=r"There is no exercise 'task'\. Did you mean tasks"):
        check("task")


def test_a_failed_check_is_one_line_in_a_notebook_below_its_page(shown: Shown) -> None:
    with pytest.raises(CheckFailed) as raised:
        check("tasks", 3)
    assert raised.value._render_traceback_() == ["CheckFailed: tasks is not right yet; see above."]


def test_hints_come_one_by_one_and_stay(shown: Shown) -> None:
    failure("tasks", 3)
    for _ in range(4):
        hint()
    assert [text for _, text, _ in shown[1:]] == ["a", "a\nb", "a\nb\nc", "a\nb\nc"]


@pytest.mark.parametrize("shows", [hint, solution])
def test_a_hint_or_solution_of_nothing_asks_for_a_name(shows: Callable[[], None]) -> None:
    with pytest.raises(StreamsKitError, match=f"Run a check first, or name the exercise: {shows.__name__}"):
        shows()


def test_a_mission_that_is_no_function_is_told_so_before_its_scene_is_set() -> None:
    def scene(site: Site) -> None:
        raise AssertionError

    assert "It has to be a function, but is 5." in Lives("nowhere", scene, lambda *_: right("yes"))(5).says


def test_progress_counts_what_passed_and_a_later_failure_takes_nothing_back(shown: Shown) -> None:
    check("tasks", 4)
    failure("tasks", 3)
    table = progress().to_pandas()  # type: ignore[operator]
    assert table["passed"].tolist() == [True, False]
    assert table["checks"].tolist() == [2, 0]
    assert repr(progress()) == "1 of 2 exercises done"
    assert "✓ tasks" in progress()._repr_html_()  # type: ignore[operator]


def test_progress_that_was_cut_off_begins_anew_and_keeps_the_damaged_file(empty_progress: Path) -> None:
    empty_progress.write_text('{"tasks": ')
    assert repr(progress()) == "0 of 2 exercises done"
    assert empty_progress.with_suffix(".damaged").exists()


def test_a_class_is_seen_from_a_folder_of_collected_notebooks(tmp_path: Path) -> None:
    for student, passed in (("ann", True), ("bob", False)):
        found = {"exercise": "tasks", "passed": passed}
        output = nbformat.v4.new_output("display_data", {"application/vnd.streamskit.check+json": found})
        cell = nbformat.v4.new_code_cell('check("tasks")', outputs=[output])
        folder = tmp_path / student / "99-tests"
        folder.mkdir(parents=True)
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), folder / "99-tests.ipynb")
    table = progress(tmp_path)
    assert table["99-tests"].to_dict() == {"ann": 1, "bob": 0}  # type: ignore[index]


def test_reset_brings_a_lab_back_and_keeps_the_other_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: Shown
) -> None:
    windows = Lab("08-windows", "Windows", (TASKS,))
    monkeypatch.setattr(catalogue, "labs", lambda: (windows, Lab("99-tests", "Tests", (LOUD,))))
    monkeypatch.setenv("STREAMSKIT_PROJECT", str(tmp_path))
    copied = tmp_path / "labs" / "source" / "08-windows" / "08-windows.ipynb"
    copied.parent.mkdir(parents=True)
    copied.write_bytes(source("08-windows").read_bytes())
    lab = tmp_path / "labs" / "08-windows.ipynb"
    lab.write_text("my own work")
    scores.note(TASKS, True)
    scores.note(LOUD, True)
    reset("08-windows")
    assert nbformat.read(lab, as_version=4) == student_version(copied)
    assert (tmp_path / "labs" / "08-windows.ipynb.before-reset").read_text() == "my own work"
    assert list(scores.known()) == ["loud"]


@pytest.mark.parametrize("text", ["null", "[1]", "3"])
def test_progress_that_is_no_progress_begins_anew(empty_progress: Path, text: str) -> None:
    empty_progress.write_text(text)
    assert repr(progress()) == "0 of 2 exercises done"
    assert empty_progress.with_suffix(".damaged").read_text() == text


@pytest.mark.parametrize("entry", ["null", "{}", '{"checks": null, "hints": "1", "passed": 0}'])
def test_an_entry_of_progress_without_its_parts_counts_as_not_begun(
    empty_progress: Path, shown: Shown, entry: str
) -> None:
    empty_progress.write_text(f'{{"tasks": {entry}, "loud": {{"passed": true}}}}')
    assert repr(progress()) == "1 of 2 exercises done"
    hint("tasks")
    check("tasks", 4)
    assert scores.known()["tasks"] == {"passed": True, "checks": 1, "hints": 1}


def test_a_damaged_notebook_of_a_class_is_named_and_hides_nobody(tmp_path: Path) -> None:
    found = {"exercise": "tasks", "passed": True}
    output = nbformat.v4.new_output("display_data", {"application/vnd.streamskit.check+json": found})
    nbformat.write(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x", outputs=[output])]), tmp_path / "ann.ipynb"
    )
    (tmp_path / "bob.ipynb").write_text('{"cells": [')
    (tmp_path / "cy.ipynb").write_text("[]")
    with pytest.warns(UserWarning, match=r"(bob|cy)\.ipynb cannot be read as a notebook") as warned:
        table = progress(tmp_path)
    assert len(warned) == 2
    assert table["99-tests"].to_dict() == {"ann": 1, "bob": 0, "cy": 0}  # type: ignore[index]


def test_a_folder_without_notebooks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StreamsKitError, match="has no notebooks in it: give the folder"):
        progress(tmp_path)
    with pytest.raises(StreamsKitError, match="submited is no folder: give the folder"):
        progress(tmp_path / "submited")


@pytest.mark.parametrize("name", [3, check, ["tasks"]])
def test_a_name_that_is_no_text_is_refused(name: Any) -> None:
    for called, kind in ((check, "exercise"), (hint, "exercise"), (reset, "lab")):
        with pytest.raises(StreamsKitError, match=rf'Give the name of the {kind} in quotes, such as ".+", and not '):
            called(name)


def test_a_function_in_place_of_its_name_is_told_how_to_name_it() -> None:
    def loud(builder: StreamsBuilder) -> None: ...

    with pytest.raises(StreamsKitError, match=r'in quotes, such as "loud", and not <function'):
        check(loud)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["99-tests", "tests", "99"])
def test_the_name_of_a_lab_in_place_of_an_exercise_is_told_its_exercises(name: str) -> None:
    for called in (check, hint):
        with pytest.raises(StreamsKitError, match=r"Those of the lab 99-tests are: tasks, loud\."):
            called(name)


def test_the_name_of_an_exercise_in_place_of_a_lab_is_told_its_lab() -> None:
    with pytest.raises(StreamsKitError, match=r"There is no lab 'loud'\. That is an exercise of the lab 99-tests\."):
        reset("loud")


def test_a_lab_is_found_by_its_number_with_or_without_a_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    windows = Lab("08-windows", "Windows", (TASKS,))
    monkeypatch.setattr(catalogue, "labs", lambda: (windows, LAB))
    assert [catalogue.lab(name).name for name in ("8", "08", "windows", "08-windows")] == ["08-windows"] * 4


@pytest.mark.parametrize("folder", [3, check, [], b"submitted"])
def test_what_is_no_folder_of_a_class_is_refused_with_an_example(folder: Any) -> None:
    with pytest.raises(StreamsKitError, match="Give the folder of a class in quotes, such as 'submitted', and not "):
        progress(folder)


@pytest.mark.parametrize("name", [0, [], pd.DataFrame({"a": [1]})])
def test_a_hint_for_what_is_no_name_is_refused(name: Any) -> None:
    with pytest.raises(StreamsKitError, match="Give the name of the exercise in quotes"):
        hint(name)


def test_a_second_reset_overwrites_no_work_that_was_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "labs", lambda: (Lab("08-windows", "Windows", (TASKS,)),))
    monkeypatch.setenv("STREAMSKIT_PROJECT", str(tmp_path))
    copied = tmp_path / "labs" / "source" / "08-windows" / "08-windows.ipynb"
    copied.parent.mkdir(parents=True)
    copied.write_bytes(source("08-windows").read_bytes())
    lab = tmp_path / "labs" / "08-windows.ipynb"
    for work in ("my work", "more work"):
        lab.write_text(work)
        reset("08-windows")
        reset("08-windows")
    kept = {path.suffix: path.read_text() for path in lab.parent.glob("*.before-reset*")}
    assert kept == {".before-reset": "my work", ".before-reset-2": "more work"}


def test_an_error_that_nobody_expected_is_a_wrong_answer_with_its_line_and_its_traceback(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    def doubled(number: int) -> int:
        return number.doubled  # type: ignore[attr-defined]

    judged = Exercise("tasks", "Double.", Judges(lambda answer: right(str(answer(4)))), ("a", "b", "c"))
    monkeypatch.setattr(catalogue, "labs", lambda: (Lab("99-tests", "Tests", (judged,)),))
    verdict = failure("tasks", doubled)
    assert verdict.says.startswith("It ended with an error, at test_checking.py line ")
    assert verdict.says.endswith("`return number.doubled  # type: ignore[attr-defined]`: AttributeError: "
                                 "'int' object has no attribute 'doubled'")  # fmt: skip
    html, _, found = shown[0]
    folded = html.partition("<details>")[2]
    assert "The whole error" in folded
    assert "in doubled\n" in folded
    assert "examine_answer" not in folded
    assert found == {"exercise": "tasks", "passed": False}
    assert scores.known()["tasks"]["checks"] == 1
    assert failure("tasks", None).says == "It has to be a function, but is None."
    assert "takes 0 positional arguments but 1 was given" in failure("tasks", lambda: 4).says
    assert "RecursionError" in failure("tasks", endless).says


def endless(number: int) -> int:
    return endless(number)


def test_an_interrupt_ends_a_check_and_is_no_answer(monkeypatch: pytest.MonkeyPatch, empty_progress: Path) -> None:
    def interrupted(answer: Any) -> Verdict:
        raise KeyboardInterrupt

    judged = Exercise("tasks", "Wait.", Judges(interrupted), ("a", "b", "c"))
    monkeypatch.setattr(catalogue, "labs", lambda: (Lab("99-tests", "Tests", (judged,)),))
    with pytest.raises(KeyboardInterrupt):
        check("tasks", 4)
    assert not empty_progress.exists()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (np.array([1, 2]), [1, 2]),
        (pd.Series([1, 2]), [1, 2]),
        (np.bool_(False), False),
        (np.int64(4), 4),
        ({"a": np.array([1, 2])}, {"a": (1, 2)}),
    ],
)
def test_numbers_and_arrays_of_numpy_and_pandas_are_answers(answer: Any, expected: Any) -> None:
    assert is_answer(answer, expected)


@pytest.mark.parametrize("answer", [np.array([1, 2]), pd.Series([1, 2]), pd.DataFrame({"a": [1]})])
def test_a_wrong_array_or_table_is_told_to_be_wrong(answer: Any) -> None:
    assert not Says([1, 2, 3], "Three.")(answer).passed
    assert not Says(4, "Four.")(answer).passed
    parts = SaysEach(lambda: {"a": 4}, "Four.", {"five": {"a": 5}})
    assert parts({"a": answer}).says == "a: wrong."


@pytest.mark.spark
class TestOfATopology:
    """Checks that run what the learner wrote."""

    @staticmethod
    def shouts(function: Callable[[Any], Any], topic: str = "loud") -> Callable[[StreamsBuilder], None]:
        def loud(builder: StreamsBuilder) -> None:
            builder.stream("words").map_values(function).to(topic)

        return loud

    def test_the_right_one_passes_with_what_went_in(self, shown: Shown) -> None:
        check("loud", self.shouts(F.upper))
        assert "2 records went in; all 2 results are those of Kafka Streams 4.1" in shown[0][1]

    def test_a_wrong_one_shows_what_was_expected_and_what_came(self, shown: Shown) -> None:
        failure("loud", self.shouts(F.lower))
        html, text, _ = shown[0]
        assert "− k = ONE" in text
        assert "+ k = one" in text
        assert "2 of 2 steps" in text
        assert "data:image/svg+xml" in html

    def test_another_topic_is_named_as_such(self, shown: Shown) -> None:
        verdict = failure("loud", self.shouts(F.upper, "quiet"))
        assert verdict.misconception
        assert verdict.misconception.name == "another topic"

    def test_a_function_that_makes_no_topology_is_told_so(self, shown: Shown) -> None:
        verdict = failure("loud", lambda builder: None)
        assert "does not make a topology" in verdict.says or "not read" in verdict.says

    def test_another_source_is_named_with_those_that_are_read(self, shown: Shown) -> None:
        def loud(builder: StreamsBuilder) -> None:
            builder.stream("sentences").to("loud")

        assert "topic 'words' is not read. The topology reads: sentences." in failure("loud", loud).says

    def test_a_topic_that_is_read_by_a_pattern_is_read(self, shown: Shown) -> None:
        def loud(builder: StreamsBuilder) -> None:
            builder.stream(re.compile("w.rds")).map_values(F.upper).to("loud")

        check("loud", loud)

    @pytest.mark.parametrize("answer", [None, 5, StreamsBuilder()])
    def test_what_is_no_function_is_told_to_be_one(self, shown: Shown, answer: Any) -> None:
        assert "it has to be a function that takes a StreamsBuilder, but is " in failure("loud", answer).says

    def test_try_out_shows_what_comes_out_after_which_record(self) -> None:
        def counted(builder: StreamsBuilder) -> None:
            windows = TimeWindows.of_size_with_no_grace("1 minute")
            builder.stream("words").group_by_key().windowed_by(windows).count().to_stream().to("counted")

        table = try_out(counted, [("words", "k", "one", 0), ("words", "k", "two", 1)])
        assert table["after"].tolist() == ["1. k = one", "2. k = two"]
        assert table["value"].tolist() == [1, 2]


ONE = ("words", "k", "one", 0)


@pytest.mark.parametrize("records", [None, 3, "words", [ONE[:3]], ONE, [*ONE], {"words": [ONE]}, [{"topic": "words"}]])
def test_what_is_no_list_of_records_is_refused_with_an_example(records: Any) -> None:
    with pytest.raises(StreamsKitError, match=r'such as \[\("clicks", "ann", "home", 0\)\], and not '):
        try_out(shouted, records)


def test_one_record_without_its_list_is_not_taken_for_durations() -> None:
    records: Any = ONE
    with pytest.raises(StreamsKitError, match=r"and not one record by itself: \('words', 'k', 'one', 0\)"):
        try_out(shouted, records)


def test_what_is_neither_a_record_nor_a_duration_is_told_what_moves_the_wall_clock() -> None:
    with pytest.raises(StreamsKitError, match=r"and not 'noon'.* moves the wall clock forward"):
        try_out(shouted, [ONE, "noon"])


@pytest.mark.parametrize("answer", ["shouted", None])
def test_try_out_of_a_name_or_of_what_a_call_returned_asks_for_the_function_itself(answer: Any) -> None:
    with pytest.raises(StreamsKitError, match="try_out takes your function itself, neither in quotes nor called"):
        try_out(answer, [ONE])


def test_a_function_of_several_arguments_is_told_that_the_builder_is_the_only_one(shown: Shown) -> None:
    def loud(builder: StreamsBuilder, topic: str) -> None: ...

    assert (
        "it has to take one argument, the StreamsBuilder, and not several: loud(builder" in failure("loud", loud).says
    )


def test_what_a_check_found_is_in_the_notebooks_output_for_who_collects_it(monkeypatch: pytest.MonkeyPatch) -> None:
    bundles: list[dict[str, Any]] = []
    monkeypatch.setattr(checking, "display", lambda bundle, raw: bundles.append(bundle))
    check("tasks", 4)
    assert json.dumps(bundles[0]["application/vnd.streamskit.check+json"]) == '{"exercise": "tasks", "passed": true}'


# Answers that never come to an end.


def never_ends(builder: StreamsBuilder) -> None:
    for _ in count():
        with suppress(Exception):
            builder.build()


def never_ends_in_spark(builder: StreamsBuilder) -> None:
    def forever(kept: str, new: str) -> str:
        for _ in count():
            pass
        return new

    builder.stream("words").group_by_key().reduce(forever).to_stream().to("loud")


def shouted(builder: StreamsBuilder) -> None:
    builder.stream("words").map_values(F.upper).to("loud")


@pytest.mark.usefixtures("python_s_own_interrupt")
def test_an_answer_that_never_ends_is_stopped_and_its_line_named(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "LONGEST", 0.5)
    says = failure("loud", never_ends).says
    assert says.startswith("It did not come to an end within 500 ms, and was stopped at test_checking.py line ")
    assert says.endswith(". Does a loop ever end there, and in what it calls?")
    monkeypatch.setattr(checking, "LONGEST", 300.0)
    check("loud", shouted)


def busy_pythons() -> list[psutil.Process]:
    """The Python processes below this one that compute all the time."""
    busy = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # Spark ends idle workers at any moment
            if "python" in process.name() and process.cpu_percent(0.2) > 50:
                busy.append(process)
    return busy


@pytest.mark.spark
@pytest.mark.usefixtures("python_s_own_interrupt")
def test_a_function_that_never_ends_in_spark_is_stopped_and_the_next_check_works(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    check("loud", shouted)  # Spark runs from here on
    monkeypatch.setattr(checking, "LONGEST", 5.0)
    assert "look at the functions that Spark calls for each record" in failure("loud", never_ends_in_spark).says
    monkeypatch.setattr(checking, "LONGEST", 300.0)
    check("loud", shouted)
    assert busy_pythons() == []


@pytest.mark.usefixtures("python_s_own_interrupt")
def test_who_interrupts_a_check_gets_the_interruption_and_no_verdict(shown: Shown) -> None:
    with pytest.raises(KeyboardInterrupt) as raised:
        check("loud", lambda builder: signal.raise_signal(signal.SIGINT))
    assert raised.type is KeyboardInterrupt
    assert not shown


def test_a_live_mission_takes_as_long_as_it_takes(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "LONGEST", 0.01)

    def look(site: Any, returned: Any) -> Verdict:
        return right("It took its time.")

    mission = Lives("mission", lambda site: None, look)
    assert Exercise("mission", "", mission, ("", "", "")).is_live

    def examine(answer: Any) -> Verdict:
        time.sleep(0.2)
        return right("It took its time.")

    examine.is_live = True  # type: ignore[attr-defined]
    slow = replace(TASKS, examine=examine)
    monkeypatch.setattr(catalogue, "labs", lambda: (Lab("99-tests", "Tests", (slow,)),))
    check("tasks", 4)
    assert "It took its time." in shown[0][1]


@pytest.mark.usefixtures("python_s_own_interrupt")
@pytest.mark.parametrize(("times", "ended"), [(1, [1, 2]), (2, [1])])
def test_what_takes_things_down_is_interrupted_only_when_it_is_done_or_by_who_asks_twice(
    times: int, ended: list[int]
) -> None:
    before, done = signal.getsignal(signal.SIGINT), list[int]()

    @finished_first()
    def take_down() -> None:
        done.append(1)
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        done.append(2)

    with pytest.raises(KeyboardInterrupt):
        take_down()
    assert done == ended
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.usefixtures("python_s_own_interrupt")
def test_a_time_limit_leaves_no_trace() -> None:
    before = signal.getsignal(signal.SIGINT)
    with time_limit(60):
        assert signal.getsignal(signal.SIGINT) is not before
    with pytest.raises(TookTooLong), time_limit(0.05):
        time.sleep(30)
    assert signal.getsignal(signal.SIGINT) is before
    assert not [each for each in threading.enumerate() if each.name == "streamskit: time limit"]


def test_a_thread_that_python_cannot_interrupt_has_no_limit() -> None:
    ended: list[bool] = []

    def wait() -> None:
        with time_limit(0.01):
            time.sleep(0.2)
        ended.append(True)

    waiting = threading.Thread(target=wait)
    waiting.start()
    waiting.join(20)
    assert ended == [True]
