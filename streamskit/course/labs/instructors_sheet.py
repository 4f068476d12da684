"""The sheet for instructors: each lab's solutions with their reasons, and its questions with their answers."""

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat

from streamskit.course.labs import catalogue
from streamskit.course.labs.exercise import Lab
from streamskit.course.labs.lab_files import SOURCE
from streamskit.course.labs.solutions import solution_of

SHEET = "labs/instructors.md"
"""Where the sheet is, in a copy of the course."""

HEAD = """# For instructors: solutions and answers

Made by `python -m streamskit labs` from the labs' sources and words; edit those. Learners find the answers folded at
the end of each lab, and the solution of an exercise with `solution("name")` once they have passed it. Leave this file
and `labs/source/` out when you hand out labs without solutions.
"""

QUESTION = re.compile(r"<details><summary>(.*?)</summary>\s*(.*?)\s*</details>", re.DOTALL)


def sheet(folder: Path) -> str:
    """Return the sheet as Markdown, made from the sources of the labs in a copy of the course."""
    parts = [part for lab in catalogue.labs() for part in _of_lab(lab, folder / SOURCE.format(name=lab.name))]
    return "\n".join([HEAD, *parts])


def questions_of(notebook: Path) -> list[tuple[str, str]]:
    """Return the questions to think about at the end of a lab, each with its answer."""
    cells = [cell.source for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "markdown"]
    return [(question, answer) for cell in cells for question, answer in QUESTION.findall(cell)]


def _of_lab(lab: Lab, notebook: Path) -> Iterator[str]:
    yield f"## {int(lab.name[:2])} · {lab.title}\n"
    for exercise in lab.exercises:
        yield f"### `{exercise.name}`\n\n{exercise.task}\n"
        yield f"```python\n{solution_of(notebook, exercise.name)}\n```\n"
        yield f"{exercise.why}\n"
    yield "### Questions to think about\n"
    for question, answer in questions_of(notebook):
        yield f"**{question}** {answer}\n"
