"""The student's version of a lab, made from its source with nbgrader: solutions cut out, checks locked.

`python -m streamskit labs` makes all of them again; `reset("08-windows")` restores one. `python -m streamskit labs
record` belongs to `streamskit.course.labs.wrong_answers`.
"""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from streamskit.common.errors import StreamsKitError
from streamskit.common.paths import project_dir
from streamskit.course.labs import catalogue, scores, wrong_answers
from streamskit.course.labs.instructors_sheet import SHEET, sheet
from streamskit.course.labs.lab_files import SOURCE, STUDENT


def student_version(source: Path) -> NotebookNode:
    """Return a lab without its solutions and outputs, as `nbgrader generate_assignment` releases it.

    Raises:
        StreamsKitError: nbgrader is not installed.
    """
    try:
        from nbgrader import preprocessors as nbgrader
    except ImportError:
        raise StreamsKitError("nbgrader is not installed: `pip install nbgrader`, or run `make lab`.") from None
    notebook, resources = nbformat.read(source, as_version=4), {"unique_key": source.stem}
    for step in (
        "LockCells",
        "ClearSolutions",
        "ClearOutput",
        "CheckCellMetadata",
        "ClearHiddenTests",
        "ComputeChecksums",
    ):
        notebook, resources = getattr(nbgrader, step)().preprocess(notebook, resources)
    return notebook


def write_student_versions(folder: Path | None = None) -> list[Path]:
    """Make the student's version of every lab again, and the instructors' sheet; return their paths."""
    folder = folder or project_dir()
    written = folder / SHEET
    written.write_text(sheet(folder))
    return [*(_write(folder, lab.name) for lab in catalogue.labs()), written]


def main(arguments: Sequence[str]) -> int:
    """Write the learners' labs and the instructors' sheet; or, with `record`, record the outcomes of wrong answers."""
    parser = argparse.ArgumentParser(prog="python -m streamskit labs", description=main.__doc__)
    parser.add_argument("what", nargs="?", choices=["write", "record"], default="write", help="what to do")
    parser.add_argument("labs", nargs="*", help="the labs to record; without any, those that changed since")
    chosen = parser.parse_args(arguments)
    if chosen.what == "record":
        return wrong_answers.main(chosen.labs)
    for path in write_student_versions():
        print(path.name)
    return 0


def reset(lab: str) -> None:
    """Restore a lab to its original state, with its exercises open; the other labs are not touched.

    What was in it is kept beside it, in a file that ends in `.before-reset`. If the notebook is open, choose
    File → Reload Notebook from Disk.

    Raises:
        StreamsKitError: there is no such lab.

    >>> reset("08-windows")
    """
    found, folder = catalogue.lab(lab), project_dir()
    notebook = folder / STUDENT.format(name=found.name)
    if notebook.exists():
        shutil.copy(notebook, notebook.with_suffix(".ipynb.before-reset"))
    _write(folder, found.name)
    scores.forget(found.exercises)
    print(f"{notebook.name} is as it was at first. If it is open: File → Reload Notebook from Disk.")


def _write(folder: Path, name: str) -> Path:
    source, path = folder / SOURCE.format(name=name), folder / STUDENT.format(name=name)
    if not source.exists():
        raise StreamsKitError(f"The lab's source {source} is not there: labs are in a copy of the whole course.")
    nbformat.write(student_version(source), path)
    return path
