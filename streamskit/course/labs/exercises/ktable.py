"""Lab 03: rows that are replaced and deleted, groups that they enter and leave, updates that are kept back."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from pyspark.sql import functions as F

from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Runs
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.misconceptions import never_deleted, too_early, too_late
from streamskit.course.labs.parts import SaysEach, Typical
from streamskit.course.labs.recording import Costume, Recording
from streamskit.dsl.builder import StreamsBuilder
from streamskit.dsl.kstream import KStream
from streamskit.dsl.ktable import KTable
from streamskit.dsl.materialized import BufferConfig, Suppressed
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


def at_the_limit(outcome: Outcome) -> bool:
    """A balance that is the limit itself is taken for one above it."""
    return any(row.value == LIMIT for moment in outcome.moments for row in moment.extra)


def store_of_all_rows(outcome: Outcome) -> bool:
    """The store holds rows that should not be there, and none is missing from it."""
    return any(store.extra and not store.missing for store in outcome.stores)


def every_update(outcome: Outcome) -> bool:
    """Each record makes its result at once."""
    return bool(outcome.actual) and all(len(moment.actual) == 1 for moment in outcome.moments)


def keys_of_the_rows(outcome: Outcome) -> bool:
    """The results have the keys of the rows, where they should have those of groups."""
    rows = {record.key for record in outcome.recording.records}
    groups = {row.key for row in outcome.expected}
    return bool(outcome.actual) and not rows & groups and {row.key for row in outcome.actual} <= rows


# ---- answers ---------------------------------------------------------------------------------------------------------

Answer = Callable[[StreamsBuilder], None]
Fold = Callable[[int, int], int]
Table = Callable[[StreamsBuilder], KTable]

MEMBER = Serdes.json("city string, fee long")


def sends(table: Table, topic: str, then: Callable[[KStream], KStream] = lambda updates: updates) -> Answer:
    """Return the answer that writes a table's updates to a topic."""
    return lambda builder: then(table(builder).to_stream()).to(topic)


def streamed(builder: StreamsBuilder) -> None:
    """Read changes of addresses as a stream."""
    builder.stream("addresses").to("address-changes")


def newest(builder: StreamsBuilder) -> KTable:
    """Keep the newest address by hand."""
    return builder.stream("addresses").group_by_key().reduce(lambda old, new: new, "addresses-now")


def accounts(builder: StreamsBuilder, store: str | None = None) -> KTable:
    """Return the table of all balances."""
    return builder.table("balances", value=Serdes.long(), materialized=store)


def large(builder: StreamsBuilder) -> KStream:
    """Return a stream of large balances."""
    return builder.stream("balances", value=Serdes.long()).filter(lambda v: v > LIMIT)


def of_cities(adder: Fold, subtractor: Fold, by: Callable[[Any, Any], Any] = lambda k, v: v.city) -> Answer:
    """Return the answer that sums up fees with these functions."""

    def sums(builder: StreamsBuilder) -> KTable:
        grouped = builder.table("members", value=MEMBER).group_by(lambda k, v: (by(k, v), v.fee))
        return grouped.reduce(adder, subtractor, "fees-of-cities")

    return sends(sums, "fees-of-cities")


def fees_of_updates(builder: StreamsBuilder) -> KTable:
    """Sum up the fees of all updates."""
    updates = builder.table("members", value=MEMBER).to_stream().map(lambda k, v: (v.city, v.fee))
    return updates.group_by_key().reduce(lambda total, fee: total + fee, "fees-of-cities")


def held(suppressed: Suppressed) -> Answer:
    """Return the answer that holds updates back so."""
    return sends(lambda b: b.table("addresses").suppress(suppressed), "seldom-changes")


def how_many(table: Table, by: Callable[[Any], Any] = lambda k: F.lit("large")) -> Answer:
    """Return the answer that counts the rows of a table."""
    return sends(lambda b: table(b).group_by(lambda k, v: (by(k), v)).count("how-many"), "how-many")


def plus(total: int, fee: int) -> int:
    """Return the sum with a fee."""
    return total + fee


def minus(total: int, fee: int) -> int:
    """Return the sum without a fee."""
    return total - fee


# ---- the lab ---------------------------------------------------------------------------------------------------------

LAB = lab(
    "03-ktable",
    newest_address=Runs(
        lambda: addresses("ktable-source", "address-changes", SECOND, {"rows": "addresses-now"}),
        wrong={
            "a table read as a stream": streamed,
            "tombstone missed": [
                sends(newest, "address-changes"),
                sends(
                    lambda b: b.table("addresses", materialized="addresses-now"),
                    "address-changes",
                    lambda updates: updates.filter(lambda v: v.isNotNull()),
                ),
            ],
            "the store has another name": sends(lambda b: b.table("addresses"), "address-changes"),
            "nothing comes out": lambda b: b.table("addresses", materialized="addresses-now"),
        },
        signs={"tombstone missed": deletions_unanswered},
    ),
    large_balances=Runs(
        large_ones,
        wrong={
            "a filter that deletes nothing": [
                sends(lambda b: large(b).to_table("large-balances"), "large-balances"),
                sends(
                    lambda b: accounts(b, "large-balances"),
                    "large-balances",
                    lambda updates: updates.filter(lambda v: v > LIMIT),
                ),
            ],
            "the limit itself": sends(
                lambda b: accounts(b).filter(lambda v: v >= LIMIT, "large-balances"), "large-balances"
            ),
            "the store of another table": sends(
                lambda b: accounts(b, "large-balances").filter(lambda v: v > LIMIT), "large-balances"
            ),
        },
        signs={
            "a filter that deletes nothing": never_deleted,
            "the limit itself": at_the_limit,
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
        wrong={
            "grouped by the row's own key": of_cities(plus, minus, lambda k, v: k),
            "updates counted as new rows": sends(fees_of_updates, "fees-of-cities"),
            "last instead of sum": [
                of_cities(lambda total, fee: fee, subtractor)
                for subtractor in (minus, lambda total, fee: total, lambda total, fee: fee)
            ],
            "old value not taken out": of_cities(plus, lambda total, fee: total),
            "adder and subtractor exchanged": of_cities(minus, plus),
            "subtractor the wrong way round": of_cities(plus, lambda total, fee: fee - total),
        },
        signs={"grouped by the row's own key": keys_of_the_rows},
    ),
    labels_to_print=Runs(
        lambda: addresses("ktable-suppress-time-limit", "seldom-changes", MINUTE, {}),
        wrong={
            "every update goes out": sends(lambda b: b.table("addresses", materialized="labels"), "seldom-changes"),
            "held back too short": [
                held(Suppressed.until_time_limit(60)),
                held(Suppressed.until_time_limit("30 seconds")),
                held(Suppressed.until_time_limit("1 minute", BufferConfig.max_records(1).emit_early_when_full())),
            ],
            "held back too long": [held(Suppressed.until_time_limit(limit)) for limit in ("2 minutes", "1 hour")],
        },
        signs={
            "every update goes out": every_update,
            "held back too short": too_early,
            "held back too long": too_late,
        },
    ),
    how_many_are_large=Runs(
        number_of_large_ones,
        wrong={
            "grouped by the row's own key": how_many(lambda b: accounts(b).filter(lambda v: v > LIMIT), lambda k: k),
            "updates counted as new rows": sends(
                lambda b: (
                    accounts(b)
                    .filter(lambda v: v > LIMIT)
                    .to_stream()
                    .group_by(lambda v: F.lit("large"))
                    .count("how-many")
                ),
                "how-many",
            ),
            "rows that never leave": how_many(lambda b: large(b).to_table()),
            "the filter is missing": how_many(accounts),
        },
        signs={"grouped by the row's own key": keys_of_the_rows},
    ),
)
