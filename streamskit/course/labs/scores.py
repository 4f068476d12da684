"""Which exercises are done: kept in a file of the project, shown over the course, read from a class's notebooks."""

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
from filelock import FileLock

from streamskit.common.errors import StreamsKitError
from streamskit.common.paths import state_dir
from streamskit.course.labs.catalogue import labs
from streamskit.course.labs.exercise import Exercise
from streamskit.views.html import STYLE, part

MEDIA_TYPE = "application/vnd.streamskit.check+json"
"""The MIME type under which a check's output in a notebook says what it found, for whoever collects notebooks."""

Entry = dict[str, Any]

NEW: Entry = {"passed": False, "checks": 0, "hints": 0}
"""What is known of an exercise that was not begun."""


def note(exercise: Exercise, passed: bool | None = None, hints: int = 0) -> Entry:
    """Note a check (`passed`) of an exercise, or how many of its hints were shown; return what is known about it."""
    file = _file()
    with FileLock(f"{file}.lock", thread_local=False):
        known = _read(file)
        entry = known.setdefault(exercise.name, dict(NEW))
        if passed is not None:
            entry["checks"] += 1
            entry["passed"] = entry["passed"] or passed
        entry["hints"] = max(entry["hints"], hints)
        _write(file, known)
    return entry


def forget(exercises: tuple[Exercise, ...]) -> None:
    """Forget all about these exercises."""
    file = _file()
    with FileLock(f"{file}.lock", thread_local=False):
        known = _read(file)
        _write(file, {name: entry for name, entry in known.items() if name not in {each.name for each in exercises}})


def known() -> dict[str, Entry]:
    """Return what is known of each exercise that was begun."""
    return _read(_file())


@dataclass(frozen=True)
class Progress:
    """Done and open exercises over the course; in a notebook it shows itself as a table."""

    entries: Mapping[str, Entry] = field(default_factory=dict)

    def to_pandas(self) -> pd.DataFrame:
        """Return a row for each exercise: lab, exercise, task, passed, how often checked, how many hints."""
        rows = [
            {"lab": lab.name, "exercise": each.name, "task": each.task} | NEW | dict(self.entries.get(each.name, {}))
            for lab in labs()
            for each in lab.exercises
        ]
        return pd.DataFrame(rows, columns=["lab", "exercise", "task", "passed", "checks", "hints"])

    @property
    def done(self) -> int:
        """How many exercises are passed."""
        return int(self.to_pandas()["passed"].sum())

    def __repr__(self) -> str:
        table = self.to_pandas()
        return f"{self.done} of {len(table)} exercises done"

    def _repr_html_(self) -> str:
        table = self.to_pandas()
        lines = []
        for lab in labs():
            own = table[table["lab"] == lab.name]
            marks = " ".join(_mark(row) for row in own.itertuples())
            done = int(own["passed"].sum())
            lines.append(
                f'<tr><td></td><td style="text-align:left">{escape(lab.name)}</td><td>{done} of {len(own)}</td>'
                f'<td style="text-align:left;white-space:normal">{marks}</td></tr>'
            )
        head = (
            '<th></th><th style="text-align:left">lab</th><th>done</th><th style="text-align:left">'
            "✓ passed · ✗ tried, not yet · ○ open</th>"
        )
        return STYLE + part(
            f"<div><b>{self.done} of {len(table)} exercises done</b></div>"
            f'<div class="sk-rows"><table style="table-layout:auto"><thead><tr>{head}</tr></thead>'
            f"<tbody>{''.join(lines)}</tbody></table></div>",
            "progress",
        )


def progress(folder: str | Path | None = None) -> "Progress | pd.DataFrame":
    """Show done and open exercises over the course.

    Args:
        folder: a folder of collected notebooks, one folder a student (as nbgrader's `submitted/`): then a table of the
            class, a row for each student and a column for each lab, with the number of exercises passed.

    Raises:
        StreamsKitError: it is no folder, or no notebook is in it.

    >>> streamskit.progress()
    """
    if folder is None:
        return Progress(known())
    if not isinstance(folder, str | Path):
        raise StreamsKitError(f"Give the folder of a class in quotes, such as 'submitted', and not {folder!r}.")
    return of_class(Path(folder))


def of_class(folder: Path) -> pd.DataFrame:
    """Return how many exercises of each lab each student has passed, from the outputs of the collected notebooks.

    A file that cannot be read as a notebook counts as an empty one, and a warning names it.

    Raises:
        StreamsKitError: there is no such folder, or no notebook in it.
    """
    students: dict[str, dict[str, Entry]] = {}
    for path in sorted(folder.rglob("*.ipynb")):
        if ".ipynb_checkpoints" not in path.parts:
            students.setdefault(path.relative_to(folder).parts[0].removesuffix(".ipynb"), {}).update(of_notebook(path))
    if not students:
        missing = "has no notebooks in it" if folder.is_dir() else "is no folder"
        raise StreamsKitError(f"{folder} {missing}: give the folder with one folder a student, such as submitted/.")
    tables = {
        student: Progress(entries).to_pandas().groupby("lab", sort=False)["passed"].sum()
        for student, entries in students.items()
    }
    return pd.DataFrame(tables).T.astype(int)


def of_notebook(path: Path) -> dict[str, Entry]:
    """Return what the checks in a notebook's stored outputs found."""
    entries: dict[str, Entry] = {}
    try:
        cells = nbformat.read(path, as_version=4).cells
    except (ValueError, AttributeError, nbformat.ValidationError) as error:
        warnings.warn(f"{path} cannot be read as a notebook, and counts as an empty one: {error}", stacklevel=2)
        return entries
    for cell in cells:
        for output in cell.get("outputs", ()):
            found = output.get("data", {}).get(MEDIA_TYPE)
            if found:
                entries[found["exercise"]] = {"passed": bool(found["passed"])}
    return entries


def _mark(row: Any) -> str:
    sign = "✓" if row.passed else "✗" if row.checks else "○"
    return f'<span title="{escape(row.task)}">{sign} {escape(row.exercise)}</span>'


def _file() -> Path:
    return state_dir() / "progress.json"


def _read(file: Path) -> dict[str, Entry]:
    try:
        read = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except ValueError:  # cut off by a full disk, perhaps: the learner's work is in the notebooks
        read = None
    if not isinstance(read, dict):
        file.replace(file.with_suffix(".damaged"))
        return {}
    return {name: _entry(given) for name, given in read.items() if isinstance(given, dict)}


def _entry(given: Entry) -> Entry:
    """Return an entry with all its parts, of which some may be missing, or spoiled by hand."""
    return {part: given[part] if isinstance(given.get(part), type(new)) else new for part, new in NEW.items()}


def _write(file: Path, known: Mapping[str, Entry]) -> None:
    fresh = file.with_suffix(".new")
    fresh.write_text(json.dumps(known, indent=1, sort_keys=True))
    fresh.replace(file)
