"""How the answers of lab 03 are judged: what goes in and has to come out, and signs of typical mistakes."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.misconceptions import Misconception, without_key_counted
from streamskit.course.labs.recording import Costume, Recording, Row
from streamskit.dsl.builder import StreamsBuilder
from streamskit.serdes import Serdes
from streamskit.testing import TopologyTestDriver

PEOPLE = {"a": "ada", "b": "bob", "c": "cy", "d": "dan", "e": "eve", "ann": "ada", "cat": "cy"}
CITIES = {"eu": "Oslo", "us": "Turku"}
STREETS = {"a": "Elm", "b": "Oak", "c": "Ash", "d": "Fir", "e": "Yew", "n": "Nowhere"}
SECOND, MINUTE = 1_000, 600
"""How many times slower the stories are: a millisecond of the recordings is a second; 100 of them are a minute."""

LIMIT = 1000
BALANCES = (("ada", 500), ("bob", 2000), ("ada", 1500), ("ada", 700), ("ada", 600), ("bob", 2500), ("cy", 300))
"""The balances that the notebook shows."""


# ---- the recordings, in the words of the stories ---------------------------------------------------------------------


def addresses(vector: str, target: str, scale: int, stores: dict[str, str]) -> Recording:
    """Return a recording in which the texts are addresses."""
    dress = Costume({"in": "addresses", "out": target}, stores, PEOPLE, scale, lambda _, value: address(value))
    return Recording.of(vector, dress, list(stores))


def large_ones() -> Recording:
    """Return a recording in which the numbers are balances."""
    topics, stores = {"in": "balances", "out": "large-balances"}, {"rich": "large-balances"}
    dress = Costume(topics, stores, PEOPLE, SECOND, lambda _, value: balance(value))
    return Recording.of("ktable-filter-materialized", dress, ["rich"])


def number_of_large_ones() -> Recording:
    """Return a recording in which balances are counted."""
    dress = Costume(
        {"in": "balances", "out": "how-many"},
        keys=PEOPLE | {"rich": "large"},
        scale=SECOND,
        value=lambda topic, value: balance(value) if topic == "in" else value,
    )
    return begun(Recording.of("ktable-filter-then-count", dress), 8, "how-many")


def fees() -> Recording:
    """Return a recording in which the regions are cities."""
    topics = {"in": "members", "out": "fees-of-cities"}
    dress = Costume(topics, keys=PEOPLE | CITIES, scale=SECOND, value=lambda _, value: member(value))
    return begun(Recording.of("ktable-group-by-reduce", dress), 7, "fees-of-cities")


def begun(recording: Recording, steps: int, store: str) -> Recording:
    """Return the first steps of a recording, as each costs time; the store is what its updates add up to."""
    outputs = {topic: tuple(row for row in rows if row.step < steps) for topic, rows in recording.outputs.items()}
    last = {row.key: row._replace(step=-1) for rows in outputs.values() for row in rows}
    rows = tuple(row for row in last.values() if row.value is not None)
    dropped = {step: count for step, count in recording.dropped.items() if step < steps}
    return replace(recording, steps=recording.steps[:steps], outputs=outputs, stores={store: rows}, dropped=dropped)


def address(value: str | None) -> str | None:
    """Return a street with a number: Elm 2 for a2."""
    return None if value is None else f"{STREETS[value[0]]} {value[1:] if value[1:].isdigit() else 7}"


def balance(value: int | None) -> int | None:
    """Return a balance above the limit for a number above 10; 6 is the limit itself."""
    return None if value is None else LIMIT if value == 6 else value * 100


def member(value: Any) -> Any:
    """Return a member of a city; what is no member stays as it is."""
    if not isinstance(value, dict):
        return value
    city = {"city": CITIES[value["region"]]} if "region" in value else {}
    return city | {"fee": value["amount"]}


# ---- signs of typical mistakes ---------------------------------------------------------------------------------------


def deletions_unanswered(outcome: Outcome) -> bool:
    """Nothing came where a row was deleted, and something should."""
    due = [moment for moment in outcome.at(lambda record: record.value is None) if moment.expected]
    return bool(due) and bool(outcome.actual) and not any(moment.actual for moment in due)


def tombstones_never_sent(outcome: Outcome) -> bool:
    """No record with a null value came, where some should."""
    return bool(outcome.actual) and _has_tombstone(outcome.expected) and not _has_tombstone(outcome.actual)


def read_as_a_stream(outcome: Outcome) -> bool:
    """A record without a key made a result, and there is no table that would have dropped it."""
    return without_key_counted(outcome) and not outcome.trial.topology.stores


def at_the_limit(outcome: Outcome) -> bool:
    """A balance that is the limit itself is taken for one above it."""
    return any(row.value == LIMIT for moment in outcome.moments for row in moment.extra)


def store_of_all_rows(outcome: Outcome) -> bool:
    """The store holds rows that should not be there, and none is missing from it."""
    return any(store.extra and not store.missing for store in outcome.stores)


def never_falls(outcome: Outcome) -> bool:
    """No result is smaller than the one before, where some should be."""
    return bool(outcome.actual) and _falls(outcome.expected) and not _falls(outcome.actual)


def counts_updates(outcome: Outcome) -> bool:
    """A count is larger than the number of accounts that were ever large."""
    large = {record.key for record in outcome.recording.records if (record.value or 0) > LIMIT}
    return bool(outcome.actual) and max(map(_number, outcome.actual)) > len(large)


def new_rows_only(outcome: Outcome) -> bool:
    """Every record is added to a group, and none is ever taken out of one."""
    return never_falls(outcome) and deletions_unanswered(outcome)


def below_zero(outcome: Outcome) -> bool:
    """The sums are right as long as nothing is taken out, and then below zero."""
    first = outcome.differing[0] if outcome.differing else None
    return first is not None and len(first.expected) > 1 and any(_number(row) < 0 for row in outcome.actual)


def adding_subtracts(outcome: Outcome) -> bool:
    """A row that comes into a group makes its sum smaller."""
    first = outcome.differing[0] if outcome.differing else None
    return first is not None and len(first.expected) == 1 and any(_number(row) < 0 for row in outcome.actual)


def last_fee(outcome: Outcome) -> bool:
    """The sum of a member's city is the fee of that member."""
    pairs = [
        (record.value["fee"], row.value)
        for moment in outcome.moments
        if (record := outcome.piped(moment)) and isinstance(record.value, dict)
        for row in moment.actual
        if row.key == record.value.get("city")
    ]
    return bool(pairs) and all(fee == total for fee, total in pairs)


def keys_of_the_rows(outcome: Outcome) -> bool:
    """The results have the keys of the rows, where they should have those of groups."""
    rows = {record.key for record in outcome.recording.records}
    groups = {row.key for row in outcome.expected}
    return bool(outcome.actual) and not rows & groups and {row.key for row in outcome.actual} <= rows


def rows_that_do_not_pass(outcome: Outcome) -> bool:
    """A row that should be filtered out makes a result."""
    return any(
        moment.actual and not moment.expected
        for moment in outcome.at(lambda record: record.key is not None and (record.value or LIMIT) < LIMIT)
    )


def every_update(outcome: Outcome) -> bool:
    """Each record makes its result at once."""
    return bool(outcome.actual) and all(len(moment.actual) == 1 for moment in outcome.moments)


def sent_too_early(outcome: Outcome) -> bool:
    """Updates go out before they should."""
    return any(moment.extra for moment in outcome.moments[: _first_due(outcome)])


def sent_too_late(outcome: Outcome) -> bool:
    """Updates that should have gone out are still held back, in a topology that has somewhere to send them."""
    sinks = {sink.topic for sink in outcome.trial.topology.sinks}
    return set(outcome.recording.outputs) <= sinks and len(outcome.actual) < len(outcome.expected)


def _has_tombstone(rows: list[Row]) -> bool:
    return any(row.value is None for row in rows)


def _falls(rows: list[Row]) -> bool:
    last: dict[Any, float] = {}
    for row in rows:
        if _number(row) < last.get(row.key, 0):
            return True
        last[row.key] = _number(row)
    return False


def _number(row: Row) -> float:
    return row.value if isinstance(row.value, int | float) else 0


def _first_due(outcome: Outcome) -> int:
    return next(index for index, moment in enumerate(outcome.moments) if moment.expected)


# ---- mistakes that more than one exercise knows ----------------------------------------------------------------------

TOMBSTONE_MISSED = Misconception(
    "tombstone missed",
    "Where a value is null, nothing comes out of yours. A null deletes the row of its key, and that is an update like "
    "any other. An aggregation of a stream skips null values; a table does not.",
    deletions_unanswered,
)
SILENT_FILTER = Misconception(
    "a filter that deletes nothing",
    "No tombstone comes out. A stream's filter drops what does not pass and is silent. A row that falls below the "
    "limit has to leave the table, and only a table's filter says so: filter first, to_stream() after it.",
    tombstones_never_sent,
)
UPDATES_COUNTED = Misconception(
    "updates counted as new rows",
    "Your results only grow, and a deleted row stays in them. In a stream each update is one more record. Regroup the "
    "table itself, before to_stream(): it takes a row's old value out of its group before the new one goes in.",
    new_rows_only,
)
ROWS_OWN_KEY = Misconception(
    "grouped by the row's own key",
    "Your results have the keys of the rows, one result for each row. The function given to group_by returns two "
    "things: the key of the group, and the value to aggregate.",
    keys_of_the_rows,
)


# ---- a question whose answer is counted ------------------------------------------------------------------------------


@cache
def updates_sent() -> dict[str, int]:
    """Count what a filtered table sends: without a store, with one at the source, and with a cache in one batch."""
    return {
        "no store": _sent(None, cached=False),
        "a store": _sent("balances", cached=False),
        "one batch": _sent("balances", cached=True),
    }


def _sent(store: str | None, cached: bool) -> int:
    builder = StreamsBuilder()
    table = builder.table("balances", value=Serdes.long(), materialized=store)
    table.filter(lambda v: v > LIMIT).to_stream().to("large-balances")
    with TopologyTestDriver(builder.build(), cache=cached) as driver:
        driver.create_input_topic("balances").pipe_records(list(BALANCES))  # without a cache, as if one by one
        return len(driver.create_output_topic("large-balances").read_records_to_list())


OTHERWISE = {
    "no store": "Without a store the table remembers nothing, so that the filter has to answer every single record.",
    "a store": "With a store: go through the records, and ask of each what its row was before.",
    "one batch": "In one batch: what was each row before the batch, and what is it at its end? Nothing was before.",
}


def typical_numbers(expected: Mapping[str, int]) -> dict[str, dict[int, tuple[str, str]]]:
    """Return for each part the wrong numbers that are typical, each with the mistake's name and what to think of."""
    passing = sum(value > LIMIT for _, value in BALANCES)
    silent = "a filter that deletes nothing"
    return {
        "no store": {
            passing: (
                silent,
                "Without a store you count only the balances above the limit. What does not pass makes an update, too: "
                "a tombstone, as the row has to go.",
            ),
            expected["a store"]: (
                "needless tombstones",
                "Without a store the filter cannot know whether there was a row to delete. So it sends a tombstone for "
                "every record that does not pass.",
            ),
        },
        "a store": {
            expected["no store"]: (
                "needless tombstones",
                "With a store at the source the filter is told the row's old value. A row that did not pass before, "
                "and does not pass now, needs no tombstone.",
            ),
            passing: (
                silent,
                "With a store the needless tombstones are gone. One of them is not needless: which row was above the "
                "limit, and then fell?",
            ),
        },
        "one batch": {
            expected["a store"]: (
                "the cache folds nothing",
                "With the cache the updates that a batch makes to a row are folded: only the last value of each key "
                "leaves.",
            ),
            len(dict(BALANCES)): (
                "needless tombstones",
                "One update for each key is too many. A row that was not there before the batch, and does not pass at "
                "its end, needs no tombstone.",
            ),
        },
    }
