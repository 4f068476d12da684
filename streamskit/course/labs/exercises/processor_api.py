"""The exercises of lab 10: processors that keep state, choose a child, and are called by one of two clocks."""

import re
from collections import Counter

from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Runs
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.loops import Due, Later, followed_by
from streamskit.course.labs.misconceptions import (
    not_only_last_results,
    stopped_at,
    unasked,
    without_key_counted,
    wrong_timestamps,
)
from streamskit.course.labs.recording import Advance, Costume, OutcomeRow, Piped, Recording

# ---- what goes in and has to come out --------------------------------------------------------------------------------


MINUTE = 60_000
TRUCKS = {"a": "truck-1", "b": "truck-2", "c": "truck-3", "tick": "all"}
PLACES = {"v1": "Basel", "v2": "Bern", "v3": "Thun", "v4": "Olten", "w1": "Chur", "old": "Biel", "null": "nowhere"}
SLOWER = 600
"""100 ms of the recordings are a minute of the story: this many times slower."""


def stops() -> Recording:
    """Return a truck's stops; a null value ends its trip."""
    topics, stores = {"in": "truck-stops", "out": "stop-counts"}, {"counts": "stops"}
    dress = Costume(topics, stores, TRUCKS, MINUTE, lambda _, value: "stop" if value == "x" else value)
    return Recording.of("processor-key-value-store", dress, ["counts"])


def pallets() -> Recording:
    """Return pallets that are loaded and unloaded."""
    topics = {"in": "pallets", "positive": "loaded-pallets", "negative": "moved-pallets", "audit": "pallet-log"}
    return Recording.of("processor-forward-to-child", Costume(topics, {}, TRUCKS, MINUTE))


def told_by_stream_time() -> Recording:
    """Return readings, and a report for each minute that they cover."""
    topics = {"in": "truck-readings", "out": "readings-so-far"}
    return Recording.of("processor-punctuate-stream-time", Costume(topics, {}, TRUCKS, SLOWER, _reading))


def told_by_wall_clock() -> Recording:
    """Return readings, and a wall clock that moves between them."""
    topics = {"in": "truck-readings", "out": "roll-calls"}
    return Recording.of("processor-punctuate-wall-clock", Costume(topics, {}, TRUCKS, SLOWER, _reading))


def positions() -> Recording:
    """Return where trucks say they are; some of it arrives late, and so does a truck's leave."""
    topics, stores = {"in": "truck-positions", "out": "truck-moves"}, {"latest": "last-seen"}
    recording = Recording.of("processor-timestamped-store", Costume(topics, stores, TRUCKS, SLOWER, _place), ["latest"])
    last = recording.records[-1]
    leave = Piped("truck-positions", last.key, None, last.timestamp - 1)
    ignored = Due("truck-moves", last.key, "ignored nowhere", leave.timestamp)
    return followed_by(recording, Later(leave, (ignored,)))


def highest_readings() -> Recording:
    """Return readings, and in each minute the highest of each truck; computed here, since no vector has it."""
    readings = [
        ("truck-2", 6.5, 10),
        ("truck-10", 4.0, 20),
        ("truck-2", 7.5, 30),
        ("truck-1", 9.0, 50),
        ("truck-2", 7.0, 40),
        ("truck-10", 5.0, 65),
        ("truck-1", -3.0, 70),
        ("truck-1", None, 80),
        ("truck-1", -5.0, 120),
        ("truck-3", 0.0, 125),
        ("truck-3", -1.0, 130),
        ("truck-10", 8.0, 150),
        ("truck-2", 3.0, 300),
        ("truck-1", 2.0, 310),
    ]
    records = [Piped("truck-readings", truck, value, second * 1000) for truck, value, second in readings]
    steps: tuple[Piped | Advance, ...] = (*records[:5], Advance(2 * MINUTE), *records[5:])
    reports, kept = _highest_by_the_minute(steps)
    rows = tuple(OutcomeRow(-1, truck, value) for truck, value in kept.items())
    return Recording(steps, {"highest-readings": reports}, {"highest": rows}, source="a fold in plain Python")


def _highest_by_the_minute(steps: tuple[Piped | Advance, ...]) -> tuple[tuple[OutcomeRow, ...], dict[str, float]]:
    """Return the reports of each minute of stream time, and what is kept after the last."""
    highest: dict[str, float] = {}
    reports: list[OutcomeRow] = []
    now = due = 0
    for number, step in enumerate(steps):
        if isinstance(step, Advance):
            continue
        if step.value is not None:
            highest[step.key] = max(step.value, highest.get(step.key, step.value))
        now = max(now, step.timestamp)
        if now >= due:
            reports += [OutcomeRow(number, truck, highest[truck], now) for truck in sorted(highest)]
            highest, due = {}, (now // MINUTE + 1) * MINUTE
    return tuple(reports), highest


def _reading(topic: str, text: str) -> str | float:
    """Return degrees for a recorded number; in what a report says, the story's times."""
    if topic == "in":
        return float(text) + 2
    return re.sub(r"(?<=by )\d+|(?<=time )\d+", _slower, text.replace("records", "readings"))


def _place(_: str, text: str | None) -> str | None:
    """Return a recorded text with places, and with the story's times."""
    if text is None:
        return None
    return re.sub("|".join(PLACES), lambda found: PLACES[found.group()], re.sub(r"(?<=@)\d+", _slower, text))


def _slower(found: re.Match[str]) -> str:
    return str(int(found.group()) * SLOWER)


# ---- signs -----------------------------------------------------------------------------------------------------------


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
    """Null values produce no result."""
    moments = outcome.at(is_null)
    return bool(outcome.actual) and all(moment.expected and not moment.actual for moment in moments)


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
    """Records produced a result, and should not have."""
    return any(moment.extra for moment in outcome.moments if isinstance(moment.step, Piped))


def called_more_and_more(outcome: Outcome) -> bool:
    """Reports come where none is due, and several at once."""
    undue = any(moment.actual and not moment.expected for moment in outcome.moments)
    return undue and any(len(moment.actual) > 1 for moment in outcome.moments)


def called_by_every_record(outcome: Outcome) -> bool:
    """Each record brought a report."""
    moments = outcome.at(lambda record: True)
    return len(outcome.expected) < len(moments) and all(len(moment.actual) == 1 for moment in moments)


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
    """A report includes keys that have had no record since the previous report."""
    return any(_keys(moment.actual) > _keys(moment.expected) for moment in outcome.moments if moment.expected)


def zero_overlooked(outcome: Outcome) -> bool:
    """Only a reading of 0 is missing."""
    missing = [row.value for moment in outcome.differing for row in moment.missing]
    return bool(missing) and not any(missing)


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


def _keys(rows: tuple[OutcomeRow, ...]) -> set[object]:
    return {row.key for row in rows}


def _spelled(rows: tuple[OutcomeRow, ...] | list[OutcomeRow]) -> Counter[str]:
    return Counter(repr((row.key, row.value)) for row in rows)


def _texts(outcome: Outcome) -> list[tuple[str, str]]:
    """The texts that differ, expected and actual, where one record came for one expected."""
    return [
        (str(moment.expected[0].value), str(moment.actual[0].value))
        for moment in outcome.differing
        if len(moment.expected) == len(moment.actual) == 1
    ]


# ---- the lab ---------------------------------------------------------------------------------------------------------

LAB = lab(
    "10-processor-api",
    stops_of_a_trip=Runs(
        stops,
        signs={
            "state in a field": kept_in_a_field,
            "forward forgotten": not_forwarded,
            "null key not handled": stopped_at(has_no_key),
            "null key forwarded": without_key_counted,
            "null value not handled": stopped_at(is_null),
            "nothing put into the store": never_put,
            "null value passed over": nulls_passed_over,
            "timestamp of the forwarded record": wrong_timestamps,
        },
        errors={"has no store": "store not connected", "a record cannot be changed": "record changed in place"},
    ),
    pallets_by_hand=Runs(
        pallets,
        signs={
            "null value not handled": stopped_at(is_null),
            "forward to the wrong child": to_another_child,
            "forward to all children": not_only_last_results,
        },
        errors={
            "a record cannot be changed": "record changed in place",
            "no step of that name comes next": "no child of that name",
        },
    ),
    readings_so_far=Runs(
        told_by_stream_time,
        signs={
            "wall clock for stream time": called_by_wall_clock,
            "scheduled with every record": called_more_and_more,
            "a report with every record": called_by_every_record,
            "called too often": unasked,
            "first report forgotten": first_call_missing,
            "timestamp of the forwarded record": wrong_timestamps,
        },
        errors={"has no store": "store not connected", "a record cannot be changed": "record changed in place"},
    ),
    roll_call=Runs(
        told_by_wall_clock,
        signs={
            "stream time for wall clock": called_by_records,
            "punctuation not cancelled": called_on_and_on,
            "timestamp of the forwarded record": wrong_timestamps,
        },
        errors={"a record cannot be changed": "record changed in place"},
    ),
    highest_reading=Runs(
        highest_readings,
        signs={
            "state in a field": kept_in_a_field,
            "forward forgotten": not_forwarded,
            "null value not handled": stopped_at(is_null),
            "wall clock for stream time": called_by_wall_clock,
            "a report with every record": unasked,
            "rows in another order": in_another_order,
            "rows not deleted": rows_told_again,
            "zero is a reading": zero_overlooked,
            "last instead of highest": last_for_highest,
            "timestamp of the forwarded record": wrong_timestamps,
        },
        errors={"has no store": "store not connected", "a record cannot be changed": "record changed in place"},
    ),
    last_seen=Runs(
        positions,
        signs={
            "state in a field": kept_in_a_field,
            "forward forgotten": not_forwarded,
            "null value not handled": stopped_at(is_null),
            "None is Python's word": none_in_text,
            "nothing put into the store": always_new,
            "compared with stream time": older_than_the_stream_ignored,
            "equally old is not older": equally_old_ignored,
            "older record believed": older_record_kept,
        },
        errors={
            "has no store": "store not connected",
            "a record cannot be changed": "record changed in place",
            "keeps a time beside each value": "value without its time",
        },
    ),
)
