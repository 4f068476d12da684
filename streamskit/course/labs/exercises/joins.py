"""Lab 05: which records find each other, by which key, and what becomes of those that do not."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Runs, Verdict, mistaken, right, wrong
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.misconceptions import (
    Sign,
    never_met,
    results_after,
    silent_after,
    too_early,
    too_late,
    wrong_keys,
)
from streamskit.course.labs.missions import Lives, Site
from streamskit.course.labs.recording import Costume, OutcomeRow, Piped, Recording
from streamskit.dsl.builder import StreamsBuilder
from streamskit.topology import Topology
from streamskit.topology.nodes import GlobalTableSource

PEOPLE = {"a": "ann", "b": "ben", "c": "cleo", "d": "dora", "z": "zoe"}
HALF_HOUR = 18_000
"""100 ms of the recordings of two streams are half an hour of the stories: this many times slower."""
MINUTE = 60_000
"""A millisecond of the recordings with tables is a minute of the stories."""

TOO_LATE = "e8"
"""The electronic order that comes when the window of each appliance order of its user has closed."""

NOTHING = "nothing"
"""How the stories write a side that is missing."""


# ---- the recordings in the lab's words -------------------------------------------------------------------------------


def words(spelled: Mapping[str, str]) -> Callable[[str, Any], Any]:
    """Return a costume's `value`, which writes these words in place of others wherever they stand in a text."""
    pattern = re.compile("|".join(map(re.escape, spelled)))
    return lambda _, value: value and pattern.sub(lambda found: spelled[found[0]], value)


def two_streams(vector: str, left: str, right: str, target: str, until: int | None = None) -> Recording:
    """Return a recorded join of two streams; its records are named by their topic's first letter."""
    spelled = {"null": NOTHING, "l": left[0], "r": right[0]}
    topics = {"left": left, "right": right, "out": target}
    return Recording.of(vector, Costume(topics, {}, PEOPLE, HALF_HOUR, words(spelled)), until=until)


def orders_of_both() -> Recording:
    """Return the recorded join with two bounds, an order that is too late for it, and one of another day.

    a4 expires when the appliance orders have come 36 minutes further, as far as the window reaches; there is no grace.
    """
    recording = two_streams("joins-stream-stream-asymmetric", "appliance-orders", "electronic-orders", "bundles")
    a4 = recording.records[-1]
    closing = Piped("appliance-orders", "zoe", "a9", a4.timestamp + 36 * MINUTE)
    late = Piped("electronic-orders", a4.key, TOO_LATE, a4.timestamp)
    another_day = Piped("electronic-orders", "zoe", "e9", a4.timestamp + 1440 * MINUTE)
    return replace(recording, steps=(*recording.steps, closing, late, another_day))


def settled() -> Recording:
    """Return the recorded outer join, and two more payments: at the first a checkout may still be paid, then not."""
    recording = two_streams("joins-stream-stream-outer-grace", "checkouts", "payments", "accounts")
    last, number = recording.records[-1], len(recording.steps)
    closes = last.timestamp + (30 + 45) * MINUTE
    steps = (Piped("payments", "yan", "p10", closes), Piped("payments", "yan", "p11", closes + 1))
    given_up = OutcomeRow(number + 1, last.key, f"{last.value}+{NOTHING}", last.timestamp)
    outputs = {topic: (*rows, given_up) for topic, rows in recording.outputs.items()}
    return replace(recording, steps=(*recording.steps, *steps), outputs=outputs)


def orders_with_names() -> Recording:
    """Return the recorded join of orders with the table of those who gave them."""
    users = {"c1": "ann", "c2": "ben"}

    def told(topic: str, value: Any) -> Any:
        if topic == "orders":
            return {"order": value["id"], "user": users.get(value.get("customer"))}
        return value.replace("Bob", "Ben")

    topics = {"orders": "orders", "customers": "users", "out": "named-orders"}
    return Recording.of("joins-stream-table-rekeyed-inner", Costume(topics, {}, users, MINUTE, told))


def deliveries() -> Recording:
    """Return the recorded join of two tables by a foreign key: orders, and where their users live."""
    users = {"c1": "ann", "c2": "ben", "c3": "cleo", "c7": "gus", "c8": "hal", "c9": "ida"}
    spelled = words({"Anna": "Rome", "Ann": "Oslo", "Bob": "Lima", "Nobody's": "Bonn", "/": " kg to "})

    def told(topic: str, value: Any) -> Any:
        if topic == "orders" and value is not None:
            return {"user": users.get(value.get("customer")), "weight": value["total"]}
        return spelled(topic, value)

    topics = {"orders": "open-orders", "customers": "users", "out": "deliveries"}
    return Recording.of("joins-table-table-foreign-key", Costume(topics, {}, users, MINUTE, told), until=10)


# ---- signs -----------------------------------------------------------------------------------------------------------


def sides_turned(outcome: Outcome) -> bool:
    """Each pair is written the wrong way round."""
    turned = {(key, "+".join(reversed(value.split("+")))) for key, value in matched(outcome.actual)}
    return bool(turned & set(matched(outcome.expected)))


def fewer_pairs(outcome: Outcome) -> bool:
    """All pairs that came are right, and some are missing."""
    return bool(matched(outcome.actual)) and matched(outcome.actual) < matched(outcome.expected)


def more_pairs(outcome: Outcome) -> bool:
    """All pairs are there, and others beside them."""
    return matched(outcome.actual) > matched(outcome.expected)


def late_order_paired(outcome: Outcome) -> bool:
    """Only the order that is too late made pairs that it should not."""
    records = [outcome.piped(moment) for moment in outcome.differing]
    return more_pairs(outcome) and all(record is not None and record.value == TOO_LATE for record in records)


def right_alone(outcome: Outcome) -> bool:
    """Something came from the right side without a partner, where only the left side is kept."""
    return _has_right_alone(outcome.actual) and not _has_right_alone(outcome.expected)


def looked_up(topic: str) -> Sign:
    """Return a sign: a topic's records make no results, and the others at most one, as those that query a table."""
    silent = silent_after(topic)
    return lambda outcome: silent(outcome) and max(Counter(row.step for row in outcome.actual).values()) == 1


def right_alone_missing(outcome: Outcome) -> bool:
    """Only the left side came without a partner, where both sides are kept."""
    left_alone = any(str(row.value).endswith(f"+{NOTHING}") for row in outcome.actual)
    return left_alone and _has_right_alone(outcome.expected) and not _has_right_alone(outcome.actual)


def _has_right_alone(rows: list[OutcomeRow]) -> bool:
    return any(str(row.value).startswith(f"{NOTHING}+") for row in rows)


def matched(rows: list[OutcomeRow]) -> Counter[tuple[Any, str]]:
    """Return the pairs among results, by key and value, such as ("ann", "a1+e1")."""
    return Counter((row.key, row.value) for row in rows if "+" in str(row.value) and NOTHING not in row.value)


WINDOWS = {"window too narrow": fewer_pairs, "window too wide": more_pairs}


# ---- 5: two topics of different size ---------------------------------------------------------------------------------


NAMES = {f"c{n}": name for n, name in enumerate(("Ann", "Ben", "Cleo", "Dora", "Emil", "Fay", "Gus", "Hal", "Ida"), 1)}
ORDERS = [(f"c{n % 9 + 1}", f"o{n}") for n in range(1, 25)]
UNKNOWN = ("c99", "o99")


def orders_and_customers(site: Site) -> None:
    """Make the topics: orders with four partitions, and customers with three, which already has its records."""
    site.create_topics(orders=4, customers=3, named_orders=1)
    site.broker.produce(site.topic("customers"), list(NAMES.items()))


def judge_names_of_customers(site: Site, topology: Topology) -> Verdict:
    """Judge a topology by the orders that come out with a name."""
    if any(isinstance(node, GlobalTableSource) for nodes in topology.sub_topologies() for node in nodes):
        return mistaken("a copy in every instance")
    with site.application(topology) as streams:
        streams.await_processed("60 seconds")
        site.broker.produce(site.topic("orders"), [*ORDERS, UNKNOWN])
        streams.await_processed("60 seconds")
    found = site.broker.consume(site.topic("named-orders"))
    came = sorted(zip(found["key"], found["value"], strict=True))
    due = sorted((customer, f"{order}:{NAMES[customer]}") for customer, order in ORDERS)
    if any(key == UNKNOWN[0] for key, _ in came):
        return mistaken("left instead of inner")
    if came != due:
        missing = len([each for each in due if each not in came])
        return wrong(f"{missing} of {len(due)} orders did not come out with the name of their customer.")
    return right(
        f"{len(due)} orders in four partitions were joined with {len(NAMES)} customers in three, through a repartition "
        "topic; every order of a known customer has the name."
    )


# ---- wrong answers ---------------------------------------------------------------------------------------------------


def pair(order: Column, name: Column) -> Column:
    """Write an order with its customer's name."""
    return F.concat(order, F.lit(":"), name)


def joined(
    moved: Callable[[Any], Any] = lambda orders: orders, customers: str = "table", kind: str = "join"
) -> Callable[[Site], Topology]:
    """Return an answer that changes the orders in this way before it joins them with the customers."""

    def answer(site: Site) -> Topology:
        builder = StreamsBuilder()
        orders = moved(builder.stream(site.topic("orders")))
        known = getattr(builder, customers)(site.topic("customers"))
        how = {"key_selector": lambda k, v: k} if customers == "global_table" else {}
        getattr(orders, kind)(known, pair, **how).to(site.topic("named-orders"))
        return builder.build()

    return answer


ERRORS = {"brings together": "topics of different size"}
"""The message of a start that is refused."""


# ---- the lab ---------------------------------------------------------------------------------------------------------

LAB = lab(
    "05-joins",
    bundle_deals=Runs(
        orders_of_both,
        signs={
            "sides swapped": sides_turned,
            "a table where a stream is asked for": looked_up("electronic-orders"),
            "a grace that was not asked for": late_order_paired,
            **WINDOWS,
        },
        errors={"joined within a window": "no window"},
    ),
    advice_calls=Runs(
        lambda: two_streams(
            "joins-stream-stream-left", "appliance-orders", "electronic-orders", "advice-calls", until=12
        ),
        signs={
            "sides swapped": sides_turned,
            "a table where a stream is asked for": looked_up("electronic-orders"),
            "outer instead of left": right_alone,
            **WINDOWS,
        },
        errors={"joined within a window": "no window"},
    ),
    settled_accounts=Runs(
        settled,
        signs={
            "sides swapped": sides_turned,
            "a table where a stream is asked for": looked_up("payments"),
            "left instead of outer": right_alone_missing,
            **WINDOWS,
            "grace forgotten": too_early,
            "a longer grace than asked for": too_late,
        },
        errors={"joined within a window": "no window"},
    ),
    named_orders=Runs(
        orders_with_names,
        signs={
            "wrong key before the join": never_met,
            "a table where a stream is asked for": results_after("users"),
            "left instead of inner": results_after("orders"),
            "GlobalKTable instead of a re-keyed stream": wrong_keys,
        },
        errors={"a table can be joined with": "sides swapped"},
        partitions=3,
    ),
    names_of_customers=Lives(
        "names_of_customers", orders_and_customers, judge_names_of_customers, errors=ERRORS, returns_topology=True
    ),
    open_deliveries=Runs(
        deliveries,
        signs={
            "joined by the orders' own keys": never_met,
            "a stream where a table is asked for": silent_after("users"),
            "left instead of inner": results_after("open-orders"),
        },
        errors={"a table can be joined with": "a stream where a table is asked for"},
        partitions=3,
    ),
)
