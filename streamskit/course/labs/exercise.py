"""An exercise and how it is examined; a lab is a list of them, in the order of its notebook."""

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from numbers import Number
from traceback import extract_tb
from typing import Any

from streamskit.common.durations import spell
from streamskit.common.errors import StreamsKitError
from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.misconceptions import GENERAL, WORDS, Misconception, Sign, recognise
from streamskit.course.labs.recording import Recording
from streamskit.course.labs.several_tasks import SPLIT, split_over_tasks
from streamskit.course.labs.starting_again import IN_A_FIELD
from streamskit.course.labs.trial import forgetting_fields, misreads_numbers, run
from streamskit.dsl.builder import StreamsBuilder
from streamskit.runtime.failures import Line
from streamskit.topology import Topology

NUMBER_WANTED = "{} has to be a number, without quotes, but is {}."


@dataclass(frozen=True)
class Verdict:
    """What a check found.

    Args:
        passed: whether the answer is right.
        says: what was tested, or what is wrong.
        misconception: the mistake that fits, with its name.
        outcome: what came out beside what should have, where a topology was run.
        answers: each wrong answer of a function that was examined: the question, the right answer, the given one.
        written: False where there was nothing to examine: the learner has not begun, or the check could not begin.
        cause: the error that the learner's code raised.
        about: what is filled into the words of the mistake: a case, or numbers.
    """

    passed: bool
    says: str
    misconception: Misconception | None = None
    outcome: Outcome | None = None
    answers: tuple[tuple[str, str, str], ...] = ()
    written: bool = True
    cause: BaseException | None = None
    about: Mapping[str, Any] = field(default_factory=dict)


Examiner = Callable[[Any], Verdict]

Words = Mapping[str, str | Mapping[str, str]]
"""The words for each mistake; a mistake with several cases has words for each of them."""

Wrong = Mapping[str, Any]
"""Wrong answers by the mistake that they make; a list holds several of one mistake."""

STUB = "It still raises NotImplementedError: replace that line by yours."


@dataclass(frozen=True)
class Exercise:
    """One task of a lab.

    Args:
        name: of the task, and of what the learner writes: a function, a class or a variable.
        task: the task in a few words, for the list of progress.
        examine: judges what the learner wrote.
        hints: three of them, each saying more than the one before.
        words: the words for its mistakes.
        why: what is said about its solution once the check has passed.
        edits: wrong answers as changes of our solution, by their mistakes: lists of texts, by turns old and new.
    """

    name: str
    task: str
    examine: Examiner
    hints: tuple[str, str, str]
    words: Words = field(default_factory=dict)
    why: str = ""
    edits: Mapping[str, list[list[str]]] = field(default_factory=dict)

    def examine_answer(self, answer: Any) -> Verdict:
        """Judge what the learner wrote, in the exercise's words; an error that nobody expected makes it wrong."""
        try:
            return self._told(self.examine(answer))
        except NotImplementedError:
            return unwritten(STUB)
        except NotReadyError as error:
            return unwritten(str(error))
        except (Exception, SystemExit) as error:
            return _ended(answer, error)

    @property
    def is_live(self) -> bool:
        """Whether it is a mission on the broker, which takes as long as applications and processes take."""
        return bool(getattr(self.examine, "is_live", False))

    @property
    def wrong(self) -> list[tuple[str, Any]]:
        """The wrong answers that are known, each with the name of its mistake."""
        known: Wrong = getattr(self.examine, "wrong", {})
        return [(mistake, answer) for mistake, some in known.items() for answer in several(some)]

    def _told(self, verdict: Verdict) -> Verdict:
        mistake = verdict.misconception
        if mistake is None or mistake.says:
            return verdict
        words = self.words.get(mistake.name) or WORDS.get(mistake.name, verdict.says)
        says = words if isinstance(words, str) else words[str(verdict.about["case"])]
        says = says.format(**verdict.about) if verdict.about else says
        return replace(verdict, misconception=Misconception(mistake.name, says), says=verdict.says or says)


@dataclass(frozen=True)
class Lab:
    """A lab notebook: its name, such as "08-windows", its title and its exercises."""

    name: str
    title: str
    exercises: tuple[Exercise, ...]


def right(says: str) -> Verdict:
    """Return the verdict on a right answer; `says` is what was tested."""
    return Verdict(True, says)


def wrong(says: str, mistake: str = "") -> Verdict:
    """Return the verdict on a wrong answer: what is wrong, and the name of the mistake if it is a typical one."""
    return Verdict(False, says, Misconception(mistake, says) if mistake else None)


def mistaken(mistake: str, **about: Any) -> Verdict:
    """Return the verdict on a wrong answer that makes a mistake of the lab's, which has words for it.

    Args:
        mistake: its name.
        about: what is filled into the words: `case` where each case has its own, and what is written as {name}.
    """
    return Verdict(False, "", Misconception(mistake), about=about)


class NotReadyError(StreamsKitError):
    """What an answer is examined with could not be made, so that nothing can be said about the answer."""


@contextmanager
def getting_ready() -> Iterator[None]:
    """Tell an error in this block, in which a check makes what it needs, as none of the answer's."""
    try:
        yield
    except (StreamsKitError, TimeoutError) as error:
        raise NotReadyError(
            f"Your answer was not examined, and may be right: the check could not get ready. {error} If this "
            "machine is very busy, or the broker was stopped, wait a moment; then run this cell again."
        ) from error


def several(some: Any) -> list[Any]:
    """Return wrong answers as a list: one stands for itself."""
    return some if isinstance(some, list) else [some]


def unwritten(says: str) -> Verdict:
    """Return the verdict on an answer that has not been begun."""
    return Verdict(False, says, written=False)


@dataclass(frozen=True)
class Runs:
    """Examines a topology: it has to give what the recording says.

    The learner writes a function that takes a `StreamsBuilder`, or none and returns a `Topology`. A mistake is
    recognised by what an error says; then by its outcome, where a wrong answer has given the same; then by signs.

    Args:
        recording: makes what goes in and has to come out.
        wrong: wrong answers by the mistake that they make, or loops with the mistake, where a loop is the recording.
        signs: what other outcomes of a mistake look like; the first sign that is seen counts.
        errors: a part of an error's message, and the mistake that it reveals.
        recorded: the outcomes of the wrong answers, and the mistake of each.
        tested: what is said when the answer is right, in place of the numbers of records and results.
        partitions: how many each topic has in a second drive of a right answer, where a key is asked for that is not
            the topics' own: each task has totals of its own, unless a repartition brings a key's records together.
    """

    recording: Callable[[], Recording]
    wrong: Wrong = field(default_factory=dict, kw_only=True)
    signs: Mapping[str, Sign] = field(default_factory=dict, kw_only=True)
    errors: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    recorded: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    tested: str = field(default="", kw_only=True)
    partitions: int = field(default=1, kw_only=True)

    def __call__(self, answer: Any) -> Verdict:
        return self.judge(answer, self.recording())

    def judge(self, answer: Any, recording: Recording) -> Verdict:
        """Judge a topology by a recording."""
        try:
            topology = topology_of(answer)
            unknown = _unread(topology, recording)
            if unknown:
                return wrong(unknown, "another source topic")
            if misreads_numbers(topology, recording):
                return mistaken("another serde")
        except StreamsKitError as error:
            return self._refused("It does not make a topology", error)
        try:
            outcome, without_fields = self._outcomes(topology, recording)
        except StreamsKitError as error:
            return self._refused("The topology cannot run", error)
        if outcome.trial.is_stub:
            return unwritten(STUB)
        if not outcome.is_right:
            return Verdict(False, _wrongness(outcome), self.mistake(outcome), outcome, cause=outcome.trial.error)
        if without_fields:
            return replace(mistaken(IN_A_FIELD), outcome=without_fields)
        if self.partitions > 1 and (found := split_over_tasks(outcome.trial, recording, self.partitions)):
            return mistaken(SPLIT, partitions=self.partitions, found=found)
        return Verdict(True, self.tested or recording.told(), outcome=outcome)

    def _outcomes(self, topology: Topology, recording: Recording) -> tuple[Outcome, Outcome | None]:
        """Return the outcome and, if it is another one, that of processors that start again before each record."""

        def outcome(of: Topology) -> Outcome:
            return Outcome(recording, run(of, recording, notes_between=self.partitions > 1))

        starting_again = forgetting_fields(topology)
        if starting_again is None:
            return outcome(topology), None
        found = outcome(starting_again)
        is_known = found.is_right or found.trial.is_stub
        return (found, None) if is_known else (outcome(topology), found)

    def _refused(self, why: str, error: StreamsKitError) -> Verdict:
        return replace(wrong(f"{why}: {error}", _named(error, self.errors)), cause=error)

    def mistake(self, outcome: Outcome) -> Misconception | None:
        """Return the mistake that caused an outcome, if it is a typical one."""
        known = _named(outcome.trial.error, self.errors) or self.recorded.get(outcome.fingerprint)
        return Misconception(known) if known else self.by_sign(outcome)

    def by_sign(self, outcome: Outcome) -> Misconception | None:
        """Return the mistake that an outcome looks like, whether or not a wrong answer has given it."""
        return recognise(outcome, self.signs, GENERAL)


@dataclass(frozen=True)
class Judges:
    """Examines an answer by a function of its own; if that calls the answer, with copies of lists, dicts and sets.

    Args:
        judge: the function.
        wrong: wrong answers by the mistake that they make.
    """

    judge: Examiner
    wrong: Wrong = field(default_factory=dict)

    def __call__(self, answer: Any) -> Verdict:
        return self.judge(_given_copies(answer))


@dataclass(frozen=True)
class Says:
    """Examines a value, such as a number of tasks.

    Args:
        expected: the right one, or a function that makes it, which is called once.
        tested: what is said when it is right.
        wrong: wrong values by the mistake that they make, or functions that make such values.
    """

    expected: Any
    tested: str
    wrong: Wrong = field(default_factory=dict, kw_only=True)

    @cached_property
    def _due(self) -> Any:
        return self.expected() if callable(self.expected) else self.expected

    def __call__(self, answer: Any) -> Verdict:
        if answer is None or answer is ...:
            return unwritten("There is no answer yet: put one in place of the `...`.")
        expected = self._due
        if is_answer(answer, expected):
            return right(self.tested)
        for mistake, values in self.wrong.items():
            if any(is_answer(answer, value() if callable(value) else value) for value in several(values)):
                return mistaken(mistake)
        if isinstance(expected, dict) and isinstance(answer, dict):
            return wrong(differing_parts(answer, expected))
        if _is_number(expected) and not _is_number(answer):
            return wrong(NUMBER_WANTED.format("The answer", repr(answer)))
        kind = type(expected).__name__
        if type(answer) is not type(expected) and not isinstance(expected, int | float):
            return wrong(f"The answer has to be a {kind}, but is a {type(answer).__name__}: {answer!r}.")
        if isinstance(answer, int | float) and isinstance(expected, int | float):
            return wrong(f"{answer!r} is too {'small' if answer < expected else 'large'}.")
        return wrong(f"{answer!r} is not right.")


def topology_of(answer: Any) -> Topology:
    """Return the topology that a learner's function makes.

    Raises:
        TopologyError: it makes none, or one that is not valid.
    """
    if isinstance(answer, Topology):
        return answer
    if not callable(answer):
        raise StreamsKitError(f"it has to be a function that takes a StreamsBuilder, but is {answer!r}.")
    if inspect.iscoroutinefunction(answer) or inspect.isgeneratorfunction(answer):
        raise StreamsKitError("it has to be an ordinary function: write def in place of async def, and no yield in it.")
    if inspect.isfunction(answer) and not _takes_a_builder(answer):
        name, taken = answer.__name__, inspect.signature(answer)
        raise StreamsKitError(f"it has to take one argument, the StreamsBuilder, and not several: {name}{taken}.")
    if not inspect.signature(answer).parameters:
        return _is_topology(answer(), getattr(answer, "__name__", "your function"))
    builder = StreamsBuilder()
    made = answer(builder)
    return made if isinstance(made, Topology) else builder.build()


def _takes_a_builder(answer: Callable[..., Any]) -> bool:
    """Say whether a function can be called with a builder, or with nothing."""
    needed = [each for each in inspect.signature(answer).parameters.values() if each.default is each.empty]
    return sum(each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in needed) < 2


def _is_topology(made: Any, name: str) -> Topology:
    if not isinstance(made, Topology):
        raise StreamsKitError(f"{name}() has to return its Topology; it returned {made!r}.")
    return made


def _is_number(value: Any) -> bool:
    """Say whether a value is a number of Python's or NumPy's, and no truth value."""
    return isinstance(value, Number) and not isinstance(value, bool)


def is_answer(answer: Any, expected: Any) -> bool:
    """Say whether an answer is the expected one; numbers with fractions may differ after the sixth digit.

    Numbers and arrays of numpy, and the columns of pandas, are as good as those of Python.
    """
    answer = getattr(answer, "tolist", lambda: answer)()
    if isinstance(expected, float) and isinstance(answer, int | float):
        return math.isclose(answer, expected, rel_tol=1e-6, abs_tol=1e-9)
    if isinstance(expected, list | tuple) and isinstance(answer, list | tuple):
        return len(answer) == len(expected) and all(map(is_answer, answer, expected))
    if isinstance(expected, dict) and isinstance(answer, dict):
        return answer.keys() == expected.keys() and all(is_answer(answer[name], expected[name]) for name in expected)
    return isinstance(answer, bool) == isinstance(expected, bool) and _is_equal(answer, expected)


def _is_equal(answer: Any, expected: Any) -> bool:
    try:
        return bool(answer == expected)
    except ValueError:  # a table of pandas compares cell by cell
        return False


def differing_parts(answer: dict[Any, Any], expected: dict[Any, Any]) -> str:
    """Say which entries are wrong, without giving the right ones away."""
    bad = [name for name in expected if name in answer and not is_answer(answer[name], expected[name])]
    for name in bad:
        if _is_number(expected[name]) and isinstance(answer[name], str):
            return NUMBER_WANTED.format(name, repr(answer[name]))
        if isinstance(expected[name], list) and not isinstance(answer[name], list | tuple):
            return f"{name!r} has to be a list, but is {answer[name]!r}."
    missing = [str(name) for name in expected if name not in answer]
    extra = [str(name) for name in answer if name not in expected]
    parts = (("wrong", [str(name) for name in bad]), ("missing", missing), ("not asked for", extra))
    return "; ".join(f"{', '.join(names[:6])}: {what}" for what, names in parts if names) + "."


def copied(argument: Any) -> Any:
    """Return what to call a learner's function with: a list, dict or set of its own, which it may change."""
    return deepcopy(argument) if isinstance(argument, list | dict | set) else argument


def _given_copies(answer: Any) -> Any:
    """Return a function that calls the learner's with copies; a class, or what is no function, as it is."""
    if not callable(answer) or isinstance(answer, type):
        return answer

    @wraps(answer)
    def called(*arguments: Any) -> Any:
        return answer(*map(copied, arguments))

    return called


def _ended(answer: Any, error: BaseException) -> Verdict:
    """Return the verdict on an answer whose check ended with an error, at which of the learner's lines if at any."""
    if not callable(answer) and isinstance(error, TypeError) and "not callable" in str(error):
        return replace(wrong(f"It has to be a function, but is {answer!r}."), cause=error)
    line = _users_line(error)
    says = f"It ended with an error{f', at {line}' if line else ''}: {type(error).__name__}: {error}"
    return replace(wrong(says.removesuffix(": ")), cause=error)


def endless(seconds: float, interruption: BaseException, mission: str = "") -> Verdict:
    """Return the verdict on an answer that was interrupted, as it had not come to an end after so many seconds.

    Args:
        seconds: after how many.
        interruption: where it was.
        mission: the name of the live mission that it was to carry out, if it was one.
    """
    line, limit = _users_line(interruption), f"It did not come to an end within {spell(int(seconds * 1000))}"
    if mission:
        return wrong(
            f"{limit}, and was stopped{f' at {line}' if line else ''}. It was waiting for something that did not come, "
            'or a loop never ends. Give each wait an end, such as streams.await_processed("60 seconds"), and try your '
            f"function at scene({mission!r}): which record, store or instance is not there?"
        )
    if line:
        return wrong(f"{limit}, and was stopped at {line}. Does a loop ever end there, and in what it calls?")
    return wrong(
        f"{limit}, and was stopped. None of your lines was under way in this notebook at that moment, so look at the "
        "functions that Spark calls for each record: does a loop in one of them ever end?"
    )


def _users_line(error: BaseException) -> Line | None:
    """Return the last of the learner's lines that was under way when an error was raised."""
    lines = (Line(frame.filename, frame.lineno or 0) for frame in extract_tb(error.__traceback__))
    return next((line for line in reversed(list(lines)) if line.is_users), None)


def _named(error: BaseException | None, errors: Mapping[str, str]) -> str:
    """Return the mistake that an error reveals by a part of its message."""
    return next((mistake for part, mistake in errors.items() if error and part in str(error)), "")


def _unread(topology: Topology, recording: Recording) -> str:
    """Say which topic of the recording the topology does not read; nothing if it reads them all."""
    topics = sorted({record.topic for record in recording.records})
    missing = [topic for topic in topics if not any(source.reads_topic(topic) for source in topology.sources)]
    if not missing:
        return ""
    read = sorted({topic for source in topology.sources for topic in source.topic_names})
    return f"The task's topic {missing[0]!r} is not read. The topology reads: {', '.join(read) or 'none'}."


def _wrongness(outcome: Outcome) -> str:
    """Say in a sentence how much is wrong."""
    if outcome.trial.error and not outcome.recording.fails:
        return f"After record {outcome.trial.stopped_at + 1} the application stopped: {outcome.trial.error}"
    if outcome.differing:
        numbers = {moment.number for moment in outcome.differing}
        return (
            f"After {len(numbers)} of {len(outcome.recording.steps)} steps the results differ from the expected ones, "
            f"for the first time after step {min(numbers) + 1}."
        )
    if outcome.recording.fails:
        return "All results are right, but the application should have stopped at the last record."
    stores = " and ".join(store.name for store in outcome.stores if store.differs)
    right = "All records are right, and the" if outcome.recording.outputs else "The"
    return f"{right} store {stores} has different rows than expected."
