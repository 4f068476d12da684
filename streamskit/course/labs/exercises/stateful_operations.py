"""The exercises of lab 07: what a row remembers, by which key, and which of its updates go out."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from streamskit.course.labs.difference import Moment, Outcome
from streamskit.course.labs.exercise import Exercise, Lab, Runs, Says
from streamskit.course.labs.misconceptions import Misconception, silent_after
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
        return _renamed(value, {"count": "orders", "sum": "total", "values": "prices"})

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


# ---- signs of typical mistakes ---------------------------------------------------------------------------------------


def zero_kept(outcome: Outcome) -> bool:
    """Where a row should be deleted, it is kept with the value zero."""
    return any(row.value == 0 for moment in outcome.moments for row in moment.extra if _is_deletion(moment.expected))


def last_value(outcome: Outcome) -> bool:
    """Each result is the value that has just come, whatever was before."""
    pairs = [(record, row) for m in outcome.moments if (record := outcome.piped(m)) for row in m.actual]
    return bool(outcome.differing) and bool(pairs) and all(row.value == record.value for record, row in pairs)


def one_too_many(outcome: Outcome) -> bool:
    """Each result has counted one order too many."""
    pairs = _dicts(outcome)
    return bool(pairs) and all(came.get("orders") == due["orders"] + 1 for due, came in pairs)


def starts_anew(outcome: Outcome) -> bool:
    """Each result is that of a first order."""
    return bool(outcome.actual) and all(
        isinstance(row.value, dict) and row.value.get("orders") == 1 for row in outcome.actual
    )


def counted_by_voter(outcome: Outcome) -> bool:
    """Results stand under those who vote."""
    return any(row.key in PEOPLE.values() for row in outcome.actual)


def empty_counted(outcome: Outcome) -> bool:
    """An empty vote has a row of its own."""
    return any(row.key == "" for row in outcome.actual)


def returns_added(outcome: Outcome) -> bool:
    """Each result is as if returns were sales."""
    return [row.value for row in outcome.actual] == [row.value for row in folded(1)]


def waits_for_both(outcome: Outcome) -> bool:
    """Only for products which have had records in one topic so far are results missing."""
    seen: dict[Any, set[str]] = defaultdict(set)
    missing, others = list[Moment](), list[Moment]()
    for moment in outcome.moments:
        if record := outcome.piped(moment):
            seen[record.key].add(record.topic)
            if moment.differs:
                (missing if not moment.actual and len(seen[record.key]) == 1 else others).append(moment)
    return bool(missing) and not others and bool(outcome.actual)


def word_kept(outcome: Outcome) -> bool:
    """The word that empties a basket lies in one."""
    return any("pay" in (row.value or ()) for row in outcome.actual)


def emptied(outcome: Outcome) -> bool:
    """A basket that should be deleted is an empty list."""
    return any(row.value == [] for row in outcome.actual)


def one_update_a_scan(outcome: Outcome) -> bool:
    """No record makes more than one result, where some should."""
    return bool(outcome.actual) and all(len(moment.actual) <= 1 for moment in outcome.moments)


def _is_deletion(rows: tuple[Row, ...]) -> bool:
    return any(row.value is None for row in rows)


def _dicts(outcome: Outcome) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The values that should have come beside those that came, where these are dicts and as many as those."""
    due, came = [row.value for row in outcome.expected], [row.value for row in outcome.actual]
    fits = len(due) == len(came) and all(isinstance(value, dict) for value in (*due, *came))
    return list(zip(due, came, strict=True)) if fits else []


LAB = Lab(
    "07-stateful-operations",
    "Stateful operations",
    (
        Exercise(
            "customer_balance",
            "Keep each customer's balance, and close the account when it is zero.",
            Runs(
                balances,
                (
                    Misconception(
                        "zero kept instead of deleted",
                        "An account with nothing in it is still there, with the value 0. A reducer that returns None "
                        "deletes the row: a null goes out, and the next payment starts anew.",
                        zero_kept,
                    ),
                    Misconception(
                        "last payment instead of the sum",
                        "Each result is the payment that has just come. A reducer gets two values, what was kept and "
                        "what comes, and returns what is kept from now on.",
                        last_value,
                    ),
                ),
            ),
            (
                "A reducer makes one value of two: the balance so far and the next payment.",
                "It returns their sum, with one exception. Which return value deletes a row?",
                "lambda balance, payment: None if balance + payment == 0 else balance + payment",
            ),
        ),
        Exercise(
            "order_summary",
            "Keep the number of orders, their total and all prices of each product.",
            Runs(
                summaries,
                (
                    Misconception(
                        "initializer that counts",
                        "Every product has one order too many. The initializer makes what a product has before its "
                        "first order: nothing. Then the aggregator adds the first order, too.",
                        one_too_many,
                    ),
                    Misconception(
                        "aggregate forgotten",
                        "Every result is that of a first order. The aggregator's third argument is what was kept so "
                        "far; what it returns has to be made of that.",
                        starts_anew,
                    ),
                ),
            ),
            (
                "The result has another type than the prices, so a reducer will not do. What does an aggregate need?",
                "An initializer without arguments, an aggregator of product, price and summary, and value=SUMMARY.",
                'aggregate(lambda: {"orders": 0, "total": 0, "prices": []}, add, "summaries", value=SUMMARY)',
            ),
        ),
        Exercise(
            "favourite_products",
            "Count votes by product, which is in the value, and leave empty ones out.",
            Runs(
                favourites,
                (
                    Misconception(
                        "counted by the key that was there",
                        "Your results stand under people: you count how often each has voted. The product is in the "
                        "value, and has to become the key before anything is counted.",
                        counted_by_voter,
                    ),
                    Misconception(
                        "empty vote counted",
                        "The empty text has a row of its own. A record whose new key is null belongs to no group "
                        "and is left out; a filter before the count does the same.",
                        empty_counted,
                    ),
                ),
            ),
            (
                "Records can be grouped by something else than their key.",
                "group_by(...) takes a function of the value. What about an empty text?",
                'builder.stream("votes").filter(lambda v: v != "").group_by(lambda v: v).count("favourites")',
            ),
        ),
        Exercise(
            "net_sales",
            "Fold sales and returns, two streams, into one table.",
            Runs(
                net_sales,
                (
                    Misconception(
                        "returns added",
                        "A return is counted like a sale. Each stream of a cogroup has a function of its own: that of "
                        "the returns takes away.",
                        returns_added,
                    ),
                    Misconception(
                        "returns left out",
                        "No return changes a row. Each stream has to be added to the cogroup.",
                        silent_after("returns"),
                    ),
                    Misconception(
                        "a join instead of a cogroup",
                        "Products with sales only, or returns only, have no row yet. A join waits for both sides; "
                        "in a cogroup each record does its part alone.",
                        waits_for_both,
                    ),
                ),
            ),
            (
                "One table, two kinds of records: each kind has its own way to change a row.",
                "cogroup begins with one grouped stream and its function; a second one adds the other with its own.",
                "sold.cogroup(add).cogroup(returned, take_away).aggregate(lambda: 0, ..., value=Serdes.long())",
            ),
        ),
        Exercise(
            "updates_with_cache",
            "Say how many updates go out when the record cache is on.",
            Says(
                cached_updates,
                "The payments were piped in two micro-batches with the cache on, and the updates counted: one for each "
                "key and commit interval in which it has changed.",
                {
                    7: (
                        "cache forgotten",
                        "That is one update for each payment, as it would be without the cache. The cache keeps a "
                        "row's updates back until the commit, and lets the last one out.",
                    ),
                    3: (
                        "cache that is never emptied",
                        "That is one update for each customer. Each commit empties the cache: a row that changes again "
                        "in the next interval goes out again.",
                    ),
                    2: (
                        "one update for each commit",
                        "The cache folds the updates of one key, not those of different keys.",
                    ),
                },
            ),
            (
                "Without the cache there would be seven. Which of them does nobody get to see with it?",
                "Take one interval after the other: which rows have changed in it? Each of them goes out once.",
                "In the first interval ann and ben change. And in the second?",
            ),
        ),
        Exercise(
            "shopping_baskets",
            "Keep the basket of each cart, item by item, until it is paid.",
            Runs(
                baskets,
                (
                    Misconception(
                        "the word kept as an item",
                        "The word pay lies in a basket. It is not an item: it deletes the basket.",
                        word_kept,
                    ),
                    Misconception(
                        "emptied instead of deleted",
                        "A basket that is paid for is an empty list with you. The task asks for no basket at all: None "
                        "deletes the row, and a null goes out.",
                        emptied,
                    ),
                    Misconception(
                        "a scan at a time instead of an item",
                        "Each record makes one result at most. A scan can hold several items, and each of them is to "
                        "change the basket by itself: make records of them first.",
                        one_update_a_scan,
                    ),
                ),
            ),
            (
                "A scan holds several items. Make one record of each, then keep a list for each cart.",
                'flat_map_values(lambda v: F.split(v, " ")), group_by_key(), aggregate. What does None do?',
                'aggregate(list, lambda cart, item, basket: None if item == "pay" else [*basket, item], ...)',
            ),
        ),
    ),
)
