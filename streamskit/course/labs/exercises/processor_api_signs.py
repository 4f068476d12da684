"""By what typical mistakes with processors are recognised in what came out."""

from collections import Counter
from collections.abc import Callable

from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.recording import Advance, Piped, Row

Where = Callable[[Piped], bool]


def is_null(record: Piped) -> bool:
    """Whether a record has a key and no value."""
    return record.key is not None and record.value is None


def has_no_key(record: Piped) -> bool:
    """Whether a record has no key."""
    return record.key is None


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


def nulls_passed_over(outcome: Outcome) -> bool:
    """Nothing comes of null values."""
    moments = outcome.at(is_null)
    return bool(outcome.actual) and all(moment.expected and not moment.actual for moment in moments)


def without_key_forwarded(outcome: Outcome) -> bool:
    """Something came of a record without a key that should be left out."""
    return any(moment.extra for moment in outcome.at(has_no_key))


# ---- children --------------------------------------------------------------------------------------------------------


def to_another_child(outcome: Outcome) -> bool:
    """The right records came, in other topics."""
    due, came = _spelled(outcome.expected), _spelled(outcome.actual)
    return bool(outcome.differing) and due == came


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


def first_call_missing(outcome: Outcome) -> bool:
    """Only the first report is missing."""
    first = next((moment for moment in outcome.moments if moment.expected), None)
    return first is not None and [first] == outcome.differing and not first.actual


def called_on_and_on(outcome: Outcome) -> bool:
    """All is right, and calls go on after the last that is expected."""
    last = max((row.step for row in outcome.expected), default=-1)
    return bool(outcome.differing) and all(moment.number > last for moment in outcome.differing)


# ---- many rows in one call -------------------------------------------------------------------------------------------


def in_another_order(outcome: Outcome) -> bool:
    """The right records came after each step, in another order."""
    return bool(outcome.differing) and not any(moment.missing or moment.extra for moment in outcome.differing)


def rows_told_again(outcome: Outcome) -> bool:
    """A report tells of keys that have had no record since the report before."""
    return any(_keys(moment.actual) > _keys(moment.expected) for moment in outcome.moments if moment.expected)


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


def always_new(outcome: Outcome) -> bool:
    """Each record is taken for the first of its key."""
    return bool(outcome.actual) and all(str(row.value).startswith("new->") for row in outcome.actual)


def none_in_text(outcome: Outcome) -> bool:
    """Python's word for nothing is in a text."""
    return any("None" in came for _, came in _texts(outcome))


# ---- what the signs are made of --------------------------------------------------------------------------------------


def _is_store_empty(outcome: Outcome) -> bool:
    return any(store.expected and not store.actual for store in outcome.stores) and not outcome.trial.error


def _number(row: Row) -> float:
    return row.value if isinstance(row.value, int | float) else 0


def _keys(rows: tuple[Row, ...]) -> set[object]:
    return {row.key for row in rows}


def _spelled(rows: tuple[Row, ...] | list[Row]) -> Counter[str]:
    return Counter(repr((row.key, row.value)) for row in rows)


def _texts(outcome: Outcome) -> list[tuple[str, str]]:
    """The texts that differ, as due and as they came, where one came for one."""
    return [
        (str(moment.expected[0].value), str(moment.actual[0].value))
        for moment in outcome.differing
        if len(moment.expected) == len(moment.actual) == 1
    ]
