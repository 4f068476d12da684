"""Lab 06: which records find each other, by which key, and what becomes of those that do not."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit.api.windows import JoinWindows
from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Runs
from streamskit.course.labs.exercises.joins_live import (
    ERRORS,
    WRONG,
    judge_names_of_customers,
    orders_and_customers,
)
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
from streamskit.course.labs.missions import Lives
from streamskit.course.labs.recording import Costume, Piped, Recording, Row
from streamskit.dsl.builder import StreamsBuilder
from streamskit.serdes import Serdes

PEOPLE = {"a": "ann", "b": "ben", "c": "cleo", "d": "dora", "z": "zoe"}
HALF_HOUR = 18_000
"""100 ms of the recordings of two streams are half an hour of the stories: so many times as slow."""
MINUTE = 60_000
"""A millisecond of the recordings with tables is a minute of the stories."""

NOTHING = "nothing"
"""How the stories write a side that is missing."""

ORDER = Serdes.json("order string, user string")
OPEN_ORDER = Serdes.json("user string, weight long")

Answer = Callable[[StreamsBuilder], None]


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
    """Return the recorded join with two bounds, and an order of another day, with which a4 is given up."""
    recording = two_streams("joins-stream-stream-asymmetric", "appliance-orders", "electronic-orders", "bundles")
    later = Piped("electronic-orders", "zoe", "e9", recording.records[-1].timestamp + 1440 * MINUTE)
    return replace(recording, steps=(*recording.steps, later))


def settled() -> Recording:
    """Return the recorded outer join, and two payments more: at the first a checkout may still be paid, then not."""
    recording = two_streams("joins-stream-stream-outer-grace", "checkouts", "payments", "accounts")
    last, number = recording.records[-1], len(recording.steps)
    closes = last.timestamp + (30 + 45) * MINUTE
    steps = (Piped("payments", "yan", "p10", closes), Piped("payments", "yan", "p11", closes + 1))
    given_up = Row(number + 1, last.key, f"{last.value}+{NOTHING}", last.timestamp)
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


def right_alone(outcome: Outcome) -> bool:
    """Something came from the right side without a partner, where only the left side is kept."""
    return _has_right_alone(outcome.actual) and not _has_right_alone(outcome.expected)


def looked_up(topic: str) -> Sign:
    """Return a sign: a topic's records make no results, and the others one at most, as those do that ask a table."""
    silent = silent_after(topic)
    return lambda outcome: silent(outcome) and max(Counter(row.step for row in outcome.actual).values()) == 1


def right_alone_missing(outcome: Outcome) -> bool:
    """Only the left side came without a partner, where both sides are kept."""
    left_alone = any(str(row.value).endswith(f"+{NOTHING}") for row in outcome.actual)
    return left_alone and _has_right_alone(outcome.expected) and not _has_right_alone(outcome.actual)


def _has_right_alone(rows: list[Row]) -> bool:
    return any(str(row.value).startswith(f"{NOTHING}+") for row in rows)


def matched(rows: list[Row]) -> Counter[tuple[Any, str]]:
    """Return the pairs among results, by key and value, such as ("ann", "a1+e1")."""
    return Counter((row.key, row.value) for row in rows if row.value and NOTHING not in row.value)


WINDOWS = {"window too narrow": fewer_pairs, "window too wide": more_pairs}


# ---- answers of two streams ------------------------------------------------------------------------------------------


class TwoStreams:
    """Answers that join two topics, of which each is a stream unless it is said otherwise.

    Args:
        left: the topic on whose stream join is called.
        right: the other one.
        target: where the pairs go.
    """

    def __init__(self, left: str, right: str, target: str) -> None:
        self._left, self._right, self._target = left, right, target

    def __call__(
        self, windows: JoinWindows | None, kind: str = "join", read: str = "stream", turned: bool = False
    ) -> Answer:
        """Return the answer that joins in these windows.

        Args:
            windows: none for a join with a table.
            kind: of the join, as its method is called.
            read: how the right topic is read: "stream" or "table".
            turned: whether join is called on the right stream.
        """

        def answer(builder: StreamsBuilder) -> None:
            one, other = builder.stream(self._left), getattr(builder, read)(self._right)
            one, other = (other, one) if turned else (one, other)
            getattr(one, kind)(other, pair, *([windows] if windows else [])).to(self._target)

        return answer


def pair(left: Column, right: Column) -> Column:
    """Write a pair as the lab's joiner does."""
    return F.concat_ws("+", F.coalesce(left, F.lit(NOTHING)), F.coalesce(right, F.lit(NOTHING)))


def apart(difference: str | int = "30 minutes", grace: str = "0 minutes") -> JoinWindows:
    """Return windows for records that are so far apart."""
    return JoinWindows.of_time_difference_and_grace(difference, grace)


bundles = TwoStreams("appliance-orders", "electronic-orders", "bundles")
calls = TwoStreams("appliance-orders", "electronic-orders", "advice-calls")
accounts = TwoStreams("checkouts", "payments", "accounts")
SOON = apart().before("6 minutes")


# ---- answers with tables ---------------------------------------------------------------------------------------------


def named(orders: str = "stream", users: str = "table", rekeyed: bool = True, kind: str = "join", **how: Any) -> Answer:
    """Return an answer that joins orders with their users' names."""

    def answer(builder: StreamsBuilder) -> None:
        left, right = getattr(builder, orders)("orders", value=ORDER), getattr(builder, users)("users")
        left = left.select_key(lambda v: v.user) if rekeyed else left
        found = getattr(left, kind)(right, lambda order, name: F.concat(order.order, F.lit(":"), name), **how)
        (found.to_stream() if orders == "table" else found).to("named-orders")

    return answer


def rekeyed_after(builder: StreamsBuilder) -> None:
    """Join by the orders' ids, and choose the user as the key when it is too late."""
    orders, users = builder.stream("orders", value=ORDER), builder.table("users")
    found = orders.join(users, lambda order, name: F.struct(order.order, order.user, name.alias("name")))
    by_user = found.select_key(lambda v: v.user)
    by_user.map_values(lambda v: F.concat(v.order, F.lit(":"), v["name"])).to("named-orders")


def users_first(builder: StreamsBuilder) -> None:
    """Call join on the table."""
    orders, users = builder.stream("orders", value=ORDER), builder.table("users")
    users.join(orders, lambda name, order: F.concat(order.order, F.lit(":"), name)).to_stream().to("named-orders")


def followed(orders: str = "table", users: str = "table", kind: str = "join", **how: Any) -> Answer:
    """Return an answer that joins open orders with the cities of their users."""

    def answer(builder: StreamsBuilder) -> None:
        left, right = getattr(builder, orders)("open-orders", value=OPEN_ORDER), getattr(builder, users)("users")
        found = getattr(left, kind)(
            right, lambda order, city: F.concat(order.weight.cast("string"), F.lit(" kg to "), city), **how
        )
        (found.to_stream() if orders == "table" else found).to("deliveries")

    return answer


# ---- the lab ---------------------------------------------------------------------------------------------------------

LAB = lab(
    "06-joins",
    bundle_deals=Runs(
        orders_of_both,
        wrong={
            "sides swapped": [bundles(SOON, turned=True), bundles(apart().after("6 minutes"), turned=True)],
            "a table where a stream is asked for": [bundles(None, kind, "table") for kind in ("join", "left_join")],
            "before and after swapped": [
                bundles(apart(grace=late).after("6 minutes")) for late in ("0 minutes", "1 day")
            ],
            "window too narrow": [bundles(apart("6 minutes")), bundles(apart(30 * MINUTE - 1).before("6 minutes"))],
            "window too wide": [bundles(apart()), bundles(apart("1 hour").before("6 minutes"))],
            "left or outer instead of inner": [bundles(SOON, kind) for kind in ("left_join", "outer_join")],
            "no window": bundles(None),
        },
        signs={
            "sides swapped": sides_turned,
            "a table where a stream is asked for": looked_up("electronic-orders"),
            **WINDOWS,
        },
        errors={"joined within a window": "no window"},
    ),
    advice_calls=Runs(
        lambda: two_streams(
            "joins-stream-stream-left", "appliance-orders", "electronic-orders", "advice-calls", until=12
        ),
        wrong={
            "sides swapped": [calls(apart(), kind, turned=True) for kind in ("left_join", "join", "outer_join")],
            "a table where a stream is asked for": [calls(None, kind, "table") for kind in ("left_join", "join")],
            "inner instead of left or outer": [calls(apart(grace=late)) for late in ("0 minutes", "1 day")],
            "outer instead of left": [calls(apart(far), "outer_join") for far in ("30 minutes", "1 hour")],
            "window too narrow": [calls(apart(far), "left_join") for far in ("6 minutes", 30 * MINUTE - 1)],
            "window too wide": calls(apart("1 hour"), "left_join"),
            "a grace that was not asked for": [
                calls(apart(grace=late), "left_join") for late in ("10 minutes", "30 minutes", "1 day")
            ],
            "no window": calls(None, "left_join"),
        },
        signs={
            "sides swapped": sides_turned,
            "a table where a stream is asked for": looked_up("electronic-orders"),
            "outer instead of left": right_alone,
            **WINDOWS,
            "a grace that was not asked for": too_late,
        },
        errors={"joined within a window": "no window"},
    ),
    settled_accounts=Runs(
        settled,
        wrong={
            "sides swapped": accounts(apart(grace="45 minutes"), "outer_join", turned=True),
            "a table where a stream is asked for": [accounts(None, kind, "table") for kind in ("left_join", "join")],
            "inner instead of left or outer": [accounts(apart(grace=late)) for late in ("45 minutes", "1 day")],
            "left instead of outer": [accounts(apart(grace=late), "left_join") for late in ("45 minutes", "0 minutes")],
            "window too narrow": accounts(apart("6 minutes", "45 minutes"), "outer_join"),
            "window too wide": accounts(apart("1 hour", "45 minutes"), "outer_join"),
            "grace forgotten": [accounts(apart(grace=late), "outer_join") for late in ("0 minutes", "15 minutes")],
            "a longer grace than asked for": [
                accounts(apart(grace=late), "outer_join")
                for late in ("1 day", "75 minutes", "60 minutes", "46 minutes")
            ],
            "no window": accounts(None, "outer_join"),
        },
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
        wrong={
            "wrong key before the join": [named(rekeyed=False), rekeyed_after],
            "a table where a stream is asked for": named("table", rekeyed=False, foreign_key=lambda v: v.user),
            "left instead of inner": named(kind="left_join"),
            "GlobalKTable instead of a re-keyed stream": named(
                users="global_table", rekeyed=False, key_selector=lambda v: v.user
            ),
            "sides swapped": users_first,
        },
        signs={
            "wrong key before the join": never_met,
            "a table where a stream is asked for": results_after("users"),
            "left instead of inner": results_after("orders"),
            "GlobalKTable instead of a re-keyed stream": wrong_keys,
        },
        errors={"a table can be joined with": "sides swapped"},
    ),
    names_of_customers=Lives(
        "names_of_customers", orders_and_customers, judge_names_of_customers, wrong=WRONG, errors=ERRORS
    ),
    open_deliveries=Runs(
        deliveries,
        wrong={
            "joined by the orders' own keys": followed(),
            "a stream where a table is asked for": [
                followed("stream", "global_table", key_selector=lambda v: v.user),
                followed("table", "stream"),
            ],
            "left instead of inner": followed(kind="left_join", foreign_key=lambda v: v.user),
        },
        signs={
            "joined by the orders' own keys": never_met,
            "a stream where a table is asked for": silent_after("users"),
            "left instead of inner": results_after("open-orders"),
        },
        errors={"a table can be joined with": "a stream where a table is asked for"},
    ),
)
