"""The student's version of a lab, made from its source with nbgrader: solutions cut out, checks locked.

`python -m streamskit labs` makes all of them again; `reset("08-windows")` restores one. `python -m streamskit labs
record` belongs to `streamskit.course.labs.wrong_answers`.
"""

import argparse
import shutil
from collections.abc import Sequence
from itertools import chain, count
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
    """Make the student's version of every lab again, and the instructors' sheet; return their paths.

    Raises:
        StreamsKitError: the folder holds no copy of the course, or nbgrader is not installed.
    """
    folder = folder or project_dir()
    for lab in catalogue.labs():
        _source(folder, lab.name)
    written = folder / SHEET
    written.write_text(sheet(folder))
    return [*(_write(folder, lab.name) for lab in catalogue.labs()), written]


def main(arguments: Sequence[str]) -> int:
    """Write the learners' labs and the instructors' sheet; or, with `record`, record the outcomes of wrong answers."""
    parser = argparse.ArgumentParser(prog="python -m streamskit labs", description=main.__doc__)
    parser.add_argument("what", nargs="?", choices=["write", "record"], default="write", help="what to do")
    parser.add_argument("labs", nargs="*", help="the labs to record; without any, those that changed since")
    chosen = parser.parse_args(arguments)
    if chosen.labs and chosen.what == "write":
        parser.error(f"`write` makes all labs: leave out {', '.join(chosen.labs)}. Only `record` takes names.")
    if chosen.what == "record":
        return wrong_answers.main(chosen.labs)
    for path in write_student_versions():
        print(path.name)
    return 0


def reset(lab: str) -> None:
    """Restore a lab to its original state, with its exercises open; the other labs are not touched.

    What was in it is kept beside it, in a file that ends in `.before-reset`; at the next reset in another one, which
    ends in `.before-reset-2`. If the notebook is open, choose File → Reload Notebook from Disk.

    Raises:
        StreamsKitError: there is no such lab.

    >>> reset("08-windows")
    """
    found, folder = catalogue.lab(lab), project_dir()
    notebook, kept = folder / STUDENT.format(name=found.name), ""
    original = _original(folder, found.name)
    if notebook.exists() and not _is(notebook, original):
        copy = _unused(notebook)
        shutil.copy(notebook, copy)
        kept = f" What was in it is in {copy.name}."
    nbformat.write(original, notebook)
    scores.forget(found.exercises)
    print(f"{notebook.name} is as it was at first. If it is open: File → Reload Notebook from Disk.{kept}")


def _original(folder: Path, name: str) -> NotebookNode:
    return student_version(_source(folder, name))


def _source(folder: Path, name: str) -> Path:
    source = folder / SOURCE.format(name=name)
    if not source.exists():
        raise StreamsKitError(f"The lab's source {source} is not there: labs are in a copy of the whole course.")
    return source


def _is(path: Path, notebook: NotebookNode) -> bool:
    """Say whether a file has this notebook in it; a file that is no notebook has something else."""
    try:
        return bool(nbformat.read(path, as_version=4) == notebook)
    except (ValueError, AttributeError, nbformat.ValidationError):
        return False


def _unused(notebook: Path) -> Path:
    """Return where to keep a notebook: no copy that was kept before is overwritten."""
    names = (f"{notebook.name}.before-reset{number}" for number in chain([""], (f"-{n}" for n in count(2))))
    return next(path for path in map(notebook.with_name, names) if not path.exists())


def _write(folder: Path, name: str) -> Path:
    path = folder / STUDENT.format(name=name)
    nbformat.write(_original(folder, name), path)
    return path
