"""The wrong answers that the labs know: the outcome of each is recorded once, and checks compare with it.

`python -m streamskit labs record 05-joins` examines each wrong answer of a lab. It has to be recognised as the mistake
under which it is listed, and as no other; its outcome is then written to the lab's JSON file.
"""

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from streamskit.common.errors import StreamsKitError
from streamskit.common.paths import project_dir
from streamskit.course.labs import catalogue
from streamskit.course.labs.difference import digest
from streamskit.course.labs.edits import Edit
from streamskit.course.labs.exercise import Exercise, Lab, Runs, Says, Verdict
from streamskit.course.labs.lab_files import EXERCISES, SOURCE, STUDENT, module_of, recorded_of
from streamskit.course.labs.loops import WrongLoop
from streamskit.course.labs.misconceptions import WORDS
from streamskit.course.labs.parts import SaysEach
from streamskit.course.labs.rehearsal import cells

Outcomes = dict[str, list[str]]
"""The outcomes of the wrong answers, by mistake."""


class WrongAnswer(NamedTuple):
    """A wrong answer, the exercise that it answers, and the mistake that it makes."""

    exercise: Exercise
    mistake: str
    answer: Any
    number: int

    @property
    def name(self) -> str:
        """Its name in tests, such as "bundle_deals-window too wide-2"."""
        return f"{self.exercise.name}-{self.mistake}-{self.number}"

    @property
    def given(self) -> Any:
        """What is examined: the answer, or the value that a function makes."""
        if isinstance(self.answer, Edit):
            return self.answer.answer()
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
        edited = [
            (mistake, Edit(lab.name, exercise.name, tuple(texts)))
            for mistake, some in exercise.edits.items()
            for texts in some
        ]
        for mistake, answer in [*exercise.wrong, *edited]:
            seen[mistake] = seen.get(mistake, 0) + 1
            yield WrongAnswer(exercise, mistake, answer, seen[mistake])


def told(wrong: WrongAnswer) -> str:
    """Return the mistake that a check finds in a wrong answer; nothing if it finds none.

    Raises:
        StreamsKitError: the answer passes, or is taken for one that has not been begun.
    """
    return _name(_examined(wrong))


def record(lab: Lab, tell: Callable[[str], None] = print) -> Path:
    """Try a lab: its solutions have to pass, its stubs to fail, and its wrong answers to be recognised.

    The outcomes of the wrong answers are written to the lab's JSON file, whose path is returned.

    Raises:
        StreamsKitError: a solution does not pass, a stub is taken for an answer, a wrong answer passes or is
            recognised as another mistake, or a sign is never seen; the message lists all problems.
    """
    tell("  the solutions, and what learners find in their place")
    problems, outcomes, fired = list(_in_notebooks(lab)), dict[str, Outcomes](), dict[str, list[str]]()
    for wrong in wrong_answers(lab):
        tell(f"  {wrong.name}")
        of_exercise = outcomes.setdefault(wrong.exercise.name, {})
        try:
            fingerprint, shows_sign = _tried(wrong, of_exercise)
        except StreamsKitError as error:
            problems.append(str(error))
            continue
        of_exercise.setdefault(wrong.mistake, []).append(fingerprint)
        if shows_sign and wrong.mistake not in fired.setdefault(wrong.exercise.name, []):
            fired[wrong.exercise.name].append(wrong.mistake)
    problems += [] if problems else dead_signs(lab, fired)
    if problems:
        raise StreamsKitError(f"{lab.name} is not recorded:\n" + "\n".join(f"- {problem}" for problem in problems))
    path = Path(str(EXERCISES / f"{module_of(lab.name)}.json"))
    noted = {"made_of": made_of(lab), "solved": solved(lab), "signs": fired, "outcomes": outcomes}
    path.write_text(json.dumps(noted, indent=1, ensure_ascii=False) + "\n")
    return path


def _in_notebooks(lab: Lab) -> Iterator[str]:
    """Say which solutions do not pass, and which stubs are taken for answers."""
    for exercise in lab.exercises:
        solution = exercise.examine_answer(Edit(lab.name, exercise.name).answer())
        if not solution.passed:
            yield f"The solution of {exercise.name} does not pass: {solution.says}"
        with suppress(NotImplementedError):
            stub = exercise.examine_answer(Edit(lab.name, exercise.name, notebook=STUDENT).answer())
            if stub.written:
                yield f"The stub of {exercise.name} is taken for an answer: {stub.says}"


def _tried(wrong: WrongAnswer, known: Outcomes) -> tuple[str, bool]:
    """Return what a check is to recognise a wrong answer by, and whether the sign of its mistake is seen in it.

    Raises:
        StreamsKitError: it is recognised as another mistake, or an answer with another mistake has the same outcome.
    """
    verdict, examine = _examined(wrong), wrong.exercise.examine
    fingerprint = _fingerprint(wrong, verdict)
    others = [mistake for mistake, some in known.items() if fingerprint in some and mistake != wrong.mistake]
    if fingerprint and others:
        raise StreamsKitError(f"{wrong.name} has the same outcome as {others[0]!r}: a check cannot tell them apart.")
    sign = examine.signs.get(wrong.mistake) if isinstance(examine, Runs) else None
    return fingerprint, bool(sign and verdict.outcome and sign(verdict.outcome))


def dead_signs(lab: Lab, fired: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the signs that are seen in none of the wrong answers that make their mistake.

    Args:
        lab: the lab.
        fired: for each exercise, the mistakes whose sign was seen in a wrong answer.
    """
    return [
        f"The sign of {mistake!r} in {exercise.name} is seen in none of its wrong answers: take it away."
        for exercise in lab.exercises
        if isinstance(exercise.examine, Runs)
        for mistake in exercise.examine.signs
        if mistake not in fired.get(exercise.name, ())
    ]


def _fingerprint(wrong: WrongAnswer, verdict: Verdict) -> str:
    """Return what a check is to recognise an answer by; nothing where its examiner or an error names the mistake."""
    examine = wrong.exercise.examine
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
    """Return the mistakes that a lab has words for but no wrong answer, and those that it has no words for."""
    gaps = []
    for exercise in lab.exercises:
        proven = made(exercise)
        named = proven | set(getattr(exercise.examine, "signs", {})) | _errors(exercise)
        gaps += [f"{exercise.name}: no wrong answer makes {name!r}" for name in sorted(named - proven)]
        gaps += [
            f"{exercise.name}: there are no words for {name!r}"
            for name in sorted(named - exercise.words.keys() - WORDS.keys() - _errors(exercise))
        ]
    proven_anywhere = {mistake for exercise in lab.exercises for mistake in made(exercise)}
    told = {name for exercise in lab.exercises for name in exercise.words}
    return gaps + [f"no exercise knows a mistake {name!r}" for name in sorted(told - proven_anywhere)]


def made_of(lab: Lab) -> str:
    """Return a digest of the lab's code, whichever of its modules it is in, and of what goes into its topologies."""
    own = module_of(lab.name)
    others = tuple(name for name in map(module_of, catalogue.NAMES) if name.startswith(own) and name != own)
    modules = sorted(Path(str(files("streamskit.course.labs.exercises"))).glob(f"{own}*.py"))
    code = sorted(each for path in modules if not path.stem.startswith(others) for each in _statements(path))
    went_in = [
        (exercise.name, recording.steps, recording.outputs, recording.stores)
        for exercise in lab.exercises
        if isinstance(exercise.examine, Runs)
        for recording in [exercise.examine.recording()]
    ]
    edits = [(exercise.name, exercise.edits) for exercise in lab.exercises if exercise.edits]
    return digest(code, went_in, edits)


def main(names: list[str]) -> int:
    """Record the wrong answers of some labs, or of all that are due; return the exit code.

    Raises:
        StreamsKitError: some labs could not be recorded; the others are.
    """
    chosen = [catalogue.lab(name) for name in names] or [lab for lab in catalogue.labs() if _is_due(lab)]
    failed = []
    for lab in chosen:
        print(lab.name)
        try:
            record(lab)
        except StreamsKitError as error:
            print(error)
            failed.append(lab.name)
    if failed:
        raise StreamsKitError(f"Not recorded: {', '.join(failed)}. The lines above say why.")
    done = ", ".join(lab.name for lab in chosen)
    print(f"Recorded: {done}." if chosen else "No lab has changed since it was recorded.")
    return 0


def solved(lab: Lab) -> str:
    """Return a digest of the lab and of the cells of its notebook, with the solutions."""
    return digest(made_of(lab), list(cells(project_dir() / SOURCE.format(name=lab.name))))


def _is_due(lab: Lab) -> bool:
    return is_stale(lab) or recorded_of(lab.name).get("solved") != solved(lab)


def made(exercise: Exercise) -> set[str]:
    """Return the mistakes of an exercise that a wrong answer makes."""
    return {mistake for mistake, _ in exercise.wrong} | exercise.edits.keys()


def _errors(exercise: Exercise) -> set[str]:
    return set(getattr(exercise.examine, "errors", {}).values())


def _name(verdict: Verdict) -> str:
    return verdict.misconception.name if verdict.misconception else ""


def _statements(path: Path) -> list[str]:
    """Return the statements of a module without imports, comments and prose: docstrings, and what verdicts say.

    Without quotation marks, too: which ones `ast.unparse` writes around an f-string depends on Python's version.
    """
    body = _WithoutProse().visit(ast.parse(path.read_text())).body
    kept = [each for each in body if not isinstance(each, ast.Import | ast.ImportFrom)]
    return [re.sub(r"[\\'\"]", "", ast.unparse(each)) for each in kept]


class _WithoutProse(ast.NodeTransformer):
    """Takes the sentences out of code, so that a lab whose words change doesn't have to be recorded again."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        is_docstring = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_docstring else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id in ("right", "wrong", "unwritten"):
            node.args = node.args[1:]
        node.keywords = [each for each in node.keywords if each.arg != "tested"]
        return self.generic_visit(node)
