"""Typical mistakes, each recognised by what came out: the name of the mistake, and a sentence that sets it right."""

import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import TypeVar

from streamskit.api.windows import Windowed
from streamskit.course.labs.difference import Moment, Outcome, same, same_row
from streamskit.course.labs.recording import OutcomeRow, Piped
from streamskit.serdes.serde import SerdeError

Found = TypeVar("Found")
Sign = Callable[[Outcome], bool]


@dataclass(frozen=True)
class Misconception:
    """A mistake: its name in a few words, and what to know instead; without that an exercise has words for it."""

    name: str
    says: str = ""


def recognise(found: Found, *signs: Mapping[str, Callable[[Found], bool]]) -> Misconception | None:
    """Return the first mistake whose sign is seen in what was found: an outcome, or the answers of a function."""
    mistakes = (mistake for some in signs for mistake, sign in some.items() if _is_seen(sign, found))
    return next(map(Misconception, mistakes), None)


def _is_seen(sign: Callable[[Found], bool], found: Found) -> bool:
    """Say whether a sign is seen; one that looks for fields or an order that a learner's results lack is not."""
    try:
        return sign(found)
    except (AttributeError, LookupError, TypeError, ValueError):  # results may be of any type, the right ones are not
        return False


# ---- signs: what an outcome looks like -------------------------------------------------------------------------------


def nothing_came(outcome: Outcome) -> bool:
    """No record came in the topics in which some were expected."""
    return bool(outcome.expected) and not outcome.actual


def in_another_topic(outcome: Outcome) -> bool:
    """The records came, in a topic in which none were expected."""
    others = [rows for topic, rows in outcome.trial.outputs.items() if topic not in outcome.recording.outputs]
    return nothing_came(outcome) and any(others)


def late_records_counted(outcome: Outcome) -> bool:
    """The first thing that goes wrong is a result of a record that has to be dropped because it is late."""
    first = outcome.first
    return first is not None and _is_late(outcome, first) and bool(first.extra and not first.missing)


def records_in_time_dropped(outcome: Outcome) -> bool:
    """The first thing that goes wrong is a record, out of order and in good time, that is dropped."""
    first = outcome.first
    if first is None or first.extra or not _is_out_of_order(outcome, first):
        return False
    return outcome.trial.dropped.get(first.number, 0) > outcome.recording.dropped.get(first.number, 0)


def without_key_counted(outcome: Outcome) -> bool:
    """A record without a key made a result where none is due."""
    return any(moment.actual and not moment.expected for moment in outcome.at(lambda record: record.key is None))


def tombstones_missed(outcome: Outcome) -> bool:
    """Only where a value is null is something missing or superfluous."""
    return _only_at(outcome, lambda record: record.value is None)


def windows_of_other_size(outcome: Outcome) -> bool:
    """The windows that came are longer or shorter than those expected."""
    return window_sizes(outcome.actual) != window_sizes(outcome.expected) and bool(
        window_sizes(outcome.actual) and window_sizes(outcome.expected)
    )


def windows_of_other_steps(outcome: Outcome) -> bool:
    """The windows are of the right size, and some begin at other times."""
    came, due = _starts(outcome.actual), _starts(outcome.expected)
    return bool(due) and not windows_of_other_size(outcome) and bool(came - due)


def not_windowed(outcome: Outcome) -> bool:
    """The results have no window where they should."""
    return bool(outcome.actual) and bool(window_sizes(outcome.expected)) and not window_sizes(outcome.actual)


def wrong_keys(outcome: Outcome) -> bool:
    """The values are right and their keys are not."""
    return _changed(outcome, lambda row: (row.value, row.timestamp), lambda row: row.key)


def wrong_timestamps(outcome: Outcome) -> bool:
    """Keys and values are right and their timestamps are not."""
    return _changed(outcome, lambda row: (row.key, row.value), lambda row: row.timestamp)


def never_deleted(outcome: Outcome) -> bool:
    """No record with a null value came, where some should."""
    deleted = [any(row.value is None for row in rows) for rows in (outcome.expected, outcome.actual)]
    return bool(outcome.actual) and deleted == [True, False]


def wrong_types(outcome: Outcome) -> bool:
    """The values are of another type, such as a text for a number."""
    came = {type(row.value) for row in outcome.actual if row.value is not None}
    due = {type(row.value) for row in outcome.expected if row.value is not None}
    return bool(came and due) and not came & due


def only_last_results(outcome: Outcome) -> bool:
    """The last result of each key is there, and those before it are not."""
    return 0 < len(outcome.actual) < len(outcome.expected) and _same_last(outcome)


def not_only_last_results(outcome: Outcome) -> bool:
    """The expected results are there among others that are updates on the way to them."""
    due, came = _spelled_out(outcome.expected), _spelled_out(outcome.actual)
    return len(outcome.actual) > len(outcome.expected) and not due - came


def updates_on_the_way(outcome: Outcome) -> bool:
    """The expected results are there among others of the same keys."""
    return not_only_last_results(outcome) and _plain_keys(outcome.actual) <= _plain_keys(outcome.expected)


def doubled(outcome: Outcome) -> bool:
    """Every record came twice."""
    due, came = _spelled_out(outcome.expected), _spelled_out(outcome.actual)
    return bool(due) and came == Counter({row: 2 * count for row, count in due.items()})


def unmatched_missing(outcome: Outcome) -> bool:
    """Everything that came is right, and records are missing."""
    due, came = _spelled_out(outcome.expected), _spelled_out(outcome.actual)
    return bool(came) and not came - due and bool(due - came)


def store_missing(outcome: Outcome) -> bool:
    """A store that the task names is not in the topology."""
    return any(name not in outcome.trial.topology.stores for name in outcome.recording.stores)


def stopped(outcome: Outcome) -> bool:
    """The application stopped where it should have gone on."""
    return outcome.trial.error is not None and not outcome.recording.fails


def went_on(outcome: Outcome) -> bool:
    """The application went on where it should have stopped."""
    return outcome.trial.error is None and outcome.recording.fails


def results_after(topic: str) -> Sign:
    """Return a sign: records of a topic that should make no results make some."""
    return lambda outcome: any(moment.actual and not moment.expected for moment in _after(outcome, topic))


def silent_after(topic: str) -> Sign:
    """Return a sign: a topic's records make no results where some are due, and others do make some."""

    def sign(outcome: Outcome) -> bool:
        moments = _after(outcome, topic)
        return bool(outcome.actual) and any(m.expected for m in moments) and not any(m.actual for m in moments)

    return sign


def never_met(outcome: Outcome) -> bool:
    """The topic that the task names is written to, and nothing has ever come there."""
    ends_there = all(topic in outcome.trial.outputs for topic in outcome.recording.outputs)
    return ends_there and nothing_came(outcome) and not in_another_topic(outcome) and not outcome.trial.error


def too_early(outcome: Outcome) -> bool:
    """A result comes after an earlier step than it should."""
    return any(came < due for came, due in _steps(outcome))


def too_late(outcome: Outcome) -> bool:
    """The results are right, and one of them comes after a later step than it should."""
    return not _spelled_out(outcome.actual) - _spelled_out(outcome.expected) and any(
        came > due for came, due in _steps(outcome)
    )


def stopped_at(where: Callable[[Piped], bool]) -> Sign:
    """Return a sign: the application stopped at such a record."""

    def sign(outcome: Outcome) -> bool:
        step = outcome.recording.steps[outcome.trial.stopped_at] if outcome.trial.error else None
        return isinstance(step, Piped) and where(step)

    return sign


def unasked_in(topic: str) -> Sign:
    """Return a sign: a record came in this topic after a step at which none is due there."""
    return lambda outcome: any(m.actual and not m.expected for m in outcome.moments if m.topic == topic)


def others_in(topic: str) -> Sign:
    """Return a sign: records came in this topic when they should, but with other contents."""

    def sign(outcome: Outcome) -> bool:
        moments = [moment for moment in outcome.moments if moment.topic == topic]
        counts_are_right = all(len(moment.expected) == len(moment.actual) for moment in moments)
        return counts_are_right and any(moment.differs for moment in moments)

    return sign


def extra_at(where: Callable[[Piped], bool]) -> Sign:
    """Return a sign: such a record produced a result that is not due."""
    return lambda outcome: any(moment.extra for moment in outcome.at(where))


def extra_row(where: Callable[[OutcomeRow], bool]) -> Sign:
    """Return a sign: such a row came, and is not due."""
    return lambda outcome: any(where(row) for moment in outcome.moments for row in moment.extra)


def unasked(outcome: Outcome) -> bool:
    """Something came after a step after which nothing is due."""
    return any(moment.actual and not moment.expected for moment in outcome.moments)


def one_at_most(outcome: Outcome) -> bool:
    """No step makes more than one result, where some should make several."""
    several = any(len(moment.expected) > 1 for moment in outcome.moments)
    return several and bool(outcome.actual) and all(len(moment.actual) <= 1 for moment in outcome.moments)


def keys_of_records(*topics: str) -> Sign:
    """Return a sign: the results have the keys of records of these topics, or of any, where none should."""

    def sign(outcome: Outcome) -> bool:
        keys = {record.key for record in outcome.recording.records if not topics or record.topic in topics}
        due, actual = ({row.key for row in rows} for rows in (outcome.expected, outcome.actual))
        return bool(actual - {None}) and actual <= keys | {None} and not keys & due - {None}

    return sign


def other_keys(outcome: Outcome) -> bool:
    """None of the keys that came, windows aside, is one of those that are due, and neither are the values."""
    came, due = (_plain_keys(rows) - {None} for rows in (outcome.actual, outcome.expected))
    return bool(came and due) and not came & due and not wrong_keys(outcome)


def fields_of_a_dict(outcome: Outcome) -> bool:
    """A function of plain Python asked a value with fields, which is a dict there, for one as an attribute."""
    return "'dict' object has no attribute" in str(outcome.trial.error)


def another_serde(outcome: Outcome) -> bool:
    """A record could not be written into its topic by the serde with which the topology reads it."""
    return isinstance(outcome.trial.error, SerdeError)


# ---- what the signs are made of --------------------------------------------------------------------------------------


def _is_late(outcome: Outcome, moment: Moment) -> bool:
    """Say whether a record is dropped that has a key and is older than one before it."""
    record = outcome.piped(moment)
    is_dropped = moment.number in outcome.recording.dropped
    return is_dropped and record is not None and record.key is not None and _is_out_of_order(outcome, moment)


def _is_out_of_order(outcome: Outcome, moment: Moment) -> bool:
    """Say whether a record is older than one before it."""
    record, before = outcome.piped(moment), outcome.recording.steps[: moment.number]
    now = max((step.timestamp for step in before if isinstance(step, Piped)), default=-1)
    return record is not None and record.timestamp < now


def _after(outcome: Outcome, topic: str) -> list[Moment]:
    return outcome.at(lambda record: record.topic == topic)


def _only_at(outcome: Outcome, where: Callable[[Piped], bool]) -> bool:
    moments = outcome.differing
    return bool(moments) and all(isinstance(each.step, Piped) and where(each.step) for each in moments)


def _windows(rows: Iterable[OutcomeRow]) -> list[Windowed]:
    return [row.key for row in rows if isinstance(row.key, Windowed)]


def window_sizes(rows: Iterable[OutcomeRow]) -> set[int]:
    """Return the sizes of the windows in some rows, in milliseconds."""
    return {window.end - window.start for window in _windows(rows)}


def _starts(rows: list[OutcomeRow]) -> set[int]:
    return {window.start for window in _windows(rows)}


def _changed(outcome: Outcome, kept: Callable[[OutcomeRow], object], other: Callable[[OutcomeRow], object]) -> bool:
    """Say whether one part of the rows is as expected everywhere and another is not."""
    if len(outcome.actual) != len(outcome.expected) or not outcome.actual:
        return False
    pairs = list(zip(outcome.expected, outcome.actual, strict=True))
    return all(_alike(kept(due), kept(came)) for due, came in pairs) and any(
        not _alike(other(due), other(came)) for due, came in pairs
    )


def _steps(outcome: Outcome) -> list[tuple[int, int]]:
    """Return after which step each result came first, and after which it is due; only results that are due and came."""
    came, due = ({_spelled(row): row.step for row in reversed(rows)} for rows in (outcome.actual, outcome.expected))
    return [(came[row], due[row]) for row in came.keys() & due.keys()]


def _spelled_out(rows: list[OutcomeRow]) -> Counter[str]:
    return Counter(map(_spelled, rows))


def _alike(one: object, other: object) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple) and not isinstance(one, Windowed):
        return all(map(_alike, one, other))
    return same(one, other)


def _same_last(outcome: Outcome) -> bool:
    """Say whether the last results of the keys of each topic are as expected."""
    pairs = [(rows, outcome.trial.outputs.get(topic, ())) for topic, rows in outcome.recording.outputs.items()]
    lasts = [[{_name(row): row for row in rows} for rows in pair] for pair in pairs]
    return all(due.keys() == came.keys() and all(same_row(due[key], came[key]) for key in due) for due, came in lasts)


def _plain_keys(rows: Iterable[OutcomeRow]) -> set[object]:
    """Return the keys of some rows without their windows."""
    return {row.key.key if isinstance(row.key, Windowed) else row.key for row in rows}


def _name(row: OutcomeRow) -> str:
    return repr(row.key)


def _spelled(row: OutcomeRow) -> str:
    return repr((row.key, row.value))


WORDS: dict[str, str] = {
    mistake: " ".join(says.split())
    for mistake, says in tomllib.loads((files("streamskit.course.labs") / "general.toml").read_text()).items()
}
"""The words for mistakes that can be made in any exercise."""

GENERAL: dict[str, Sign] = {
    "another serde": another_serde,
    "a field of a dict": fields_of_a_dict,
    "it stopped": stopped,
    "it went on": went_on,
    "the store has another name": store_missing,
    "another topic": in_another_topic,
    "nothing comes out": nothing_came,
    "results of other keys": other_keys,
    "results without their windows": not_windowed,
    "windows of another size": windows_of_other_size,
    "windows that begin at other times": windows_of_other_steps,
    "late record counted": late_records_counted,
    "record in time dropped": records_in_time_dropped,
    "record without a key counted": without_key_counted,
    "tombstone missed": tombstones_missed,
    "another type": wrong_types,
    "every record twice": doubled,
    "wrong key": wrong_keys,
    "wrong time": wrong_timestamps,
    "updates that should have been kept back": updates_on_the_way,
    "only final results": only_last_results,
    "some results are missing": unmatched_missing,
}
"""What the general mistakes in topologies look like, the most specific ones first."""
