"""The exercises of lab 07: what a row remembers, by which key, and which of its updates go out."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyspark.sql import functions as F

from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Runs, Says
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.misconceptions import silent_after
from streamskit.course.labs.recording import Costume, Piped, Recording, Row
from streamskit.dsl.builder import StreamsBuilder
from streamskit.serdes import Serdes
from streamskit.testing import TopologyTestDriver

MINUTE = 60_000
"""A millisecond of the recordings is a minute of the stories."""

PEOPLE = {"a": "ann", "b": "ben", "u1": "ann", "u2": "ben", "u3": "cleo"}
PRODUCTS = {"red": "tv", "blue": "watch"}


# ---- the recordings in the lab's words -------------------------------------------------------------------------------


def balances() -> Recording:
    """Return the recorded sum that a reducer deletes when it is zero."""
    dress = Costume({"in": "payments", "out": "balances"}, {"sums": "balances"}, PEOPLE, MINUTE)
    return Recording.of("basic-reduce", dress, ["sums"])


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


def folded(of_returns: int) -> Iterator[Row]:
    """Fold the trade by product, each return times `of_returns`; a row for each record that counts."""
    totals: dict[str, int] = defaultdict(int)
    times: dict[str, int] = defaultdict(int)
    for number, record in enumerate(TRADE):
        if record.key is not None and record.value is not None:
            totals[record.key] += record.value * (of_returns if record.topic == "returns" else 1)
            times[record.key] = max(times[record.key], record.timestamp)
            yield Row(number, record.key, totals[record.key], times[record.key])


def net_sales() -> Recording:
    """Return the trade, folded in plain Python."""
    rows = tuple(folded(-1))
    finals = {row.key: row._replace(step=-1) for row in rows}
    return Recording(TRADE, {"net-sales": rows}, {"net-sales": tuple(finals.values())}, source="a plain sum in Python")


# ---- what the cache lets out -----------------------------------------------------------------------------------------

COMMITS = (
    [("ann", 5, 0), ("ann", 7, 1), ("ben", 3, 2), ("ann", 1, 3)],
    [("ben", 4, 4), ("ben", 4, 5), ("cleo", 9, 6)],
)
"""The payments of two commit intervals; the notebook shows them."""


def cached_updates() -> int:
    """Run the sum of the payments with the cache, a micro-batch for each commit interval; count what goes out."""
    builder = StreamsBuilder()
    payments = builder.stream("payments", value=Serdes.long()).group_by_key()
    payments.reduce(lambda total, payment: total + payment).to_stream().to("totals")
    with TopologyTestDriver(builder.build(), cache=True) as driver:
        for records in COMMITS:
            driver.create_input_topic("payments").pipe_records(list(records))
        return len(driver.create_output_topic("totals").read_records_to_list())


# ---- signs -----------------------------------------------------------------------------------------------------------


def zero_kept(outcome: Outcome) -> bool:
    """Where a row should be deleted, it is kept with the value zero."""
    deleted = [m for m in outcome.moments if any(row.value is None for row in m.expected)]
    return any(row.value == 0 for moment in deleted for row in moment.extra)


def counted_by_voter(outcome: Outcome) -> bool:
    """Results stand under those who vote."""
    return any(row.key in PEOPLE.values() for row in outcome.actual)


def empty_counted(outcome: Outcome) -> bool:
    """An empty vote has a row of its own."""
    return any(row.key == "" for row in outcome.actual)


def word_kept(outcome: Outcome) -> bool:
    """The word that empties a basket lies in one."""
    return any("pay" in (row.value or ()) for row in outcome.actual)


def emptied(outcome: Outcome) -> bool:
    """A basket that should be deleted is an empty list."""
    return any(row.value == [] for row in outcome.actual)


# ---- answers ---------------------------------------------------------------------------------------------------------

Answer = Callable[[StreamsBuilder], None]
LONG = Serdes.long()
SUMMARY = Serdes.json("orders long, total long, prices array<long>")
BASKET = Serdes.json("array<string>")


def reduced(reducer: Callable[[int, int], int | None]) -> Answer:
    """Return the answer that keeps what this reducer returns."""

    def answer(builder: StreamsBuilder) -> None:
        payments = builder.stream("payments", value=LONG).group_by_key()
        payments.reduce(reducer, "balances").to_stream().to("balances")

    return answer


def summed(orders: int = 0, adder: Callable[..., Any] | None = None, last: int = 2) -> Answer:
    """Return the answer whose initializer has so many orders, and which keeps so many prices or has another adder."""

    def add(product: str, price: int, summary: dict[str, Any]) -> dict[str, Any]:
        prices = [*summary["prices"], price][-last:]
        return {"orders": summary["orders"] + 1, "total": summary["total"] + price, "prices": prices}

    def answer(builder: StreamsBuilder) -> None:
        grouped = builder.stream("prices", value=LONG).group_by_key()
        nothing = {"orders": orders, "total": 0, "prices": []}
        grouped.aggregate(lambda: nothing, adder or add, "summaries", value=SUMMARY).to_stream().to("summaries")

    return answer


def anew(product: str, price: int, summary: dict[str, Any]) -> dict[str, Any]:
    """Make a summary of one order."""
    return {"orders": 1, "total": price, "prices": [price]}


def from_the_list(product: str, price: int, summary: dict[str, Any]) -> dict[str, Any]:
    """Count and add up the prices that are kept."""
    prices = [*summary["prices"], price][-2:]
    return {"orders": len(prices), "total": sum(prices), "prices": prices}


def by_voter(builder: StreamsBuilder) -> None:
    """Count how often each person has voted."""
    votes = builder.stream("votes").filter(lambda v: v != "")
    votes.group_by_key().count("favourites").to_stream().to("favourites")


def all_votes(builder: StreamsBuilder) -> None:
    """Count empty votes, too."""
    builder.stream("votes").group_by(lambda v: v).count("favourites").to_stream().to("favourites")


def net(sign: int) -> Answer:
    """Return the answer that adds returns with this sign."""

    def answer(builder: StreamsBuilder) -> None:
        sold, returned = (builder.stream(topic, value=LONG).group_by_key() for topic in ("sales", "returns"))
        both = sold.cogroup(lambda product, amount, total: total + amount)
        both = both.cogroup(returned, lambda product, amount, total: total + sign * amount)
        both.aggregate(lambda: 0, "net-sales", value=LONG).to_stream().to("net-sales")

    return answer


def sales_alone(builder: StreamsBuilder) -> None:
    """Add up what is sold, and read the returns for nothing."""
    builder.stream("returns", value=LONG).filter(lambda v: F.lit(False)).to("net-sales")
    sold = builder.stream("sales", value=LONG).group_by_key()
    sold.reduce(lambda total, amount: total + amount, "net-sales").to_stream().to("net-sales")


def joined_sums(builder: StreamsBuilder) -> None:
    """Join the sums of both topics."""
    sold, returned = (
        builder.stream(topic, value=LONG).group_by_key().reduce(lambda total, amount: total + amount)
        for topic in ("sales", "returns")
    )
    both = sold.join(returned, lambda sales, returns: sales - returns, materialized="net-sales")
    both.to_stream().to("net-sales")


def baskets_with(paid: Callable[[list[str], str], list[str] | None], apart: bool = True) -> Answer:
    """Return the answer that makes this of a basket when it is paid, an item at a time or a scan."""

    def put(cart: str, item: str, basket: list[str]) -> list[str] | None:
        for each in item.split(" "):
            basket = paid(basket, each) if each == "pay" else [*(basket or []), each]  # type: ignore[assignment]
        return basket

    def answer(builder: StreamsBuilder) -> None:
        scans = builder.stream("scans")
        items = scans.flat_map_values(lambda v: F.split(v, " ")) if apart else scans
        items.group_by_key().aggregate(list, put, "baskets", value=BASKET).to_stream().to("baskets")

    return answer


# ---- the lab ---------------------------------------------------------------------------------------------------------

LAB = lab(
    "07-stateful-operations",
    customer_balance=Runs(
        balances,
        wrong={
            "zero kept instead of deleted": reduced(lambda kept, paid: kept + paid),
            "last payment instead of the sum": [
                reduced(lambda kept, paid: paid),
                reduced(lambda kept, paid: paid or None),
            ],
        },
        signs={"zero kept instead of deleted": zero_kept},
    ),
    order_summary=Runs(
        summaries,
        wrong={
            "initializer that counts": summed(orders=1),
            "aggregate forgotten": summed(adder=anew),
            "a row that grows for ever": summed(last=1000),
            "counted from the list": summed(adder=from_the_list),
        },
    ),
    favourite_products=Runs(
        favourites,
        wrong={"counted by the key that was there": by_voter, "empty vote counted": all_votes},
        signs={"counted by the key that was there": counted_by_voter, "empty vote counted": empty_counted},
    ),
    net_sales=Runs(
        net_sales,
        wrong={
            "returns added": net(sign=1),
            "returns left out": sales_alone,
            "a join instead of a cogroup": joined_sums,
        },
        signs={"returns left out": silent_after("returns")},
    ),
    updates_with_cache=Says(
        cached_updates,
        "The payments were piped in two micro-batches with the cache on, and the updates counted: one for each "
        "key and commit interval in which it has changed.",
        wrong={"cache forgotten": 7, "cache that is never emptied": 3, "one update for each commit": 2},
    ),
    shopping_baskets=Runs(
        baskets,
        wrong={
            "the word kept as an item": baskets_with(lambda basket, word: [*basket, word]),
            "emptied instead of deleted": baskets_with(lambda basket, word: []),
            "a scan at a time instead of an item": baskets_with(lambda basket, word: None, apart=False),
        },
        signs={"the word kept as an item": word_kept, "emptied instead of deleted": emptied},
    ),
)
