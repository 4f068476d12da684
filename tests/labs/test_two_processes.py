"""Learners on one broker check the same live exercise at the same time; each gets the verdict on their own answer."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamskit.broker import shared_broker
from streamskit.common.names import PREFIX_VARIABLE
from tests.labs.lab_runner import ROOT

pytestmark = [pytest.mark.soak, pytest.mark.spark, pytest.mark.broker, pytest.mark.timeout(600)]

PROGRAM = """
import sys
from streamskit.course.labs import catalogue
from streamskit.course.labs.edits import Edit

if __name__ == "__main__":
    lab, exercise, *texts = sys.argv[1:]
    verdict = catalogue.exercise(exercise).examine_answer(Edit(lab, exercise, tuple(texts)).answer())
    print("VERDICT", verdict.misconception.name if verdict.misconception else verdict.passed)
"""


@pytest.mark.parametrize(
    ("lab", "exercise", "edit", "mistake"),
    [
        ("01-getting-started", "red_widgets_live", ("streams.start()", ""), "made and not started"),
        ("13-topology-and-tasks", "balance_of_both", ("lambda v: -v", "lambda v: v"), "returns added"),
        ("15-fault-tolerance", "through_an_outage", ("2 minutes", "1 second"), "gave up in the outage"),
    ],
)
def test_checks_at_the_same_time_do_not_disturb_each_other_with_a_prefix_and_without(
    lab: str, exercise: str, edit: tuple[str, str], mistake: str, tmp_path: Path
) -> None:
    before = set(shared_broker().topics())
    program = tmp_path / "check.py"
    program.write_text(PROGRAM)
    running = [
        subprocess.Popen(
            [sys.executable, program, lab, exercise, *texts],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT), PREFIX_VARIABLE: prefix},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for texts, prefix in (((), ""), ((), "ann"), (edit, ""))
    ]
    said = [process.communicate(timeout=500) for process in running]
    assert [out.partition("VERDICT ")[2].strip() for out, _ in said] == ["True", "True", mistake], said
    assert set(shared_broker().topics()) == before
