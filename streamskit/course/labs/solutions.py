"""`solution("name")`: after a pass, our solution beside what the learner wrote, and why it is written so."""

import ast
import inspect
import re
import sys
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from IPython.display import display

from streamskit.common.paths import project_dir
from streamskit.course.labs import catalogue, scores
from streamskit.course.labs.checking import named_or_latest
from streamskit.course.labs.edits import names_made
from streamskit.course.labs.lab_files import SOURCE
from streamskit.views.html import CODE, STYLE, part

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
"""Between which lines nbgrader finds what a learner is to write."""

NO_SOURCE = "# This copy of the course comes without solutions (labs/source): ask whoever teaches it."


def solution(name: str = "") -> None:
    """Show our solution of an exercise beside yours, and why it is written so, once your check has passed.

    Before a pass it shows nothing of the kind, and says which hint comes next.

    Args:
        name: of the exercise, as in its `check`; by default the one that was last checked or named.

    Raises:
        StreamsKitError: there is no such exercise, or none is named and none was checked yet.

    >>> solution("clicks_per_minute")
    """
    exercise = named_or_latest(name, "solution")
    entry = scores.known().get(exercise.name, {})
    if not entry.get("passed"):
        _show(*_not_yet(exercise.name, entry.get("hints", 0), len(exercise.hints)))
        return
    lab = next(lab for lab in catalogue.labs() if exercise in lab.exercises)
    ours = solution_of(project_dir() / SOURCE.format(name=lab.name), exercise.name) or NO_SOURCE
    theirs = written(exercise.name, sys._getframe(1).f_globals)
    _show(_page(exercise.name, exercise.why, ours, theirs), f"{exercise.why}\n\nours:\n{ours}\n\nyours:\n{theirs}")


def solution_of(notebook: Path, name: str) -> str:
    """Return the solution of an exercise from a lab's source; an empty text if it is not available."""
    if not notebook.is_file():
        return ""
    cells = nbformat.read(notebook, as_version=4).cells
    found = [cell.source for cell in cells if cell.metadata.get("nbgrader", {}).get("grade_id") == name]
    return without_stub(found[0]) if found else ""


def without_stub(cell: str) -> str:
    """Return a cell of a lab's source without nbgrader's marks and without the stub that the solution replaces.

    >>> without_stub("# tasks = ...\\n### BEGIN SOLUTION\\ntasks = 3\\n### END SOLUTION")
    'tasks = 3'
    """
    lines = cell.splitlines()
    stubs = {
        number
        for statement in ast.parse(cell).body
        if isinstance(statement, ast.Assign) and _has_gaps(statement)
        for number in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
    }
    kept = [
        line
        for number, line in enumerate(lines, 1)
        if number not in stubs and line.strip() not in (BEGIN, END) and not _is_gap(line)
    ]
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(kept)).strip("\n")


def written(name: str, notebook: Mapping[str, Any]) -> str:
    """Return what the learner wrote under a name: the last cell run that defines the name.

    Args:
        name: of a function, class or variable.
        notebook: the notebook's names, with IPython's history of cells under `In`.
    """
    for cell in reversed(notebook.get("In", ())):
        if name in _names_given(cell):
            return str(cell).strip("\n")
    if name not in notebook:
        return f"# The notebook has no {name} now: run the cell in which you wrote it."
    try:
        return inspect.getsource(notebook[name])
    except (OSError, TypeError):
        return f"{name} = {notebook[name]!r}"


def _names_given(cell: str) -> set[str]:
    """Return the names that a cell defines outside of its functions; none if it is not plain Python."""
    try:
        body = ast.parse(cell).body
    except SyntaxError:
        return set()
    return set[str]().union(*map(names_made, body))


def _has_gaps(statement: ast.Assign) -> bool:
    return any(isinstance(node, ast.Constant) and node.value is ... for node in ast.walk(statement))


def _is_gap(line: str) -> bool:
    """Say whether a line is a comment that shows the shape of an answer, such as `# tasks = ...`."""
    return line.strip().startswith("# ") and " = " in line and "..." in line


def _not_yet(name: str, hints: int, of: int) -> tuple[str, str]:
    """Return what is said before a pass, as a page and as text."""
    more = "You have seen all hints" if hints >= of else f"Hint {hints + 1} of {of} is ready"
    says = f"{name} has not passed its check yet. Afterwards solution({name!r}) shows ours beside yours. {more}:"
    call = f'hint("{name}")'
    return STYLE + part(f"<div>{escape(says)} <code>{escape(call)}</code></div>", "solution"), f"{says} {call}"


def _page(name: str, why: str, ours: str, theirs: str) -> str:
    sides = "".join(
        f'<div style="flex:1 1 380px;min-width:0"><b>{title}</b>'
        f'<pre style="{CODE};margin:4px 0">{escape(code)}</pre></div>'
        for title, code in (("ours", ours), ("yours", theirs))
    )
    head = f"<div><b>{escape(name)}</b></div><div>{escape(why)}</div>"
    return STYLE + part(f'{head}<div style="display:flex;flex-wrap:wrap;gap:8px 24px">{sides}</div>', "solution")


def _show(html: str, text: str) -> None:
    display({"text/html": html, "text/plain": text}, raw=True)
