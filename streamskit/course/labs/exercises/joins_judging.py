"""How the answers of lab 06 are judged: what goes in and has to come out, and signs of typical mistakes."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.misconceptions import (
    Misconception,
    Sign,
    in_another_topic,
    nothing_came,
    silent_after,
)
from streamskit.course.labs.recording import Costume, Piped, Recording, Row

PEOPLE = {"a": "ann", "b": "ben", "c": "cleo", "d": "dora", "z": "zoe"}
HALF_HOUR = 18_000
"""100 ms of the recordings of two streams are half an hour of the stories: so many times as slow."""
MINUTE = 60_000
"""A millisecond of the recordings with tables is a minute of the stories."""

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


def orders_with_names() -> Recording:
    """Return the recorded join of orders with the table of those who gave them."""
    users = {"c1": "ann", "c2": "ben"}

    def told(topic: str, value: Any) -> Any:
        if topic == "orders":
            return {"order": value["id"], "user": users.get(value.get("customer"))}
        return value.replace("Bob", "Ben")

    topics = {"orders": "orders", "customers": "users", "out": "named-orders"}
    return Recording.of("joins-stream-table-rekeyed-inner", Costume(topics, {}, users, MINUTE, told))


def parcels_with_routes() -> Recording:
    """Return the recorded join of parcels with the global table of the ways to each city."""
    people, cities = {"1": "ann", "2": "ben", "3": "cleo", "5": "dora"}, {"de": "Oslo", "fr": "Rome"}
    spelled = words({"Germany": "ship", "France": "train", "Nowhere": "cart", "@": " by "})

    def told(topic: str, value: Any) -> Any:
        if topic == "stream" and value is not None:
            return {"id": value["id"], "city": cities.get(value.get("country"))}
        return spelled(topic, value)

    topics = {"stream": "parcels", "global": "routes", "out": "dispatches"}
    return Recording.of("joins-stream-global-inner", Costume(topics, {}, people | cities, MINUTE, told))


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


# ---- signs of two streams --------------------------------------------------------------------------------------------


def matched(rows: list[Row]) -> Counter[tuple[Any, str]]:
    """Return the pairs among results, by key and value, such as ("ann", "a1+e1")."""
    return Counter((row.key, row.value) for row in rows if _is_pair(row))


def unmatched(rows: list[Row]) -> dict[tuple[Any, Any], int]:
    """Return the results without a partner, by key and value, each with the step after which it came first."""
    return {(row.key, row.value): row.step for row in reversed(rows) if not _is_pair(row)}


def fewer_pairs(outcome: Outcome) -> bool:
    """All pairs that came are right, and some are missing."""
    return bool(matched(outcome.actual)) and matched(outcome.actual) < matched(outcome.expected)


def more_pairs(outcome: Outcome) -> bool:
    """All pairs are there, and others beside them."""
    return matched(outcome.actual) > matched(outcome.expected)


def bounds_turned(outcome: Outcome) -> bool:
    """Pairs are missing whose right record is the later one; others came whose right record is the earlier one."""
    due, came = matched(outcome.expected), matched(outcome.actual)
    missing, extra = due - came, came - due
    if not (missing and extra) or sides_turned(outcome):
        return False
    return all(_lag(outcome, *pair) > 0 for pair in missing) and all(_lag(outcome, *pair) < 0 for pair in extra)


def sides_turned(outcome: Outcome) -> bool:
    """Each pair is written the wrong way round."""
    turned = {(key, "+".join(reversed(value.split("+")))) for key, value in matched(outcome.actual)}
    return bool(turned & set(matched(outcome.expected)))


def joined_with_rows_of(topic: str) -> Sign:
    """Return a sign: a topic's records make no results, and each of the others finds the latest of them only."""

    def sign(outcome: Outcome) -> bool:
        latest: dict[Any, Any] = {}
        for record in outcome.recording.records:
            partners = {row.value.split("+")[1] for row in _results_of(outcome, record) if _is_pair(row)}
            if record.topic == topic:
                latest[record.key] = record.value
            elif partners - {latest.get(record.key)}:
                return False
        return silent_after(topic)(outcome)

    return sign


def none_unmatched(outcome: Outcome) -> bool:
    """The pairs are right, and what has no partner did not come."""
    return _same_pairs(outcome) and bool(unmatched(outcome.expected)) and not unmatched(outcome.actual)


def unmatched_not_asked(outcome: Outcome) -> bool:
    """The pairs are right, and what has no partner came where only pairs should."""
    return _same_pairs(outcome) and bool(unmatched(outcome.actual)) and not unmatched(outcome.expected)


def right_unmatched_missing(outcome: Outcome) -> bool:
    """What has no partner came from the left side only, where both sides are asked for."""
    return _has_lonely_right(outcome.expected) and not _has_lonely_right(outcome.actual) and bool(outcome.actual)


def right_unmatched_not_asked(outcome: Outcome) -> bool:
    """What has no partner came from the right side, too, where only the left one is asked for."""
    return _has_lonely_right(outcome.actual) and not _has_lonely_right(outcome.expected)


def unmatched_too_early(outcome: Outcome) -> bool:
    """The pairs are right, and something went out without a partner earlier than it should."""
    due, came = unmatched(outcome.expected), unmatched(outcome.actual)
    return _same_pairs(outcome) and any(came[row] < due[row] for row in due.keys() & came.keys())


def unmatched_too_late(outcome: Outcome) -> bool:
    """The pairs are right, and something without a partner came later than it should, or not in time to be seen."""
    due, came = unmatched(outcome.expected), unmatched(outcome.actual)
    return _same_pairs(outcome) and bool(came) and any(came.get(row, len(outcome.moments)) > due[row] for row in due)


def _is_pair(row: Row) -> bool:
    return isinstance(row.value, str) and "+" in row.value and NOTHING not in row.value


def _results_of(outcome: Outcome, record: Piped) -> list[Row]:
    return [row for moment in outcome.moments if moment.step is record for row in moment.actual]


def _same_pairs(outcome: Outcome) -> bool:
    return matched(outcome.actual) == matched(outcome.expected)


def _has_lonely_right(rows: list[Row]) -> bool:
    return any(isinstance(value, str) and value.startswith(f"{NOTHING}+") for _, value in unmatched(rows))


def _lag(outcome: Outcome, key: Any, pair: str) -> int:
    """Return by how much the right record of a pair is later than the left one."""
    times = {record.value: record.timestamp for record in outcome.recording.records if record.key == key}
    left, right, *_ = pair.split("+")
    return times.get(right, 0) - times.get(left, 0)


# ---- signs of a stream or a table with a table -----------------------------------------------------------------------


def never_met(outcome: Outcome) -> bool:
    """The topic that the task names is written to, and nothing has ever come there."""
    ends_there = all(topic in outcome.trial.outputs for topic in outcome.recording.outputs)
    return ends_there and nothing_came(outcome) and not in_another_topic(outcome) and not outcome.trial.error


# ---- mistakes that more than one exercise knows ----------------------------------------------------------------------


def table_for_stream(right: str) -> Misconception[Outcome]:
    """Return the mistake of a table in place of the right stream."""
    return Misconception(
        "a table where a stream is asked for",
        f"Your results come after one topic's records only, and each finds just the latest record of {right}. That is "
        "what a table does. Two streams meet in either order, and each record meets all those in its window.",
        joined_with_rows_of(right),
    )


SIDES_TURNED = Misconception(
    "sides swapped",
    "The pairs are written the wrong way round. The stream on which join is called is the left side: its value is the "
    "joiner's first argument.",
    sides_turned,
)
TOO_NARROW = Misconception(
    "window too narrow",
    "What came is right, and pairs are missing whose records are no further apart than the task allows. Both bounds "
    "belong to the window: exactly half an hour is still inside.",
    fewer_pairs,
)
TOO_WIDE = Misconception(
    "window too wide",
    "All pairs of the task are there, and others that are too far apart in time. A time difference counts to both "
    "sides, before and after, unless before(...) or after(...) changes one of them.",
    more_pairs,
)
LEFT_FOR_INNER = Misconception(
    "left or outer instead of inner",
    "Records without a partner came, too. The task asks for those that found one: an inner join.",
    unmatched_not_asked,
)
INNER_FOR_LEFT = Misconception(
    "inner instead of left or outer",
    "Only pairs came. What has no partner has to come as well, joined with null: that is what the left join does for "
    "one side, and the outer join for both.",
    none_unmatched,
)
NO_WINDOW = {"joined within a window": "no window"}
