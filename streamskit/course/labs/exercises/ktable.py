"""Lab 03: rows that are replaced and deleted, groups that they enter and leave, updates that are held back."""

from dataclasses import replace
from functools import cache
from typing import Any

from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Runs
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.misconceptions import extra_row, keys_of_records, never_deleted, too_early, too_late
from streamskit.course.labs.parts import SaysEach, Typical
from streamskit.course.labs.recording import Costume, Recording
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
    """Return the first steps of a recording, since each takes time; the store holds what their updates add up to."""
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


PASSING = sum(value > LIMIT for _, value in BALANCES)
TYPICAL_UPDATES: dict[str, Typical] = {
    "a filter that deletes nothing": {"no store": PASSING, "a store": PASSING},
    "needless tombstones": {
        "no store": lambda due: due["a store"],
        "a store": lambda due: due["no store"],
        "one batch": len(dict(BALANCES)),
    },
    "the cache folds nothing": {"one batch": lambda due: due["a store"]},
}


# ---- signs -----------------------------------------------------------------------------------------------------------


def deletions_unanswered(outcome: Outcome) -> bool:
    """Nothing came where a row was deleted, and something should."""
    due = [moment for moment in outcome.at(lambda record: record.value is None) if moment.expected]
    return bool(due) and bool(outcome.actual) and not any(moment.actual for moment in due)


def store_of_all_rows(outcome: Outcome) -> bool:
    """The store holds rows that should not be there, and none is missing from it."""
    return any(store.extra and not store.missing for store in outcome.stores)


def every_update(outcome: Outcome) -> bool:
    """Each record makes its result at once."""
    return bool(outcome.actual) and all(len(moment.actual) == 1 for moment in outcome.moments)


# ---- the lab ---------------------------------------------------------------------------------------------------------

LAB = lab(
    "03-ktable",
    newest_address=Runs(
        lambda: addresses("ktable-source", "address-changes", SECOND, {"rows": "addresses-now"}),
        signs={"tombstone missed": deletions_unanswered},
    ),
    large_balances=Runs(
        large_ones,
        signs={
            "a filter that deletes nothing": never_deleted,
            "the limit itself": extra_row(lambda row: row.value == LIMIT),
            "the store of another table": store_of_all_rows,
        },
    ),
    updates_sent=SaysEach(
        updates_sent,
        f"The three programs ran on the {len(BALANCES)} records: your numbers are what they sent.",
        TYPICAL_UPDATES,
        OTHERWISE,
    ),
    fees_of_cities=Runs(
        fees,
        signs={"grouped by the row's own key": keys_of_records()},
        partitions=3,
    ),
    labels_to_print=Runs(
        lambda: addresses("ktable-suppress-time-limit", "seldom-changes", MINUTE, {}),
        signs={
            "every update is sent": every_update,
            "held back too short": too_early,
            "held back too long": too_late,
        },
    ),
    how_many_are_large=Runs(
        number_of_large_ones,
        signs={"grouped by the row's own key": keys_of_records()},
        partitions=3,
    ),
)
