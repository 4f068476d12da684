"""Typical mistakes, each recognised by what came out: the name of the mistake, and a sentence that sets it right."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from streamskit.api.windows import Windowed
from streamskit.course.labs.difference import Moment, Outcome, same, same_row
from streamskit.course.labs.recording import Piped, Row
from streamskit.serdes.serde import SerdeError

Found = TypeVar("Found", contravariant=True)
Sign = Callable[[Outcome], bool]


@dataclass(frozen=True)
class Misconception(Generic[Found]):
    """A mistake: its name in a few words, what to know instead, and by what it is recognised in what was found.

    What is found of a topology is an `Outcome`, of a function all its answers to questions.
    """

    name: str
    says: str
    when: Callable[[Found], bool] = lambda _: True


def first_that_fits(mistakes: Iterable[Misconception[Found]], found: Found) -> Misconception[Found] | None:
    """Return the first mistake that is recognised in what was found."""
    return next((mistake for mistake in mistakes if mistake.when(found)), None)


def recognise(outcome: Outcome, own: tuple[Misconception[Outcome], ...] = ()) -> Misconception[Outcome] | None:
    """Return the first mistake that fits an outcome: the task's own ones come first, then those of every task."""
    return first_that_fits((*own, *GENERAL), outcome)


# ---- signs: what an outcome looks like -------------------------------------------------------------------------------


def nothing_came(outcome: Outcome) -> bool:
    """No record came in the topics in which some were expected."""
    return bool(outcome.expected) and not outcome.actual


def in_another_topic(outcome: Outcome) -> bool:
    """The records came, in a topic in which none were expected."""
    others = [rows for topic, rows in outcome.trial.outputs.items() if topic not in outcome.recording.outputs]
    return nothing_came(outcome) and any(others)


def late_records_counted(outcome: Outcome) -> bool:
    """The first thing that goes wrong is a result of a record that has to be dropped for its age."""
    first = outcome.first
    return first is not None and _is_late(outcome, first) and bool(first.extra and not first.missing)


def records_in_time_dropped(outcome: Outcome) -> bool:
    """The first thing that goes wrong is a record, out of order and in good time, that is dropped."""
    first = outcome.first
    if first is None or first.extra:
        return False
    return outcome.trial.dropped.get(first.number, 0) > outcome.recording.dropped.get(first.number, 0)


def without_key_counted(outcome: Outcome) -> bool:
    """A record without a key made a result that it should not."""
    return any(moment.extra for moment in outcome.at(lambda record: record.key is None))


def tombstones_missed(outcome: Outcome) -> bool:
    """Only where a value is null is something missing, or too much."""
    return _only_at(outcome, lambda record: record.value is None)


def windows_of_other_size(outcome: Outcome) -> bool:
    """The windows that came are longer or shorter than those expected."""
    return _sizes(outcome.actual) != _sizes(outcome.expected) and bool(
        _sizes(outcome.actual) and _sizes(outcome.expected)
    )


def windows_of_other_steps(outcome: Outcome) -> bool:
    """The windows are of the right size, and some begin at other times."""
    came, due = _starts(outcome.actual), _starts(outcome.expected)
    return bool(due) and not windows_of_other_size(outcome) and bool(came - due)


def not_windowed(outcome: Outcome) -> bool:
    """The results have no window where they should."""
    return bool(outcome.actual) and bool(_sizes(outcome.expected)) and not _sizes(outcome.actual)


def wrong_keys(outcome: Outcome) -> bool:
    """The values are right and their keys are not."""
    return _changed(outcome, lambda row: (row.value, row.timestamp), lambda row: row.key)


def wrong_timestamps(outcome: Outcome) -> bool:
    """Keys and values are right and their timestamps are not."""
    return _changed(outcome, lambda row: (row.key, row.value), lambda row: row.timestamp)


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
    due = Counter(_spelled(row) for row in outcome.expected)
    came = Counter(_spelled(row) for row in outcome.actual)
    return len(outcome.actual) > len(outcome.expected) and not due - came


def doubled(outcome: Outcome) -> bool:
    """Every record came twice."""
    due = Counter(_spelled(row) for row in outcome.expected)
    came = Counter(_spelled(row) for row in outcome.actual)
    return bool(due) and came == Counter({row: 2 * count for row, count in due.items()})


def unmatched_missing(outcome: Outcome) -> bool:
    """Everything that came is right, and records are missing."""
    due = Counter(_spelled(row) for row in outcome.expected)
    came = Counter(_spelled(row) for row in outcome.actual)
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
    """Return a sign: there are results after a topic's records after which none are due."""
    return lambda outcome: any(moment.actual and not moment.expected for moment in _after(outcome, topic))


def silent_after(topic: str) -> Sign:
    """Return a sign: a topic's records make no results where some are due, and others do make some."""

    def sign(outcome: Outcome) -> bool:
        moments = _after(outcome, topic)
        return bool(outcome.actual) and any(m.expected for m in moments) and not any(m.actual for m in moments)

    return sign


def another_serde(outcome: Outcome) -> bool:
    """A record could not be written into its topic by the serde with which the topology reads it."""
    return isinstance(outcome.trial.error, SerdeError)


# ---- what the signs are made of --------------------------------------------------------------------------------------


def _is_late(outcome: Outcome, moment: Moment) -> bool:
    """Say whether a record is dropped that has a key and is older than one before it."""
    record, before = outcome.piped(moment), outcome.recording.steps[: moment.number]
    now = max((step.timestamp for step in before if isinstance(step, Piped)), default=-1)
    is_dropped = moment.number in outcome.recording.dropped
    return is_dropped and record is not None and record.key is not None and record.timestamp < now


def _after(outcome: Outcome, topic: str) -> list[Moment]:
    return outcome.at(lambda record: record.topic == topic)


def _only_at(outcome: Outcome, where: Callable[[Piped], bool]) -> bool:
    moments = outcome.differing
    return bool(moments) and all(isinstance(each.step, Piped) and where(each.step) for each in moments)


def _windows(rows: list[Row]) -> list[Windowed]:
    return [row.key for row in rows if isinstance(row.key, Windowed)]


def _sizes(rows: list[Row]) -> set[int]:
    return {window.end - window.start for window in _windows(rows)}


def _starts(rows: list[Row]) -> set[int]:
    return {window.start for window in _windows(rows)}


def _changed(outcome: Outcome, kept: Callable[[Row], object], other: Callable[[Row], object]) -> bool:
    """Say whether one part of the rows is as expected everywhere and another is not."""
    if len(outcome.actual) != len(outcome.expected) or not outcome.actual:
        return False
    pairs = list(zip(outcome.expected, outcome.actual, strict=True))
    return all(_alike(kept(due), kept(came)) for due, came in pairs) and any(
        not _alike(other(due), other(came)) for due, came in pairs
    )


def _alike(one: object, other: object) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple) and not isinstance(one, Windowed):
        return all(map(_alike, one, other))
    return same(one, other)


def _same_last(outcome: Outcome) -> bool:
    due = {_name(row): row for row in outcome.expected}
    came = {_name(row): row for row in outcome.actual}
    return due.keys() == came.keys() and all(same_row(due[name], came[name]) for name in due)


def _name(row: Row) -> str:
    return repr(row.key)


def _spelled(row: Row) -> str:
    return repr((row.key, row.value))


GENERAL: tuple[Misconception[Outcome], ...] = (
    Misconception(
        "another serde",
        "A topic holds other values than your topology reads from it. stream, table and global_table take a topic's "
        "format as value=; without it, values are text.",
        another_serde,
    ),
    Misconception(
        "it stopped",
        "The application stopped at a record that it should have coped with; what it said is below.",
        stopped,
    ),
    Misconception(
        "it went on",
        "The application should have stopped at the last record, and went on.",
        went_on,
    ),
    Misconception(
        "the store has another name",
        "The task names a state store, and the topology has none of that name. A store gets its name where the table "
        'is made: count("name"), reduce(..., "name"), or materialized="name".',
        store_missing,
    ),
    Misconception(
        "another topic",
        "The records are there, in another topic than the task names. Look at the name in to(...).",
        in_another_topic,
    ),
    Misconception(
        "nothing comes out",
        "No record came in the topic that the task names. Follow one record by hand from its source: which step stops "
        "it, and is there a to(...) at the end?",
        nothing_came,
    ),
    Misconception(
        "results without their windows",
        "The results should be one for each key and window, and yours are one for each key. windowed_by(...) stands "
        "between group_by_key() and the aggregation.",
        not_windowed,
    ),
    Misconception(
        "windows of another size",
        "The windows have another length than the task asks for. A duration without a unit is in milliseconds.",
        windows_of_other_size,
    ),
    Misconception(
        "windows that begin at other times",
        "The windows have the right size and begin at other times. A tumbling window begins where the one before ends; "
        "a hopping one begins every advance_by; a sliding one begins and ends at records.",
        windows_of_other_steps,
    ),
    Misconception(
        "late record counted",
        "A record came after its window had closed, and counted all the same. A window closes when stream time reaches "
        "its end plus the grace period; what comes later is dropped. Is your grace period longer than the task's?",
        late_records_counted,
    ),
    Misconception(
        "record in time dropped",
        "A record came out of order, but before its window had closed, and was dropped. Is your grace period shorter "
        "than the task's?",
        records_in_time_dropped,
    ),
    Misconception(
        "record without a key counted",
        "A record without a key took part. Records without a key are dropped where a step works by key.",
        without_key_counted,
    ),
    Misconception(
        "tombstone missed",
        "Only the records with a null value went wrong. For a table a null value deletes the row of its key; for a "
        "stream it is one more record, which functions of yours get to see.",
        tombstones_missed,
    ),
    Misconception(
        "another type",
        "The values have another type than expected, such as a text where a number should be. Look at the serdes and "
        "at what your function makes.",
        wrong_types,
    ),
    Misconception(
        "every record twice",
        "Every record came twice: two paths of the topology lead to the same topic.",
        doubled,
    ),
    Misconception(
        "wrong key",
        "The values are right, and stand under other keys. Which step decides about the key, and does it come before "
        "the one that works by key?",
        wrong_keys,
    ),
    Misconception(
        "wrong time",
        "Keys and values are right, and the timestamps are not. A result has the largest timestamp of the records that "
        "made it.",
        wrong_timestamps,
    ),
    Misconception(
        "updates that should have been kept back",
        "The results are there, and with them updates on the way to them. The task asks for final results only.",
        not_only_last_results,
    ),
    Misconception(
        "only final results",
        "Only the last result of each key came. A table sends on every update, unless something holds it back.",
        only_last_results,
    ),
    Misconception(
        "some results are missing",
        "What came is right, and some records are missing: those that a filter takes out, or that found no partner in "
        "a join, perhaps.",
        unmatched_missing,
    ),
)
