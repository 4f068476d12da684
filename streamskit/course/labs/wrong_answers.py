"""The wrong answers that the labs know: what comes of each is recorded once, and checks compare with that.

`python -m streamskit labs record 06-joins` examines each wrong answer of a lab. It has to be told as the mistake under
which it stands, and as no other; what came of it then goes into the lab's JSON file.
"""

import json
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from streamskit.common.errors import StreamsKitError
from streamskit.common.paths import project_dir
from streamskit.course.labs import catalogue
from streamskit.course.labs.difference import digest
from streamskit.course.labs.exercise import Exercise, Lab, Runs, Says, Verdict
from streamskit.course.labs.lab_files import EXERCISES, SOURCE, STUDENT, module_of, recorded_of
from streamskit.course.labs.loops import WrongLoop
from streamskit.course.labs.misconceptions import WORDS
from streamskit.course.labs.parts import SaysEach
from streamskit.course.labs.rehearsal import cells, rehearse


class WrongAnswer(NamedTuple):
    """A wrong answer, the exercise that it answers, and the mistake that it makes."""

    exercise: Exercise
    mistake: str
    answer: Any
    number: int

    @property
    def name(self) -> str:
        """How tests call it, such as "bundle_deals-window too wide-2"."""
        return f"{self.exercise.name}-{self.mistake}-{self.number}"

    @property
    def given(self) -> Any:
        """What is examined: the answer, or the value that a function makes."""
        is_value = isinstance(self.exercise.examine, Says | SaysEach)
        return self.answer() if is_value and callable(self.answer) else self.answer

    @property
    def is_quick(self) -> bool:
        """Whether nothing has to run for it: it is a loop, or a value where the right one is known."""
        examine = self.exercise.examine
        return isinstance(self.answer, WrongLoop) or (isinstance(examine, Says) and not callable(examine.expected))


def wrong_answers(lab: Lab) -> Iterator[WrongAnswer]:
    """Return the wrong answers to a lab's exercises."""
    for exercise in lab.exercises:
        seen: dict[str, int] = {}
        for mistake, answer in exercise.wrong:
            seen[mistake] = seen.get(mistake, 0) + 1
            yield WrongAnswer(exercise, mistake, answer, seen[mistake])


def told(wrong: WrongAnswer) -> str:
    """Return the mistake that a check tells a wrong answer as; nothing if it finds none.

    Raises:
        StreamsKitError: the answer passes, or is taken for one that has not been begun.
    """
    return _name(_examined(wrong))


def record(lab: Lab, tell: Callable[[str], None] = print) -> Path:
    """Try a lab: its solutions have to pass, its stubs to fail, and its wrong answers to be told as what they are.

    What came of the wrong answers is noted in the lab's JSON file, which is returned.

    Raises:
        StreamsKitError: a solution does not pass, a stub is taken for an answer, or a wrong answer passes or is told as
            another mistake than its own.
    """
    tell("  the solutions, and what learners find in their place")
    _try_notebooks(lab)
    outcomes: dict[str, dict[str, list[str]]] = {}
    for wrong in wrong_answers(lab):
        tell(f"  {wrong.name}")
        of_exercise = outcomes.setdefault(wrong.exercise.name, {})
        fingerprint = _fingerprint(wrong)
        others = [
            mistake for mistake, known in of_exercise.items() if fingerprint in known and mistake != wrong.mistake
        ]
        if fingerprint and others:
            raise StreamsKitError(
                f"Of {wrong.name} the same comes as of {others[0]!r}: a check cannot tell them apart."
            )
        of_exercise.setdefault(wrong.mistake, []).append(fingerprint)
    path = Path(str(EXERCISES / f"{module_of(lab.name)}.json"))
    noted = {"made_of": made_of(lab), "solved": solved(lab), "outcomes": outcomes}
    path.write_text(json.dumps(noted, indent=1, ensure_ascii=False) + "\n")
    return path


def _try_notebooks(lab: Lab) -> None:
    solutions = rehearse(project_dir() / SOURCE.format(name=lab.name))
    stubs = rehearse(project_dir() / STUDENT.format(name=lab.name))
    for exercise in lab.exercises:
        solution, stub = solutions.verdicts.get(exercise.name), stubs.verdicts.get(exercise.name)
        if solution is None or not solution.passed:
            raise StreamsKitError(f"The solution of {exercise.name} does not pass: {solution and solution.says}")
        if stub is None or stub.written:
            raise StreamsKitError(f"The stub of {exercise.name} is taken for an answer: {stub and stub.says}")


def _fingerprint(wrong: WrongAnswer) -> str:
    """Return what a check is to recognise an answer by; nothing where its examiner or an error names the mistake."""
    verdict, examine = _examined(wrong), wrong.exercise.examine
    name = _name(verdict)
    if not isinstance(examine, Runs) or verdict.outcome is None or name in examine.errors.values():
        if name != wrong.mistake:
            raise StreamsKitError(f"{wrong.name} counts as {name or 'nothing'!r}: {verdict.says}")
        return ""
    seen = examine.by_sign(verdict.outcome)
    if seen and seen.name in examine.signs and seen.name != wrong.mistake:
        raise StreamsKitError(f"{wrong.name} looks like {seen.name!r}: that sign is seen where it should not be.")
    return verdict.outcome.fingerprint


def _examined(wrong: WrongAnswer) -> Verdict:
    examine = wrong.exercise.examine
    if isinstance(wrong.answer, WrongLoop) and isinstance(examine, Runs):
        outcome = wrong.answer.outcome(examine.recording())
        verdict = Verdict(outcome.is_right, "", examine.mistake(outcome), outcome)
    else:
        verdict = wrong.exercise.examine_answer(wrong.given)
    if verdict.passed or not verdict.written:
        raise StreamsKitError(f"{wrong.name} is no wrong answer: {verdict.says}")
    return verdict


def is_stale(lab: Lab) -> bool:
    """Say whether the wrong answers of a lab, or what goes into its topologies, changed since they were recorded."""
    return recorded_of(lab.name).get("made_of") != made_of(lab)


def unproven(lab: Lab) -> list[str]:
    """Return what a lab says of mistakes without a wrong answer, and the mistakes that it has no words for."""
    gaps = []
    for exercise in lab.exercises:
        proven = {mistake for mistake, _ in exercise.wrong}
        named = proven | set(getattr(exercise.examine, "signs", {})) | _errors(exercise)
        gaps += [f"{exercise.name}: no wrong answer makes {name!r}" for name in sorted(named - proven)]
        gaps += [
            f"{exercise.name}: there are no words for {name!r}"
            for name in sorted(named - exercise.words.keys() - WORDS.keys() - _errors(exercise))
        ]
    proven_anywhere = {mistake for exercise in lab.exercises for mistake, _ in exercise.wrong}
    told = {name for exercise in lab.exercises for name in exercise.words}
    return gaps + [f"no exercise knows a mistake {name!r}" for name in sorted(told - proven_anywhere)]


def made_of(lab: Lab) -> str:
    """Return a digest of the lab's code, comments aside, and of what goes into its topologies."""
    own = module_of(lab.name)
    others = tuple(name for name in map(module_of, catalogue.NAMES) if name.startswith(own) and name != own)
    modules = sorted(Path(str(files("streamskit.course.labs.exercises"))).glob(f"{own}*.py"))
    code = [_statements(path) for path in modules if not path.stem.startswith(others)]
    went_in = [
        (exercise.name, recording.steps, recording.outputs, recording.stores)
        for exercise in lab.exercises
        if isinstance(exercise.examine, Runs)
        for recording in [exercise.examine.recording()]
    ]
    return digest(code, went_in)


def main(names: list[str]) -> int:
    """Record the wrong answers of some labs, or of all that are stale; return the exit code."""
    chosen = [catalogue.lab(name) for name in names] or [lab for lab in catalogue.labs() if _is_due(lab)]
    for lab in chosen:
        print(lab.name)
        record(lab)
    done = ", ".join(lab.name for lab in chosen)
    print(f"Recorded: {done}." if chosen else "No lab has changed since it was recorded.")
    return 0


def solved(lab: Lab) -> str:
    """Return a digest of the lab and of the cells of its notebook, with the solutions."""
    return digest(made_of(lab), list(cells(project_dir() / SOURCE.format(name=lab.name))))


def _is_due(lab: Lab) -> bool:
    return is_stale(lab) or recorded_of(lab.name).get("solved") != solved(lab)


def _errors(exercise: Exercise) -> set[str]:
    return set(getattr(exercise.examine, "errors", {}).values())


def _name(verdict: Verdict) -> str:
    return verdict.misconception.name if verdict.misconception else ""


def _statements(path: Path) -> list[str]:
    lines = (line.strip() for line in path.read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]
