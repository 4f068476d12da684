"""Runs every cell of a lab's notebook as a learner would, and notes what its checks find."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from streamskit.course.labs import checking, scores, trying_out
from streamskit.course.labs.checking import CheckFailed
from streamskit.course.labs.exercise import Exercise, Verdict
from streamskit.course.labs.trial import Trial


@dataclass
class Rehearsal:
    """What happened in a lab: the verdict of each check, and the errors of the other cells."""

    verdicts: dict[str, Verdict] = field(default_factory=dict)
    errors: dict[str, Exception] = field(default_factory=dict)


def rehearse(notebook: Path, tries_out: bool = False) -> Rehearsal:
    """Run all cells of a lab, whatever fails, and return what its checks found; the learner's progress is not touched.

    `try_out` takes half of a lab's time, and nothing that it shows is examined: unless `tries_out` is set, its
    topologies are built but not run.
    """
    found = Rehearsal()
    examine = Exercise.examine_answer

    def noted(exercise: Exercise, answer: Any) -> Verdict:
        found.verdicts[exercise.name] = examine(exercise, answer)
        return found.verdicts[exercise.name]

    names: dict[str, Any] = {"__name__": notebook.stem}
    with ExitStack() as stack:
        stack.enter_context(_instead(Exercise, "examine_answer", noted))
        stack.enter_context(_instead(checking, "_show", lambda html, text, found: None))
        stack.enter_context(_instead(scores, "note", lambda *_, **__: None))
        if not tries_out:
            stack.enter_context(_instead(trying_out, "records_of", lambda topology, steps: Trial(topology)))
        for number, cell in cells(notebook):
            try:
                exec(compile(cell, f"{notebook.stem}, cell {number}", "exec"), names)
            except CheckFailed as failure:
                found.verdicts.setdefault(failure.name, failure.verdict)
            except Exception as error:
                found.errors[f"cell {number}: {cell}"] = error
    return found


def cells(notebook: Path) -> Iterator[tuple[int, str]]:
    """Return the code cells of a notebook with their numbers."""
    for number, cell in enumerate(nbformat.read(notebook, as_version=4).cells, 1):
        if cell.cell_type == "code":
            yield number, cell.source


@contextmanager
def _instead(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
