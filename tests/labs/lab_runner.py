"""Runs the cells of a lab in this process, on the Spark session of all labs, and notes what its checks found."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import pytest

from streamskit.course.labs import checking, trying_out
from streamskit.course.labs.checking import CheckFailed
from streamskit.course.labs.exercise import Exercise, Verdict
from streamskit.course.labs.trial import Trial

ROOT = Path(__file__).parents[2]
SOURCES, STUDENTS = ROOT / "labs" / "source", ROOT / "labs"


def source(name: str) -> Path:
    """Return the lab as its author wrote it."""
    return SOURCES / name / f"{name}.ipynb"


def student(name: str) -> Path:
    """Return the lab as a learner gets it."""
    return STUDENTS / f"{name}.ipynb"


@dataclass
class LabRun:
    """What happened in a lab: the verdict of each check, and the errors of the other cells."""

    verdicts: dict[str, Verdict] = field(default_factory=dict)
    errors: dict[str, Exception] = field(default_factory=dict)


def run_lab(path: Path, monkeypatch: pytest.MonkeyPatch, tries_out: bool = False) -> LabRun:
    """Run all cells of a lab, whatever fails; return what its checks found.

    What `try_out` shows a learner is half of what a lab costs, and nothing that is examined: unless the lab
    `tries_out`, its topologies are built there, and not run.
    """
    run = LabRun()
    examine = Exercise.examine_answer

    def noted(exercise: Exercise, answer: Any) -> Verdict:
        run.verdicts[exercise.name] = examine(exercise, answer)
        return run.verdicts[exercise.name]

    monkeypatch.setattr(Exercise, "examine_answer", noted)
    monkeypatch.setattr(checking, "_show", lambda html, text, found: None)
    if not tries_out:
        monkeypatch.setattr(trying_out, "records_of", lambda topology, steps: Trial(topology))
    names: dict[str, Any] = {"__name__": path.stem}
    for number, cell in cells(path):
        try:
            exec(compile(cell, f"{path.stem}, cell {number}", "exec"), names)
        except CheckFailed as failure:
            run.verdicts.setdefault(failure.name, failure.verdict)
        except Exception as error:
            run.errors[f"cell {number}: {cell}"] = error
    return run


def cells(path: Path) -> Iterator[tuple[int, str]]:
    """Return the code cells of a notebook with their numbers."""
    for number, cell in enumerate(nbformat.read(path, as_version=4).cells, 1):
        if cell.cell_type == "code":
            yield number, cell.source
