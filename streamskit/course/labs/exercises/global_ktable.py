"""The exercises of lab 06: orders that look up rows by keys of their own, in tables that every task holds whole."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from pyspark.sql import functions as F

from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Runs, Says
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.loops import Due, looped
from streamskit.course.labs.misconceptions import keys_of_records, never_met, results_after
from streamskit.course.labs.parts import SaysEach
from streamskit.course.labs.recording import Costume, Piped, Recording
from streamskit.dsl.builder import StreamsBuilder
from streamskit.serdes import Serdes
from streamskit.testing import TopologyTestDriver

SECOND = 1_000
"""A millisecond of the recording is a second of the stories."""

COUNTRIES = {"de": "NO", "fr": "FI", "Germany": "Norway", "France": "Finland"}
CUSTOMERS = ("", "ada", "bob", "cy", "dan", "", "eve", "fay")
ORDERS = {str(number): f"o{number}" for number in range(1, 8)}

Steps = Sequence[tuple[str, Any, Any]]
"""Topic, key and value of records, a second apart."""


# ---- the recordings, in the words of the stories ---------------------------------------------------------------------


def joined() -> Recording:
    """Return what orders give that look up their countries."""

    def told(topic: str, value: Any) -> Any:
        if topic == "stream" and value is not None:
            country = {"country": COUNTRIES[value["country"]]} if "country" in value else {}
            return {"customer": CUSTOMERS[value["id"]]} | country
        if topic == "out":
            number, _, country = value.partition("@")
            return f"{CUSTOMERS[int(number)]} in {COUNTRIES[country]}"
        return COUNTRIES.get(value, value)

    topics = {"global": "countries", "stream": "orders", "out": "orders-with-countries"}
    dress = Costume(topics, {"countries": "countries"}, COUNTRIES | ORDERS, SECOND, told)
    return Recording.of("joins-stream-global-inner", dress, ["countries"])


def all_orders() -> Recording:
    """Return what all orders give, also those whose country is not known, as a plain loop says it."""

    def result(order: dict[str, Any], tables: dict[str, dict[str, str]]) -> str:
        return f"{order['customer']} in {tables['countries'].get(order['country'], '?')}"

    steps: Steps = (
        ("orders", "o1", {"customer": "ada", "country": "NO"}),
        ("countries", "NO", "Norway"),
        ("orders", "o2", {"customer": "bob", "country": "NO"}),
        ("orders", "o3", {"customer": "cy", "country": "FI"}),
        ("orders", "o4", {"customer": "dan", "country": None}),
        ("countries", "FI", "Finland"),
        ("countries", "NO", None),
        ("orders", "o5", {"customer": "eve", "country": "NO"}),
        ("orders", "o6", None),
        ("orders", "o7", {"customer": "fay", "country": "FI"}),
    )
    return looked_up(steps, "all-orders", lambda order: order["country"], result, left=True)


def star() -> Recording:
    """Return what orders give that look up two tables, as a plain loop says it."""

    def result(order: dict[str, Any], tables: dict[str, dict[str, str]]) -> dict[str, Any] | None:
        customer, country = tables["customers"].get(order["customer"]), tables["countries"].get(order["country"])
        found = customer is not None and country is not None
        return {"customer": customer, "country": country, "total": order["total"]} if found else None

    steps: Steps = (
        ("countries", "NO", "Norway"),
        ("customers", "c1", "Ada L."),
        ("orders", "o1", {"customer": "c1", "country": "NO", "total": 120}),
        ("orders", "o2", {"customer": "c2", "country": "NO", "total": 9}),
        ("orders", "o3", {"customer": "c1", "country": "FI", "total": 45}),
        ("customers", "c2", "Bob M."),
        ("countries", "FI", "Finland"),
        ("orders", "o4", {"customer": "c2", "country": "FI", "total": 310}),
        ("customers", "c1", "Ada Lovelace"),
        ("orders", "o5", {"customer": "c1", "country": "NO", "total": 7}),
    )
    return looked_up(steps, "full-orders", lambda order: order["customer"] and order["country"], result)


def looked_up(
    steps: Steps,
    target: str,
    wanted: Callable[[dict[str, Any]], Any],
    result: Callable[[dict[str, Any], dict[str, dict[str, str]]], Any],
    left: bool = False,
) -> Recording:
    """Run a plain loop over records of tables and orders, and return what it gives.

    Args:
        steps: the records, a second apart.
        target: the topic of the results.
        wanted: the key that an order looks up.
        result: what an order gives with the tables of now; None where nothing comes out.
        left: whether an order without a key to look up goes on; otherwise it is dropped.
    """
    tables: dict[str, dict[str, str]] = {"countries": {}, "customers": {}}

    def due(record: Piped) -> Iterator[Due]:
        if record.topic in tables:
            rows = tables[record.topic] | {record.key: record.value}
            tables[record.topic] = {key: row for key, row in rows.items() if row is not None}
        elif record.value is not None and (left or wanted(record.value) is not None):
            made = result(record.value, tables)
            if made is not None:
                yield Due(target, record.key, made, record.timestamp)

    piped = [Piped(topic, key, value, number * SECOND) for number, (topic, key, value) in enumerate(steps)]
    return looped(piped, (target,), due)


# ---- questions whose answers are computed ----------------------------------------------------------------------------

STORY = (
    ("countries", "NO", "Norway", 0),
    ("orders", "o1", {"customer": "ada", "country": "NO"}, 10 * SECOND),
    ("orders", "o2", {"customer": "bob", "country": "FI"}, 20 * SECOND),
    ("countries", "FI", "Finland", 15 * SECOND),
    ("countries", "NO", "Noreg", 60 * SECOND),
    ("orders", "o3", {"customer": "cy", "country": "NO"}, 30 * SECOND),
    ("orders", "o4", {"customer": "dan", "country": "FI"}, 5 * SECOND),
)
"""The records that the notebook shows for exercise 3."""


@cache
def names_found() -> list[str | None]:
    """Run the notebook's program on its records; return the country that each order was given."""
    builder = StreamsBuilder()
    countries = builder.global_table("countries")
    orders = builder.stream("orders", value=Serdes.json("customer string, country string"))
    found = orders.left_join(
        countries, lambda order, name: F.struct(name.alias("name")), key_selector=lambda k, v: v.country
    )
    found.to("found")
    with TopologyTestDriver(builder.build()) as driver:
        for topic, key, value, timestamp in STORY:
            driver.create_input_topic(topic).pipe_input(key, value, timestamp)
        results = {row.key: row.value for row in driver.create_output_topic("found").read_records_to_list()}
    return [results[order].get("name") for order in ("o1", "o2", "o3", "o4")]


ROWS, TASKS_OF_ORDERS, TASKS_OF_COUNTRIES, INSTANCES = 1_000, 6, 2, 3
"""How many countries there are, how many partitions the two topics have, and on how many instances a program runs."""


def held() -> dict[str, int]:
    """Return in how many tasks the two joins are made, and how many rows all instances hold together."""
    return {
        "table: tasks": TASKS_OF_COUNTRIES,
        "table: rows": ROWS,
        "global table: tasks": TASKS_OF_ORDERS,
        "global table: rows": ROWS * INSTANCES,
    }


# ---- signs -----------------------------------------------------------------------------------------------------------


def null_for_unmatched(outcome: Outcome) -> bool:
    """An order that finds no row made a result that is null, or has null in it as a text."""
    extra = [row for moment in outcome.moments for row in moment.extra]
    return bool(extra) and all(row.value is None or str(row.value).split()[-1] in ("null", "in") for row in extra)


def codes_for_names(outcome: Outcome) -> bool:
    """The results have the keys that were looked up, in place of what was found."""
    codes = {record.key for record in outcome.recording.records if record.topic != "orders"}
    values = [row.value for moment in outcome.moments for row in moment.extra if isinstance(row.value, dict)]
    return bool(values) and all(codes & {value.get("customer"), value.get("country")} for value in values)


# ---- the lab ---------------------------------------------------------------------------------------------------------

LAB = lab(
    "06-global-ktable",
    orders_with_countries=Runs(
        joined,
        signs={
            "looked up by a key that no row has": never_met,
            "the key of the row that was found": keys_of_records("countries", "customers"),
            "left in place of inner": results_after("orders"),
        },
    ),
    orders_of_anywhere=Runs(
        all_orders,
        signs={
            "looked up by a key that no row has": never_met,
            "the key of the row that was found": keys_of_records("countries", "customers"),
            "null in the joiner": null_for_unmatched,
        },
    ),
    names_at_the_time=Says(
        names_found,
        "Your program ran on the seven records: these are the names that it gave.",
        wrong={
            "the row of the order's time": ("Norway", "Finland", "Norway", None),
            "the row of o3's time": ("Norway", None, "Norway", "Finland"),
            "the row of o4's time": ("Norway", None, "Noreg", None),
            "a row that comes later": ("Norway", "Finland", "Noreg", "Finland"),
            "the row that is there in the end": ("Noreg", "Finland", "Noreg", "Finland"),
        },
    ),
    rows_held=SaysEach(
        held,
        f"With a table each of the {ROWS} rows is in one of {TASKS_OF_COUNTRIES} tasks, wherever that runs; with a "
        f"global table each of {INSTANCES} instances has all of them, and its tasks share them.",
        {
            "repartitioned and cut as before": {"table: tasks": TASKS_OF_ORDERS},
            "a task for each topic": {"table: tasks": TASKS_OF_ORDERS + TASKS_OF_COUNTRIES},
            "a table taken for a global one": {"table: rows": ROWS * TASKS_OF_COUNTRIES},
            "a global table cuts nothing": {"global table: tasks": TASKS_OF_COUNTRIES},
            "global is not single": {"global table: tasks": 1},
            "one copy for all": {"global table: rows": ROWS},
            "a copy for each task": {"global table: rows": ROWS * TASKS_OF_ORDERS},
            "copies by the table's partitions": {"global table: rows": ROWS * TASKS_OF_COUNTRIES},
        },
    ),
    orders_in_full=Runs(
        star,
        signs={
            "looked up by a key that no row has": never_met,
            "the key of the row that was found": keys_of_records("countries", "customers"),
            "half of it found": results_after("orders"),
            "code instead of name": codes_for_names,
        },
    ),
)
