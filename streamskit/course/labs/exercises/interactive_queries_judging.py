"""How the answers of lab 16 are judged: what goes in and has to come out, and signs of typical mistakes."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from streamskit.course.labs.asking import Ask
from streamskit.course.labs.local_instances import LocalInstances
from streamskit.course.labs.recording import RECORDED, Costume, Recording
from streamskit.course.labs.stores import Filling, table

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


def ask_trades_of() -> list[Ask]:
    rows, store = rows_at("queries-key-value", 13, SYMBOLS), _counted().after(13)
    wanted = [*rows, "BRK.C", "B", "IBM", ""]
    return [Ask(f"trades_of(store, {symbol!r})", (store, symbol), rows.get(symbol, 0)) for symbol in wanted]


# ---- 2: a range ------------------------------------------------------------------------------------------------------

ORDERS = {2: "rug", 7: "lamp", 8: "clock", 9: "vase", 10: "tray", 11: "bowl", 12: "mug", 20: "desk", 89: "chair"}
ORDERS |= {99: "sofa", 100: "shelf", 101: "stool", 110: "mirror", 900: "bench", 1000: "bed", 12_345_678: "bell"}


def padded(number: int) -> str:
    """Return the key of an order."""
    return f"{number:08}"


def ask_orders() -> list[Ask]:
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


def found_items(rows: Sequence[tuple[str, str]]) -> list[str]:
    return [item for _, item in rows]


# ---- 3: a span of time -----------------------------------------------------------------------------------------------


@cache
def _by_time() -> Filling:
    builder = StreamsBuilder()
    windows = TimeWindows.of_size_with_no_grace("10 seconds")
    counts = builder.stream("trades").group_by_key().windowed_by(windows)
    counts.count(Materialized("by-time", retention="50 seconds"))
    return Filling(builder.build(), "by-time", Recording.of("queries-window", BY_TIME).steps)


def ask_trades_between() -> list[Ask]:
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


def in_windows(back: int = 0, short: int = 1, divisor: int = 1) -> Any:
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


def ask_price_at() -> list[Ask]:
    asks = []
    for query in recorded_queries("queries-versioned"):
        if len(query.arguments) == 2:
            symbol, time = PRICES.keys[query.arguments[0]], query.arguments[1] * PRICES.scale
            price = None if query.result is None else WORTH[query.result["value"]]
            arguments = (_prices().after(query.step), symbol, time)
            asks.append(Ask(f'price_at(store, "{symbol}", {time})', arguments, price))
    return asks


def found_value(version: Any) -> Any:
    return None if version is None else version.value


# ---- 5: an instance that has only a part -----------------------------------------------------------------------------

TRADED = {f"{letter}{number}": 7 * number + ord(letter) for letter in "ABCDEF" for number in range(1, 6)}


@contextmanager
def ask_count_anywhere() -> Iterator[list[Ask]]:
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


def locally(here: Any, client: QueryClient, symbol: str) -> int:
    return here.get(symbol) or 0


def locally_or_nothing(here: Any, client: QueryClient, symbol: str) -> int:
    return dict(here.all()).get(symbol, 0)


def locally_or_none(here: Any, client: QueryClient, symbol: str) -> int | None:
    try:
        return here.get(symbol) or 0
    except InvalidStateStorePartitionError:
        return None


def remotely(otherwise: Any, missing: Any = 0) -> Any:
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
def ask_board() -> Iterator[list[Ask]]:
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


def board(
    pages: bool = True,
    partial: bool = True,
    whole: bool | None = None,
    estimate: bool = False,
    lag: Callable[[list[int]], int] = max,
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
        shown["whole"] = not missing if whole is None else whole
        return {**shown, "lag": lag([each["lag"] for each in heard])}

    return answer


def whole_if_not_behind(ask: Any) -> dict[str, Any]:
    shown = board()(ask)
    return {**shown, "whole": shown["lag"] == 0}
