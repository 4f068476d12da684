"""The exercises of lab 07: what a row remembers, by which key, and which of its updates are emitted."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from streamskit.course.labs.exercise import Runs, Says
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.loops import Due, Later, followed_by
from streamskit.course.labs.misconceptions import extra_row, silent_after
from streamskit.course.labs.recording import Costume, OutcomeRow, Piped, Recording
from streamskit.dsl.builder import StreamsBuilder
from streamskit.serdes import Serdes
from streamskit.testing import TopologyTestDriver

MINUTE = 60_000
"""A millisecond of the recordings is a minute of the stories."""

PEOPLE = {"a": "ann", "b": "ben", "u1": "ann", "u2": "ben", "u3": "cleo"}
PRODUCTS = {"red": "tv", "blue": "watch"}


# ---- the recordings in the lab's words -------------------------------------------------------------------------------


def balances() -> Recording:
    """Return the recorded sum that a reducer deletes when it is zero, and a payment that overdraws an account."""
    dress = Costume({"in": "payments", "out": "balances"}, {"sums": "balances"}, PEOPLE, MINUTE)
    recording, now = Recording.of("basic-reduce", dress, ["sums"]), 40 * MINUTE
    return followed_by(recording, Later(Piped("payments", "ben", -10, now), (Due("balances", "ben", -6, now),)))


def summaries() -> Recording:
    """Return the recorded aggregate whose type is not that of its records."""

    def told(_: str, value: Any) -> Any:
        summary = _renamed(value, {"count": "orders", "sum": "total", "values": "prices"})
        return {**summary, "prices": summary["prices"][-2:]} if isinstance(summary, dict) else summary

    dress = Costume(
        {"in": "prices", "out": "summaries"}, {"stats": "summaries"}, {"a": "tv", "b": "watch"}, MINUTE, told
    )
    return Recording.of("basic-aggregate", dress, ["stats"])


def favourites() -> Recording:
    """Return the recorded count by the value, in which an empty value belongs to nobody."""
    names = {"in": "votes", "out": "favourites"}
    dress = Costume(names, {"counts": "favourites"}, PEOPLE | PRODUCTS, MINUTE, lambda _, v: PRODUCTS.get(v, v))
    return Recording.of("basic-group-by-count", dress, ["counts"])


def baskets() -> Recording:
    """Return the recorded lists of words, which one of the words deletes."""
    items = dict(zip("abcdefg", ("milk", "bread", "salt", "rice", "tea", "jam", "figs"), strict=True)) | {
        "reset": "pay"
    }

    def told(_: str, value: Any) -> Any:
        if isinstance(value, list):
            return [items[word] for word in value]
        return value and " ".join(items[word] for word in value.split())

    carts = {"k1": "cart-1", "k2": "cart-2", "k3": "cart-3"}
    dress = Costume({"in": "scans", "out": "baskets"}, {"words": "baskets"}, carts, MINUTE, told)
    return Recording.of("ktable-cache-off", dress, ["words"])


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    return {names[name]: part for name, part in value.items()} if isinstance(value, dict) else value


# ---- two streams into one table: a plain fold ------------------------------------------------------------------------

TRADE = tuple(
    Piped(topic, product, amount, minute * MINUTE)
    for topic, product, amount, minute in (
        ("sales", "tv", 900, 0),
        ("sales", "watch", 250, 2),
        ("returns", "tv", 900, 5),
        ("returns", "radio", 40, 6),
        ("sales", "tv", 850, 4),
        ("sales", None, 70, 7),
        ("returns", "watch", None, 8),
        ("sales", "radio", 40, 9),
        ("returns", "tv", 50, 12),
    )
)
"""Sales and returns, one of them without a key and one without a value; a radio comes back before it is sold."""


def folded(of_returns: int) -> Iterator[OutcomeRow]:
    """Fold the trades by product, each return times `of_returns`; yield a row for each record that counts."""
    totals: dict[str, int] = defaultdict(int)
    times: dict[str, int] = defaultdict(int)
    for number, record in enumerate(TRADE):
        if record.key is not None and record.value is not None:
            totals[record.key] += record.value * (of_returns if record.topic == "returns" else 1)
            times[record.key] = max(times[record.key], record.timestamp)
            yield OutcomeRow(number, record.key, totals[record.key], times[record.key])


def net_sales() -> Recording:
    """Return the trade, folded in plain Python."""
    rows = tuple(folded(-1))
    finals = {row.key: row._replace(step=-1) for row in rows}
    return Recording(TRADE, {"net-sales": rows}, {"net-sales": tuple(finals.values())}, source="a plain sum in Python")


# ---- what the cache emits --------------------------------------------------------------------------------------------

COMMITS = (
    [("ann", 5, 0), ("ann", 7, 1), ("ben", 3, 2), ("ann", 1, 3)],
    [("ben", 4, 4), ("ben", 4, 5), ("cleo", 9, 6)],
)
"""The payments of two commit intervals; the notebook shows them."""


def cached_updates() -> int:
    """Run the sum of the payments with the cache, a micro-batch for each commit interval; count what is emitted."""
    builder = StreamsBuilder()
    payments = builder.stream("payments", value=Serdes.long()).group_by_key()
    payments.reduce(lambda total, payment: total + payment).to_stream().to("totals")
    with TopologyTestDriver(builder.build(), cache=True) as driver:
        for records in COMMITS:
            driver.create_input_topic("payments").pipe_records(list(records))
        return len(driver.create_output_topic("totals").read_records_to_list())


# ---- the lab ---------------------------------------------------------------------------------------------------------

LAB = lab(
    "07-stateful-operations",
    customer_balance=Runs(
        balances,
        signs={"zero kept instead of deleted": extra_row(lambda row: row.value == 0)},
    ),
    order_summary=Runs(
        summaries,
    ),
    favourite_products=Runs(
        favourites,
        signs={
            "counted by the key that was there": extra_row(lambda row: row.key in PEOPLE.values()),
            "empty vote counted": extra_row(lambda row: row.key == ""),
        },
        partitions=3,
    ),
    net_sales=Runs(
        net_sales,
        signs={"returns left out": silent_after("returns")},
    ),
    updates_with_cache=Says(
        cached_updates,
        "The payments were piped in two micro-batches with the cache on, and the updates counted: one for each "
        "key and commit interval in which it has changed.",
        wrong={
            "cache forgotten": 7,
            "cache that is never emptied": 3,
            "one update for each commit": 2,
        },
    ),
    shopping_baskets=Runs(
        baskets,
        signs={
            "the word kept as an item": extra_row(lambda row: "pay" in (row.value or ())),
            "emptied instead of deleted": extra_row(lambda row: row.value == []),
        },
    ),
)
