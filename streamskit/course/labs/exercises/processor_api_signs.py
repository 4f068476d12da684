"""By what typical mistakes with processors are recognised in what came out."""

import re
from collections import Counter
from collections.abc import Callable

from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.misconceptions import Sign
from streamskit.course.labs.recording import Advance, Piped, Row

Where = Callable[[Piped], bool]


def is_null(record: Piped) -> bool:
    """Whether a record has a key and no value."""
    return record.key is not None and record.value is None


def has_no_key(record: Piped) -> bool:
    """Whether a record has no key."""
    return record.key is None


# ---- the application stopped -----------------------------------------------------------------------------------------


def said(text: str) -> Sign:
    """Return the sign that the application stopped with an error that says this."""
    return lambda outcome: text in str(outcome.trial.error or "")


def stopped_at(where: Where) -> Sign:
    """Return the sign that the application stopped at a record for which `where` is true."""

    def stopped_there(outcome: Outcome) -> bool:
        step = outcome.recording.steps[outcome.trial.stopped_at] if outcome.trial.error else None
        return isinstance(step, Piped) and where(step)

    return stopped_there


# ---- state -----------------------------------------------------------------------------------------------------------


def kept_in_a_field(outcome: Outcome) -> bool:
    """All records are right, and the store is empty where it should have rows."""
    return not outcome.differing and _is_store_empty(outcome)


def not_forwarded(outcome: Outcome) -> bool:
    """Nothing comes out, though the store is as it should be."""
    filled = bool(outcome.stores) and all(store.expected and not store.differs for store in outcome.stores)
    return filled and not outcome.actual and not outcome.trial.error


def never_put(outcome: Outcome) -> bool:
    """Wrong records came, and the store is empty: each record is taken for the first of its key."""
    return _is_store_empty(outcome) and bool(outcome.actual) and bool(outcome.differing)


def one_count_for_all_keys(outcome: Outcome) -> bool:
    """The first count of a key goes on from another key's."""
    first: dict[object, Row] = {}
    for row in outcome.actual:
        first.setdefault(row.key, row)
    return any(_number(row) > 1 for row in first.values())


def row_not_deleted(outcome: Outcome) -> bool:
    """A count goes on where it should begin anew."""
    last = outcome.moments[-1]
    return bool(last.actual) and _number(last.actual[0]) > _number(last.expected[0])


def nulls_counted(outcome: Outcome) -> bool:
    """A null value counts like any other."""
    return any(_number(row) > 0 for moment in outcome.at(is_null) for row in moment.actual)


def nulls_passed_over(outcome: Outcome) -> bool:
    """Nothing comes of null values."""
    moments = outcome.at(is_null)
    return bool(outcome.actual) and all(moment.expected and not moment.actual for moment in moments)


def without_key_forwarded(outcome: Outcome) -> bool:
    """Something came of a record without a key that should be left out."""
    return any(moment.extra for moment in outcome.at(has_no_key))


# ---- children --------------------------------------------------------------------------------------------------------


def to_all_children(outcome: Outcome) -> bool:
    """Every record came in every topic."""
    topics = len(outcome.recording.outputs)
    return len(outcome.actual) == topics * len(outcome.recording.records)


def to_another_child(outcome: Outcome) -> bool:
    """The right records came, in other topics."""
    due, came = _spelled(outcome.expected), _spelled(outcome.actual)
    return bool(outcome.differing) and due == came


def not_negated(outcome: Outcome) -> bool:
    """A negative number came where its amount should."""
    return any(_number(row) < 0 for moment in outcome.moments for row in moment.extra)


def case_forgotten(value: int) -> Sign:
    """Return the sign that nothing comes of one value, and all else is right."""
    return lambda outcome: (
        bool(outcome.differing)
        and all(
            isinstance(moment.step, Piped) and moment.step.value == value and not moment.actual
            for moment in outcome.differing
        )
    )


# ---- the two clocks --------------------------------------------------------------------------------------------------


def called_by_wall_clock(outcome: Outcome) -> bool:
    """Something came when the wall clock moved, and should not have."""
    return any(moment.extra for moment in outcome.moments if isinstance(moment.step, Advance))


def called_by_records(outcome: Outcome) -> bool:
    """Something came of records, and should not have."""
    return any(moment.extra for moment in outcome.moments if isinstance(moment.step, Piped))


def called_more_and_more(outcome: Outcome) -> bool:
    """Reports come where none is due, and several at once."""
    undue = any(moment.actual and not moment.expected for moment in outcome.moments)
    return undue and any(len(moment.actual) > 1 for moment in outcome.moments)


def called_by_every_record(outcome: Outcome) -> bool:
    """Each record brought a report."""
    moments = outcome.at(lambda record: True)
    return len(outcome.expected) < len(moments) and all(len(moment.actual) == 1 for moment in moments)


def called_where_none_is_due(outcome: Outcome) -> bool:
    """A record brought a report, and should not have."""
    return any(moment.extra and not moment.expected for moment in outcome.at(lambda record: True))


def missed_calls_made_up_for(outcome: Outcome) -> bool:
    """After a gap there are several reports where one is due."""
    return any(0 < len(moment.expected) < len(moment.actual) for moment in outcome.moments)


def first_call_missing(outcome: Outcome) -> bool:
    """Only the first report is missing."""
    first = next((moment for moment in outcome.moments if moment.expected), None)
    return first is not None and [first] == outcome.differing and not first.actual


def last_call_missing(outcome: Outcome) -> bool:
    """Only the last report is missing."""
    last = next((moment for moment in reversed(outcome.moments) if moment.expected), None)
    return last is not None and [last] == outcome.differing and not last.actual


def called_on_and_on(outcome: Outcome) -> bool:
    """All is right, and calls go on after the last that is expected."""
    last = max((row.step for row in outcome.expected), default=-1)
    return bool(outcome.differing) and all(moment.number > last for moment in outcome.differing)


def counted_anew(outcome: Outcome) -> bool:
    """The reports come when they should, and count on from the report before."""
    pairs = _counts(outcome)
    return bool(pairs) and all(came < due for due, came in pairs[1:]) and sum(came for _, came in pairs) <= pairs[-1][0]


def counted_too_late(outcome: Outcome) -> bool:
    """Each report leaves out the record that it follows."""
    pairs = _counts(outcome)
    return bool(pairs) and all(came == due - 1 for due, came in pairs)


def wall_clock_for_stream_time(outcome: Outcome) -> bool:
    """A report tells its own time for the stream's."""
    return any(_stream_time(row) == row.timestamp for moment in outcome.moments for row in moment.extra)


def last_record_for_stream_time(outcome: Outcome) -> bool:
    """A report tells the time of the record that came last, which is an older one."""
    last = outcome.recording.records[-1].timestamp
    return any(_stream_time(row) == last for moment in outcome.moments for row in moment.extra)


# ---- many rows in one call -------------------------------------------------------------------------------------------


def in_another_order(outcome: Outcome) -> bool:
    """The right records came after each step, in another order."""
    return bool(outcome.differing) and not any(moment.missing or moment.extra for moment in outcome.differing)


def only_the_key_in_hand(outcome: Outcome) -> bool:
    """Each report tells of one key at most, where several are due."""
    most = max((len(moment.expected) for moment in outcome.moments), default=0)
    return bool(outcome.actual) and most > 1 and all(len(moment.actual) <= 1 for moment in outcome.moments)


def rows_told_again(outcome: Outcome) -> bool:
    """A report tells of keys that have had no record since the report before."""
    return any(_keys(moment.actual) > _keys(moment.expected) for moment in outcome.moments if moment.expected)


def zero_for_none(outcome: Outcome) -> bool:
    """A value is 0 where no record had that."""
    return any(row.value == 0 for moment in outcome.moments for row in moment.extra)


def last_for_highest(outcome: Outcome) -> bool:
    """A value is lower than expected."""
    return any(
        came.key == due.key and came.value < due.value
        for moment in outcome.moments
        for came in moment.extra
        for due in moment.missing
    )


# ---- older records ---------------------------------------------------------------------------------------------------


def older_record_kept(outcome: Outcome) -> bool:
    """A record older than what is known replaced it."""
    return any("ignored" in due and "->" in came for due, came in _texts(outcome))


def equally_old_ignored(outcome: Outcome) -> bool:
    """A record as old as what is known is ignored."""
    return any("ignored" in came and "->" in due and not due.startswith("new") for due, came in _texts(outcome))


def older_than_the_stream_ignored(outcome: Outcome) -> bool:
    """A record is ignored though nothing is known of its key."""
    return any("ignored" in came and due.startswith("new") for due, came in _texts(outcome))


def none_in_text(outcome: Outcome) -> bool:
    """Python's word for nothing is in a text."""
    return any("None" in came for _, came in _texts(outcome))


def always_new(outcome: Outcome) -> bool:
    """Each record is taken for the first of its key."""
    return bool(outcome.actual) and all(str(row.value).startswith("new->") for row in outcome.actual)


def other_time_kept(outcome: Outcome) -> bool:
    """The places are right, and their times are not."""
    pairs = _texts(outcome)
    return bool(pairs) and all(_untimed(due) == _untimed(came) for due, came in pairs)


# ---- what the signs are made of --------------------------------------------------------------------------------------


def _is_store_empty(outcome: Outcome) -> bool:
    return any(store.expected and not store.actual for store in outcome.stores) and not outcome.trial.error


def _number(row: Row) -> float:
    return row.value if isinstance(row.value, int | float) else 0


def _keys(rows: tuple[Row, ...]) -> set[object]:
    return {row.key for row in rows}


def _spelled(rows: tuple[Row, ...] | list[Row]) -> Counter[str]:
    return Counter(repr((row.key, row.value)) for row in rows)


def _counts(outcome: Outcome) -> list[tuple[int, int]]:
    """The numbers in the reports, as due and as they came; none if the reports came after other steps."""
    pairs = list(zip(outcome.expected, outcome.actual, strict=False))
    if len(outcome.actual) != len(outcome.expected) or any(due.step != came.step for due, came in pairs):
        return []
    numbers = [(_first_number(due), _first_number(came)) for due, came in pairs]
    return numbers if any(due != came for due, came in numbers) else []


def _first_number(row: Row) -> int:
    found = re.search(r"\d+", str(row.value))
    return int(found.group()) if found else -1


def _stream_time(row: Row) -> int | None:
    found = re.search(r"stream time (\d+)", str(row.value))
    return int(found.group(1)) if found else None


def _texts(outcome: Outcome) -> list[tuple[str, str]]:
    """The texts that differ, as due and as they came, where one came for one."""
    return [
        (str(moment.expected[0].value), str(moment.actual[0].value))
        for moment in outcome.differing
        if len(moment.expected) == len(moment.actual) == 1
    ]


def _untimed(text: str) -> str:
    return re.sub(r"@\d+", "", text)
