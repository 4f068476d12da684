"""The exercises of lab 04: orders that look up rows by keys of their own, in tables that every task holds whole."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from pyspark.sql import functions as F

from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Exercise, Lab, Runs, Says
from streamskit.course.labs.loops import Due, looped
from streamskit.course.labs.misconceptions import Misconception, nothing_came
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


# ---- signs of typical mistakes ---------------------------------------------------------------------------------------


def own_key_looked_up(outcome: Outcome) -> bool:
    """No order finds a row, in a topology that has somewhere to send results."""
    sinks = {sink.topic for sink in outcome.trial.topology.sinks}
    return nothing_came(outcome) and set(outcome.recording.outputs) <= sinks


def keys_of_the_table(outcome: Outcome) -> bool:
    """The results have the keys of the table's rows."""
    rows = {record.key for record in outcome.recording.records if record.topic != "orders"}
    return bool(outcome.actual) and {row.key for row in outcome.actual} <= rows


def unmatched_came(outcome: Outcome) -> bool:
    """An order that finds no row made a result."""
    orders = outcome.at(lambda record: record.topic == "orders" and record.value is not None)
    return any(moment.extra and not moment.expected for moment in orders)


def unmatched_are_missing(outcome: Outcome) -> bool:
    """What came is right, and orders that find no row are missing."""
    missing = [row for moment in outcome.moments for row in moment.missing]
    extra = [row for moment in outcome.moments for row in moment.extra]
    return bool(missing) and not extra and all(str(row.value).endswith("?") for row in missing)


def null_for_unmatched(outcome: Outcome) -> bool:
    """An order that finds no row made a result that is null, or has null in it as a text."""
    extra = [row for moment in outcome.moments for row in moment.extra]
    return bool(extra) and all(row.value is None or str(row.value).split()[-1] in ("null", "in") for row in extra)


def half_matched_came(outcome: Outcome) -> bool:
    """An order that finds a row in one table only made a result."""
    return any(moment.extra and not moment.expected for moment in outcome.at(lambda record: record.topic == "orders"))


def codes_for_names(outcome: Outcome) -> bool:
    """The results have the keys that were looked up, in place of what was found."""
    codes = {record.key for record in outcome.recording.records if record.topic != "orders"}
    values = [row.value for moment in outcome.moments for row in moment.extra if isinstance(row.value, dict)]
    return bool(values) and all(codes & {value.get("customer"), value.get("country")} for value in values)


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


ROWS, TASKS_OF_ORDERS, TASKS_OF_COUNTRIES = 1_000, 6, 2
"""How many countries there are, and how many partitions the two topics have."""


def rows_held() -> dict[str, int]:
    """Return in how many tasks the two joins are made, and how many rows those hold together."""
    return {
        "table: tasks": TASKS_OF_COUNTRIES,
        "table: rows": ROWS,
        "global table: tasks": TASKS_OF_ORDERS,
        "global table: rows": ROWS * TASKS_OF_ORDERS,
    }


def typical_rows(expected: Mapping[str, int]) -> dict[str, dict[int, tuple[str, str]]]:
    """Return for each part the wrong numbers that are typical, each with the mistake's name and what to think of."""
    copies = "a table taken for a global one"
    return {
        "table: tasks": {
            TASKS_OF_ORDERS: (
                "repartitioned and cut as before",
                "The orders get a new key and go through a topic of their own, which is cut as the table's is: equal "
                "keys have to meet.",
            ),
            TASKS_OF_ORDERS + TASKS_OF_COUNTRIES: (
                "a task for each topic",
                "A task reads one partition of each topic that the join brings together, not one partition in all.",
            ),
        },
        "table: rows": {
            ROWS * TASKS_OF_COUNTRIES: (copies, "Each row of a plain table is in one task: that of its partition."),
        },
        "global table: tasks": {
            TASKS_OF_COUNTRIES: (
                "a global table cuts nothing",
                "The orders stay in the partitions they are in, and a task is made for each of those. The global "
                "table's own partitions make no tasks.",
            ),
            1: ("global is not single", "Global says that each task has all rows, not that there is one task."),
        },
        "global table: rows": {
            ROWS: (
                "one copy for all",
                "Every task has to find any key, so each holds all rows. (Kafka Streams shares one copy within an "
                "instance; here each task has one.)",
            ),
            ROWS * TASKS_OF_COUNTRIES: (
                "copies by the table's partitions",
                "The copies are as many as tasks that join, and those are as many as the orders' topic has partitions.",
            ),
        },
    }


# ---- mistakes that more than one exercise knows ----------------------------------------------------------------------

OWN_KEY = Misconception(
    "looked up by the order's own key",
    "No order finds a row. The key of an order is its number, and no row has that. The key selector makes the key to "
    "look up, of the order's key and value.",
    own_key_looked_up,
)
TABLES_KEY = Misconception(
    "the key of the row that was found",
    "Your results have the table's keys. A join with a global table needs no new key: the order looks a row up, and "
    "keeps its own key.",
    keys_of_the_table,
)

LAB = Lab(
    "04-global-ktable",
    "GlobalKTable",
    (
        Exercise(
            "orders_with_countries",
            "Give each order the name of its country.",
            Runs(
                joined,
                (
                    OWN_KEY,
                    TABLES_KEY,
                    Misconception(
                        "left in place of inner",
                        "An order that finds no country made a result. An inner join, join(...), is silent about it; "
                        "left_join is not.",
                        unmatched_came,
                    ),
                ),
            ),
            (
                "join takes three things: the global table, a joiner, and what makes the key to look up.",
                "key_selector=... takes a function of the order's key and value. Where in an order is its country?",
                "key_selector=lambda k, v: v.country",
            ),
        ),
        Exercise(
            "orders_of_anywhere",
            "Send all orders on, with a question mark where the country is not known.",
            Runs(
                all_orders,
                (
                    OWN_KEY,
                    TABLES_KEY,
                    Misconception(
                        "inner in place of left",
                        "Orders of unknown countries are missing. An inner join is silent where there is no row; a "
                        "left join gives the joiner a null.",
                        unmatched_are_missing,
                    ),
                    Misconception(
                        "null in the joiner",
                        "An order of an unknown country came with a null. The joiner of a left join gets null where no "
                        "row is found, and a text joined with null is null: F.coalesce puts something in its place.",
                        null_for_unmatched,
                    ),
                ),
            ),
            (
                "A left join calls the joiner for every order, also where there is no row or no country is named.",
                "In the joiner the country may be null. F.coalesce(a, b) is b where a is null.",
                'orders.left_join(countries, lambda order, country: F.concat(order.customer, F.lit(" in "), '
                'F.coalesce(country, F.lit("?"))), key_selector=lambda k, v: v.country)',
            ),
        ),
        Exercise(
            "names_at_the_time",
            "Say which name of a country each order is given.",
            Says(
                names_found,
                "Your program ran on the seven records: these are the names that it gave.",
                {
                    ("Norway", "Finland", "Norway", None): (
                        "the row of the order's time",
                        "You compare times. The lookup does not: an order finds the row that is there when the order "
                        "is processed, whatever the two timestamps are.",
                    ),
                    ("Norway", None, "Norway", "Finland"): (
                        "the row of the order's time",
                        "o3 is older than the new name, and it comes after it. The lookup does not compare times: it "
                        "finds the row that is there.",
                    ),
                    ("Norway", "Finland", "Noreg", "Finland"): (
                        "a row that comes later",
                        "o2 came before Finland did. An update of a global table makes no result, and mends none.",
                    ),
                    ("Noreg", "Finland", "Noreg", "Finland"): (
                        "a row that comes later",
                        "You take the table as it is in the end. An order is joined once, when it comes; a global "
                        "table's update makes no result, and mends none.",
                    ),
                    ("Norway", None, "Noreg", None): (
                        "the row of the order's time",
                        "o4 is older than Finland's record, and comes after it. It finds the row that is there.",
                    ),
                },
            ),
            (
                "Go through the records in the order in which they stand: that is how they arrive.",
                "Do the timestamps matter? Does an update of the table touch orders that came before?",
                "o1: Norway, as there is no other name yet. o2 comes before Finland. o3 comes after Noreg, o4 after "
                "Finland.",
            ),
        ),
        Exercise(
            "rows_in_tasks",
            "Say in how many tasks a join is made, and how many rows they hold, with a table and a global one.",
            SaysEach(
                rows_held,
                f"With a table each of the {ROWS} rows is in one of {TASKS_OF_COUNTRIES} tasks; with a global table "
                f"each of {TASKS_OF_ORDERS} tasks has all of them.",
                typical_rows,
            ),
            (
                "A plain join brings equal keys together: both topics are cut in the same way. A global one does not.",
                "With a table the orders go through a repartition topic, cut as the countries are. With a global table "
                "they stay where they are.",
                "Table: a task for each of the two partitions of the countries, each row in one of them. Global table: "
                "a task for each of the six partitions of the orders, with all rows in each.",
            ),
        ),
        Exercise(
            "orders_in_full",
            "Give each order the names of its customer and of its country.",
            Runs(
                star,
                (
                    OWN_KEY,
                    TABLES_KEY,
                    Misconception(
                        "half of it found",
                        "An order came of which one name is not known. Only those that find both rows come out: two "
                        "inner joins, one after the other.",
                        half_matched_came,
                    ),
                    Misconception(
                        "code in place of name",
                        "Your results still have the codes of customers or countries. The joiner gets the order and "
                        "what was found: the name is what was found.",
                        codes_for_names,
                    ),
                ),
            ),
            (
                "Two global tables, two joins one after the other. What the first joiner makes is what the second "
                "selector sees.",
                "The first joiner has to keep the field that the second join looks up, and the total.",
                'orders.join(countries, lambda o, country: F.struct(o.customer, o.total, country.alias("country")), '
                "key_selector=lambda k, v: v.country), and the same with the customers",
            ),
        ),
    ),
)
