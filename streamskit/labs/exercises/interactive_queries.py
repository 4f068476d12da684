"""The exercises of lab 16: asking stores by key, range and time, and instances that may have only a part."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import quote

from streamskit import (
    InvalidStateStorePartitionError,
    Materialized,
    QueryClient,
    Serdes,
    StreamsBuilder,
    StreamsError,
    TimeWindows,
    Windowed,
)
from streamskit.labs.asking import Ask, Asks, Mistake, gives, reads_all
from streamskit.labs.exercise import Exercise, Lab
from streamskit.labs.local_instances import LocalInstances
from streamskit.labs.recording import RECORDED, Costume, Recording
from streamskit.labs.stores import Filling, table

SECOND = 1_000
TEN_SECONDS = 10 * SECOND
STORE = "trades-by-symbol"
ALL_ROWS = f"/state/keyvalues/{STORE}/all"

# ---- what the recorded stores are called in the story ----------------------------------------------------------------

SYMBOLS = Costume(
    {"in": "trades"},
    {"counts": STORE},
    # In the order of the recorded keys' bytes; what begins like another one still does.
    {"B": "AMD", "a": "BRK", "a/1": "BRK.A", "a/2": "BRK.B", "ab": "BRKR", "b": "KO", "c": "PG", "é": "ÖVB"},
)
BY_TIME = Costume({"in": "trades"}, {"counts": "by-time"}, {"a": "AMD", "b": "IBM", "c": "KO", "z": "PG"}, 100)
WORTH = {"v1": 78.4, "v2": 78.9, "v3": 80.1, "v5": 77.5, "w1": 33.0, "w2": 34.2, "x1": 61.7}
PRICES = Costume(
    {"in": "quotes"},
    {"versions": "prices"},
    {"a": "AMD", "b": "IBM", "c": "KO", "nobody": "XOM"},
    60,
    lambda _, value: WORTH.get(value),
)


class Query(NamedTuple):
    """A recorded query: after which step it was asked, with which arguments, and what Kafka Streams answered."""

    step: int
    name: str
    arguments: list[Any]
    result: Any


def recorded_queries(vector: str) -> list[Query]:
    """Return the queries of a vector."""
    recorded = json.loads((RECORDED / f"{vector}.json").read_text())
    results = {each["after_step"]: each["result"] for each in recorded["query_results"]}
    asked = [(number, step["query"]) for number, step in enumerate(recorded["steps"]) if "query" in step]
    return [Query(number, query["op"], query["args"], results[number]) for number, query in asked]


def rows_at(vector: str, step: int, dress: Costume) -> dict[Any, Any]:
    """Return the rows that `all` of a vector's store gave at a step."""
    found = next(query for query in recorded_queries(vector) if query.step == step and query.name == "all")
    return {dress.key(row): row["value"] for row in found.result}


# ---- 1: one key ------------------------------------------------------------------------------------------------------


@cache
def _counted() -> Filling:
    builder = StreamsBuilder()
    builder.stream("trades").group_by_key().count(STORE)
    return Filling(builder.build(), STORE, Recording.of("queries-key-value", SYMBOLS).steps)


def _ask_trades_of() -> list[Ask]:
    rows, store = rows_at("queries-key-value", 13, SYMBOLS), _counted().after(13)
    wanted = [*rows, "BRK.C", "B", "IBM", ""]
    return [Ask(f"trades_of(store, {symbol!r})", (store, symbol), rows.get(symbol, 0)) for symbol in wanted]


MISSING_IS_NONE = Mistake(
    "a missing key handed on as None",
    "get(...) returns None where the store has no row. The task asks for a number: nobody has traded that symbol, so "
    "its number of trades is 0.",
    gives(lambda store, symbol: store.get(symbol)),
)

# ---- 2: a range ------------------------------------------------------------------------------------------------------

ORDERS = {2: "rug", 7: "lamp", 8: "clock", 9: "vase", 10: "tray", 11: "bowl", 12: "mug", 20: "desk", 89: "chair"}
ORDERS |= {99: "sofa", 100: "shelf", 101: "stool", 110: "mirror", 900: "bench", 1000: "bed", 12_345_678: "bell"}


def padded(number: int) -> str:
    """Return the key of an order."""
    return f"{number:08}"


def _ask_orders() -> list[Ask]:
    store = table("orders", {padded(number): item for number, item in ORDERS.items()}, Serdes.string())
    asked = [(9, 12), (99, 101), (1, 8), (100, 1001), (13, 20), (2, 2000)]
    return [
        Ask(
            f"orders_between(store, {first}, {last})",
            (store, first, last),
            [ORDERS[number] for number in sorted(ORDERS, reverse=True) if first <= number < last],
        )
        for first, last in asked
    ]


def _items(rows: Sequence[tuple[str, str]]) -> list[str]:
    return [item for _, item in rows]


# ---- 3: a span of time -----------------------------------------------------------------------------------------------


@cache
def _by_time() -> Filling:
    builder = StreamsBuilder()
    windows = TimeWindows.of_size_with_no_grace("10 seconds")
    counts = builder.stream("trades").group_by_key().windowed_by(windows)
    counts.count(Materialized("by-time", retention="50 seconds"))
    return Filling(builder.build(), "by-time", Recording.of("queries-window", BY_TIME).steps)


def _ask_trades_between() -> list[Ask]:
    asks = []
    for step in (15, 18):  # before and after the first windows are forgotten
        rows, store = rows_at("queries-window", step, BY_TIME), _by_time().after(step)
        for symbol, first, last in (("AMD", 0, 30), ("AMD", 10, 20), ("IBM", 0, 30), ("IBM", 0, 40), ("KO", 0, 20)):
            told = f'trades_between(store, "{symbol}", {first * SECOND}, {last * SECOND})'
            asks.append(Ask(told, (store, symbol, first * SECOND, last * SECOND), _sum(rows, symbol, first, last)))
    return asks


def _sum(rows: Mapping[Windowed, int], symbol: str, first: int, last: int) -> int:
    return sum(
        count for key, count in rows.items() if key.key == symbol and first * SECOND <= key.start < last * SECOND
    )


def _in_windows(back: int = 0, short: int = 1, divisor: int = 1) -> Any:
    """Return an answer that moves the span back by some milliseconds and ends it some before its end."""

    def answer(store: Any, symbol: str, first: int, last: int) -> int:
        span = ((first - back) // divisor, (last - back - short) // divisor)
        return sum(count for _, count in store.fetch(symbol, *span))

    return answer


# ---- 4: a time in the past -------------------------------------------------------------------------------------------


@cache
def _prices() -> Filling:
    builder = StreamsBuilder()
    builder.table("quotes", value=Serdes.double(), materialized=Materialized.versioned("prices", "1 minute"))
    return Filling(builder.build(), "prices", Recording.of("queries-versioned", PRICES).steps)


def _ask_price_at() -> list[Ask]:
    asks = []
    for query in recorded_queries("queries-versioned"):
        if len(query.arguments) == 2:
            symbol, time = PRICES.keys[query.arguments[0]], query.arguments[1] * PRICES.scale
            price = None if query.result is None else WORTH[query.result["value"]]
            arguments = (_prices().after(query.step), symbol, time)
            asks.append(Ask(f'price_at(store, "{symbol}", {time})', arguments, price))
    return asks


def _value(version: Any) -> Any:
    return None if version is None else version.value


# ---- 5: an instance that has only a part -----------------------------------------------------------------------------

TRADED = {f"{letter}{number}": 7 * number + ord(letter) for letter in "ABCDEF" for number in range(1, 6)}


@contextmanager
def _ask_count_anywhere() -> Iterator[list[Ask]]:
    with LocalInstances(STORE, TRADED) as alive, LocalInstances(STORE, TRADED) as bereft:
        dead = 2
        bereft.kill(dead)
        asks = []
        for instances, lost, story in ((alive, -1, ""), (bereft, dead, ", one instance is dead")):
            client = QueryClient(instances.urls, retry="0 seconds")
            for symbol in ("A1", "A4", "B2", "C5", "D3", "F5", "Z1", "Z2", "Z4", "Z8"):
                owner = instances.owner(symbol)
                told = f'count_anywhere(here, client, "{symbol}") (instance {owner} has it{story})'
                expected = None if owner == lost else TRADED.get(symbol, 0)
                asks.append(Ask(told, (instances.store(0), client, symbol), expected))
        yield asks


def _locally(here: Any, client: QueryClient, symbol: str) -> int:
    return here.get(symbol) or 0


def _locally_or_nothing(here: Any, client: QueryClient, symbol: str) -> int:
    return dict(here.all()).get(symbol, 0)


def _locally_or_none(here: Any, client: QueryClient, symbol: str) -> int | None:
    try:
        return here.get(symbol) or 0
    except InvalidStateStorePartitionError:
        return None


def _remotely(otherwise: Any, missing: Any = 0) -> Any:
    """Return an answer that asks the client; `otherwise` is what it makes of a refusal."""

    def answer(here: Any, client: QueryClient, symbol: str) -> Any:
        try:
            found = client.store(STORE).get(symbol)
        except StreamsError:
            if otherwise is ...:
                raise
            return otherwise
        return missing if found is None else found

    return answer


# ---- 6: a list that may be a part ------------------------------------------------------------------------------------


@contextmanager
def _ask_board() -> Iterator[list[Ask]]:
    many = {f"S{number:05}": 3 + number % 11 for number in range(10_400)}
    with (
        TemporaryDirectory() as folder,
        LocalInstances(STORE, TRADED, behind=3) as small,
        LocalInstances(STORE, TRADED) as bereft,
        LocalInstances(STORE, many, count=1, partitions=1, folder=Path(folder), updates=2) as large,
    ):
        bereft.kill(1)
        left = {key: value for key, value in TRADED.items() if bereft.owner(key) != 1}
        yield [
            Ask("trades_board(ask) of a small store", (small.ask,), _shown(TRADED, lag=3)),
            Ask("trades_board(ask) while an instance is dead", (bereft.ask,), _shown(left, whole=False)),
            Ask("trades_board(ask) of 10,400 symbols", (large.ask,), _shown(many)),
        ]


def _shown(rows: Mapping[str, int], whole: bool = True, lag: int = 0) -> dict[str, Any]:
    return {"symbols": len(rows), "trades": sum(rows.values()), "whole": whole, "lag": lag}


def _board(
    pages: bool = True, partial: bool = True, whole: bool | None = None, estimate: bool = False, lag: bool = True
) -> Any:
    """Return an answer that does without some of what is needed."""

    def answer(ask: Any) -> dict[str, Any]:
        asked = f"{ALL_ROWS}?limit=1000" + "&partial=true" * partial
        said = ask(asked)
        rows, heard, missing, after = said["rows"], said["partitions"], said["missing"], said["next"]
        while pages and after is not None:
            said = ask(f"{asked}&after={quote(after)}")
            rows, after = rows + said["rows"], said["next"]
        shown = {"symbols": len(rows), "trades": sum(row["value"] for row in rows), "whole": not missing}
        if estimate:
            shown["symbols"] = ask(f"/state/keyvalues/{STORE}/count?partial=true")["count"]
        furthest = max(each["lag"] for each in heard)
        shown["whole"] = not missing if whole is None else whole
        return {**shown, "lag": furthest if lag else 0}

    return answer


def _whole_if_not_behind(ask: Any) -> dict[str, Any]:
    shown = _board()(ask)
    return {**shown, "whole": shown["lag"] == 0}


LAB = Lab(
    "16-interactive-queries",
    "Interactive queries",
    (
        Exercise(
            "trades_of",
            "Say how often a symbol was traded; a symbol that nobody has traded has 0 trades.",
            Asks(
                _ask_trades_of,
                "of symbols that were traded, and of some that were not. The rows are those of Kafka Streams.",
                (
                    MISSING_IS_NONE,
                    Mistake(
                        "keys that begin alike taken for the key",
                        "The trades of other symbols are in it: BRK.A and BRKR begin like BRK, and are other keys. "
                        "get(...) asks for one key; prefix_scan(...) for all that begin so.",
                        gives(lambda store, symbol: sum(count for _, count in store.prefix_scan(symbol))),
                    ),
                    Mistake(
                        "rows counted in place of trades",
                        "The store has one row for each symbol, and its value is the number of trades. How many rows "
                        "there are says nothing about that.",
                        gives(
                            lambda store, symbol: int(store.get(symbol) is not None),
                            lambda store, symbol: len(store.prefix_scan(symbol)),
                            lambda store, symbol: len(store),
                        ),
                    ),
                ),
                (
                    Mistake(
                        "whole store read for one key",
                        "The answers are right, and for each of them the whole store was read. It finds one key at "
                        "once, however many there are: get(...).",
                        reads_all,
                    ),
                ),
            ),
            (
                "A store is asked for one key with one call. What does it return for a key that it does not have?",
                "get(symbol) returns the number, or None. The task wants 0 for None.",
                "return store.get(symbol) or 0",
            ),
        ),
        Exercise(
            "orders_between",
            "List what was ordered from one order number up to, and without, another one, the latest first.",
            Asks(
                _ask_orders,
                "of ranges that cross 10, 100 and 1000, of empty ends, and of one without an order in it.",
                (
                    Mistake(
                        "numbers in the order of text",
                        "Keys are sorted by their bytes, and as text 10 comes before 9. These keys have eight digits, "
                        "with zeros in front, so that both orders agree: what you ask for has to be written so, too.",
                        gives(
                            lambda store, first, last: _items(store.reverse_range(str(first), str(last - 1))),
                            lambda store, first, last: _items(store.reverse_range(str(first), str(last))),
                            lambda store, first, last: _items(store.range(str(first), str(last - 1))),
                            lambda store, first, last: _items(store.range(str(first), str(last))),
                        ),
                    ),
                    Mistake(
                        "a number where the key is text",
                        "The keys of this store are texts of eight digits, and it was asked for a number.",
                        gives(lambda store, first, last: store.reverse_range(first, last - 1)),
                    ),
                    Mistake(
                        "range end taken for exclusive",
                        "The last order is in the list, and the task leaves it out. range and reverse_range have both "
                        "ends in them, unlike Python's range.",
                        gives(
                            lambda store, first, last: _items(store.reverse_range(padded(first), padded(last))),
                            lambda store, first, last: _items(store.range(padded(first), padded(last))),
                        ),
                    ),
                    Mistake(
                        "first one first",
                        "The orders are the right ones, from the earliest to the latest. The task wants the latest "
                        "first: reverse_range reads from the other end.",
                        gives(lambda store, first, last: _items(store.range(padded(first), padded(last - 1)))),
                    ),
                    Mistake(
                        "bounds the wrong way round",
                        "A range from a key to one before it is empty, also when it is read backwards: the lower key "
                        "comes first in both, range and reverse_range.",
                        gives(
                            lambda store, first, last: _items(store.reverse_range(padded(last - 1), padded(first))),
                            lambda store, first, last: _items(store.reverse_range(padded(last), padded(first))),
                        ),
                    ),
                ),
                (
                    Mistake(
                        "whole store read for a few rows",
                        "The answers are right, and for each of them the whole store was read. Keys lie in order, so "
                        "that a range reads no more than its own rows.",
                        reads_all,
                    ),
                ),
            ),
            (
                "How is order 9 written as a key, and how is order 12? Is the first really before the second?",
                'f"{number:08}" writes a number with eight digits. Which one is the last order that is in the list?',
                'store.reverse_range(f"{first:08}", f"{last - 1:08}") has the rows; take the value of each.',
            ),
        ),
        Exercise(
            "trades_between",
            "Sum up a symbol's trades in the windows of ten seconds from one time up to another one.",
            Asks(
                _ask_trades_between,
                "of spans that begin and end at windows, also after the store has forgotten the first of them.",
                (
                    Mistake(
                        "range end taken for exclusive",
                        "The window that begins at the end of the span is counted, too. fetch(key, from, to) has both "
                        "ends in it: all windows that start from the one to the other.",
                        gives(_in_windows(short=0)),
                    ),
                    Mistake(
                        "a window's end taken for its start",
                        "Each window is looked for by its end. A window store knows windows by their starts: the one "
                        "that ends after 20 seconds is asked for with 10.",
                        gives(
                            _in_windows(back=TEN_SECONDS),
                            _in_windows(back=TEN_SECONDS, short=0),
                            lambda store, symbol, first, last: _in_windows()(store, symbol, first + TEN_SECONDS, last),
                            lambda store, symbol, first, last: _in_windows(short=0)(
                                store, symbol, first + TEN_SECONDS, last
                            ),
                        ),
                    ),
                    Mistake(
                        "windows counted in place of trades",
                        "You count the windows that were found. Each row is the start of a window and the number of "
                        "trades in it.",
                        gives(
                            lambda store, symbol, first, last: len(store.fetch(symbol, first, last - 1)),
                            lambda store, symbol, first, last: len(store.fetch(symbol, first, last)),
                        ),
                    ),
                    Mistake(
                        "one window for the whole span",
                        "With one time, fetch gives the value of the one window that starts then. With two times it "
                        "gives all windows that start between them.",
                        gives(
                            lambda store, symbol, first, last: store.fetch(symbol, first),
                            lambda store, symbol, first, last: store.fetch(symbol, first) or 0,
                        ),
                    ),
                    Mistake(
                        "trades of all symbols",
                        "The trades of the other symbols are in it. fetch_all asks for all keys, fetch for one.",
                        gives(
                            lambda store, symbol, first, last: sum(
                                count for _, count in store.fetch_all(first, last - 1)
                            ),
                            lambda store, symbol, first, last: sum(count for _, count in store.fetch_all(first, last)),
                        ),
                    ),
                    Mistake(
                        "seconds in place of milliseconds",
                        "The times are milliseconds, as everywhere in Kafka, and you divide them.",
                        gives(_in_windows(divisor=SECOND), _in_windows(short=0, divisor=SECOND)),
                    ),
                ),
                (
                    Mistake(
                        "whole store read for a few windows",
                        "The answers are right, and for each of them all windows of all symbols were read. fetch reads "
                        "those of one symbol in a span of time.",
                        reads_all,
                    ),
                ),
            ),
            (
                "A window store is asked for a key and two times. Times of what, and are both of them in it?",
                "fetch(symbol, from, to) gives pairs of a window's start and its value, for all windows that start "
                "between the two, both included. The one that starts at time_to must not be there.",
                "return sum(count for start, count in store.fetch(symbol, time_from, time_to - 1))",
            ),
        ),
        Exercise(
            "price_at",
            "Say what a share was worth at a time, and None where no price is known.",
            Asks(
                _ask_price_at,
                "before the first price, at prices and between them, after a withdrawn one, and further back than the "
                "store remembers. All answers are those of Kafka Streams.",
                (
                    Mistake(
                        "the latest price for any time",
                        "You answer with the price of now. A versioned store has those before it, too: "
                        "get(key, as_of) asks for the one that was valid at a time.",
                        gives(
                            lambda store, symbol, time: _value(store.get(symbol)),
                            lambda store, symbol, time: store.get(symbol),
                            lambda store, symbol, time: store.get(symbol).value,
                        ),
                    ),
                    Mistake(
                        "null taken for 0",
                        "Where no price is known you say 0, and a share that is worth nothing is news. Whoever adds up "
                        "these answers will not see the difference; None says that there is none.",
                        gives(
                            lambda store, symbol, time: _value(store.get(symbol, time)) or 0.0,
                            lambda store, symbol, time: _value(store.get(symbol, time)) or 0,
                        ),
                    ),
                    Mistake(
                        "no version taken for a version",
                        "get(...) returns None where no price was valid, and None has no value. Ask whether there is a "
                        "version before you take its value.",
                        gives(lambda store, symbol, time: store.get(symbol, time).value),
                    ),
                    Mistake(
                        "a version in place of its value",
                        "A versioned store answers with a VersionedRecord: a value, and the time from which on it was "
                        "valid. The task wants the value.",
                        gives(lambda store, symbol, time: store.get(symbol, time)),
                    ),
                    Mistake(
                        "a price that is valid only after its time",
                        "At the very time of a new price you still give the one before. A version is valid from its "
                        "timestamp on, that time included.",
                        gives(lambda store, symbol, time: _value(store.get(symbol, time - 1))),
                    ),
                ),
            ),
            (
                "This store has more than one version of a row. Which argument of get says which of them you want?",
                "get(symbol, time) returns a VersionedRecord with .value and .timestamp, or None.",
                "version = store.get(symbol, time), then: return None if version is None else version.value",
            ),
        ),
        Exercise(
            "count_anywhere",
            "Say how often a symbol was traded, whichever instance has it; None while nobody can say.",
            Asks(
                _ask_count_anywhere,
                "keys of all three instances and keys that nobody has, with all instances alive and with one dead.",
                (
                    Mistake(
                        "one instance's share taken for the whole store",
                        "You ask the instance that you are in, and its store has only the partitions of its own. That "
                        "a key is not in it says nothing about the others: the client asks the one that has it.",
                        gives(
                            _locally,
                            _locally_or_nothing,
                            _locally_or_none,
                            lambda here, client, symbol: dict(here.all()).get(symbol),
                        ),
                    ),
                    Mistake(
                        "503 taken for a missing key",
                        "While an instance is dead, nobody can say how often its symbols were traded, and you say 0. "
                        "A refusal (503, StreamsRebalancingError) is not the answer that there is no such key (404).",
                        gives(_remotely(otherwise=0)),
                    ),
                    Mistake(
                        "a missing key and a silent instance told alike",
                        "None is for what nobody can say at the moment. Of a symbol that nobody has traded one can "
                        "say it: 0.",
                        gives(_remotely(otherwise=None, missing=None)),
                    ),
                    Mistake(
                        "a refusal that stops the program",
                        "While an instance is dead the client raises StreamsRebalancingError for its keys, and nobody "
                        "catches it. The task wants None then.",
                        gives(_remotely(otherwise=...), _remotely(otherwise=..., missing=None)),
                    ),
                ),
                (
                    Mistake(
                        "whole store read for one key",
                        "The answers are right, and for each of them a whole store was read. get(...) asks for one "
                        "key.",
                        reads_all,
                    ),
                ),
            ),
            (
                "Which of the two, here and client, knows the whole store? And what happens when nobody does?",
                'client.store("trades-by-symbol").get(symbol) asks the right instance. It returns None for a key that '
                "is not there, and raises StreamsRebalancingError while nobody can answer.",
                "try: return client.store(...).get(symbol) or 0; except StreamsRebalancingError: return None",
            ),
        ),
        Exercise(
            "trades_board",
            "Show how many symbols and trades there are, whether that is all, and how far behind it is.",
            Asks(
                _ask_board,
                "of a store that is 3 updates behind, of one whose instance is dead, and of one with 10,400 rows on "
                "the disk.",
                (
                    Mistake(
                        "a partial list taken for the whole one",
                        "An instance is dead, its rows are missing, and your board says that it is whole. What could "
                        'not be asked stands in the answer, under "missing".',
                        gives(_board(whole=True)),
                    ),
                    Mistake(
                        "first page taken for the whole list",
                        "A list comes in pages, of 1000 rows unless limit= says otherwise, and you read the first one. "
                        'As long as "next" is not null there is another: ask for it with after=.',
                        gives(
                            _board(pages=False),
                            _board(pages=False, whole=True),
                            _board(pages=False, partial=False),
                        ),
                    ),
                    Mistake(
                        "an estimate taken for the number",
                        "You ask the store how many rows it has, and on the disk it only knows about how many: rows "
                        "that were written twice are counted twice for a while. approximate_num_entries, and /count, "
                        "are for watching growth; exact is who counts the rows.",
                        gives(_board(estimate=True)),
                    ),
                    Mistake(
                        "no board where a part is missing",
                        "While an instance is dead a list is refused, unless ?partial=true allows for it. A board "
                        "should show what there is, and say that it is not all.",
                        gives(_board(partial=False)),
                    ),
                    Mistake(
                        "behind taken for incomplete",
                        "A copy that is some updates behind has all its rows, only not the newest values; a missing "
                        'partition has none. "whole" is about the second, "lag" about the first.',
                        gives(_whole_if_not_behind),
                    ),
                    Mistake(
                        "a stale answer taken for a fresh one",
                        "Your board says that it is not behind, and it is. Each partition of the answer tells its "
                        '"lag"; the largest of them is that of the board.',
                        gives(_board(lag=False)),
                    ),
                ),
            ),
            (
                "Look at one answer of ask(...) as a whole. Which of its parts says what is missing, which how fresh "
                "it is, and which that there is more?",
                "/state/keyvalues/trades-by-symbol/all?partial=true gives rows, partitions, missing and next. While "
                "next is not None, ask again with &after= and next.",
                'symbols: len(rows); trades: the sum of each row["value"]; whole: not said["missing"]; lag: the '
                'maximum of each["lag"] in said["partitions"].',
            ),
        ),
    ),
)
