"""The files of a lab besides its module: its words in NAME.toml, the outcomes of its wrong answers in NAME.json.

`joins.py` says how the answers to lab 05 are examined and which wrong ones are known, `joins.toml` what learners read:
the tasks, the hints, and the words for each mistake. `python -m streamskit labs record` writes `joins.json`.
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any

from streamskit.common.errors import StreamsKitError
from streamskit.course.labs.exercise import Examiner, Exercise, Lab, Runs, Words

EXERCISES = files("streamskit.course.labs") / "exercises"

SOURCE, STUDENT = "labs/source/{name}/{name}.ipynb", "labs/{name}.ipynb"
"""Where nbgrader keeps a lab with its solutions, and where a learner finds it, in a copy of the course."""

KEYS = frozenset({"task", "hints", "why", "mistakes", "wrong"})
"""What the words of an exercise may hold."""


def lab(name: str, **examiners: Examiner) -> Lab:
    """Return a lab: its words and its recorded outcomes, with how each of its exercises is examined.

    Args:
        name: of its notebook, such as "05-joins".
        examiners: judge what the learner wrote, by the names of the exercises.

    Raises:
        StreamsKitError: its words cannot be read, or do not fit the exercises.
    """
    words, recorded = words_of(name), recorded_of(name).get("outcomes", {})
    if odd := sorted(examiners.keys() ^ words.keys() - {"title", "mistakes"}):
        raise StreamsKitError(
            f"{module_of(name)}.toml and {module_of(name)}.py have to know the same exercises; only one of them knows "
            f"{', '.join(odd)}."
        )
    exercises = (
        _exercise(name, exercise, words, _with_outcomes(examine, recorded.get(exercise, {})))
        for exercise, examine in examiners.items()
    )
    return Lab(name, words["title"], tuple(exercises))


def words_of(name: str) -> dict[str, Any]:
    """Return what learners read in a lab.

    Raises:
        StreamsKitError: the file is no TOML, or has no title.
    """
    file = f"{module_of(name)}.toml"
    try:
        words = tomllib.loads((EXERCISES / file).read_text())
    except tomllib.TOMLDecodeError as error:
        raise StreamsKitError(f"{file} is not written as TOML: {error}. Fix that line, and try again.") from None
    if "title" not in words:
        raise StreamsKitError(f'{file} has to begin with the lab\'s title: title = "...".')
    return words


def recorded_of(name: str) -> dict[str, Any]:
    """Return what was recorded of a lab's wrong answers; nothing if that was never done."""
    path = EXERCISES / f"{module_of(name)}.json"
    return dict(json.loads(path.read_text())) if path.is_file() else {}


def module_of(name: str) -> str:
    """Return the name of a lab's module: that of "08-windows" is "windows"."""
    return name.partition("-")[2].replace("-", "_")


def _exercise(lab_name: str, name: str, words: Mapping[str, Any], examine: Examiner) -> Exercise:
    own = words[name]
    where = f"[{name}] in {module_of(lab_name)}.toml"
    if odd := own.keys() - KEYS:
        raise StreamsKitError(f"{where} has {sorted(odd)[0]!r}; an exercise has {', '.join(sorted(KEYS))}.")
    if not own.get("task") or len(own.get("hints", ())) != 3 or not own.get("why"):
        raise StreamsKitError(f"{where} needs a task, three hints, and why the solution is written as it is.")
    mistakes: Words = {**words.get("mistakes", {}), **own.get("mistakes", {})}
    told = {mistake: _joined(says) for mistake, says in mistakes.items()}
    first, second, third = map(_one_line, own["hints"])
    hints = (first, second, third)
    return Exercise(name, _one_line(own["task"]), examine, hints, told, _one_line(own["why"]), own.get("wrong", {}))


def _with_outcomes(examine: Examiner, outcomes: Mapping[str, list[str]]) -> Examiner:
    if not isinstance(examine, Runs):
        return examine
    return replace(examine, recorded={came: mistake for mistake, each in outcomes.items() for came in each if came})


def _joined(says: str | Mapping[str, str]) -> str | dict[str, str]:
    return _one_line(says) if isinstance(says, str) else {case: _one_line(each) for case, each in says.items()}


def _one_line(prose: str) -> str:
    """Join the lines of a paragraph, which the file may break anywhere."""
    return " ".join(prose.split())
