"""The exercises of lab 17: what to keep of the trades in a window, and what to ask of it."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from streamskit.api.windows import Windowed
from streamskit.course.datasets.event_time import NEW_YEAR
from streamskit.course.datasets.trades import trades
from streamskit.course.labs.asking import Ask, Asks, gives, reads_all
from streamskit.course.labs.exercise import Exercise, Lab, Runs, Says
from streamskit.course.labs.exercises.windows import END_INSIDE, one_window_a_record
from streamskit.course.labs.loops import Due, as_if, looped, piped
from streamskit.course.labs.misconceptions import Misconception
from streamskit.course.labs.recording import Costume, Piped, Recording
from streamskit.course.labs.stores import windows
from streamskit.serdes import Serdes

SECOND = 1_000
Trade = dict[str, Any]

# ---- 1: which windows a trade is in ----------------------------------------------------------------------------------


def starts_of(time: int, size: int, advance: int) -> list[int]:
    """Return the starts of the windows that hold a time."""
    return [start for start in range(0, time + 1, advance) if start <= time < start + size]


TWELVE = 12 * SECOND
STARTS = starts_of(TWELVE, 5 * SECOND, SECOND)

# ---- loops over trades in windows ------------------------------------------------------------------------------------


def _in_windows(size: int, topic: str, seed: int, value: Callable[[list[Trade]], Any]) -> Recording:
    """Return what comes of some trades in windows that tumble; a value that is None does not come."""
    steps = piped("trades", trades(14, seed, per_second=0.9, symbols=("KO", "PG")))
    kept: dict[Windowed, list[Trade]] = defaultdict(list)

    def loop(record: Piped) -> Iterator[Due]:
        start = record.timestamp // size * size
        window = Windowed(record.key, start, start + size)
        kept[window].append(record.value)
        made = value(kept[window])
        if made is not None:
            yield Due(topic, window, made, record.timestamp)

    return looped(steps, [topic], loop)


def _weighted_prices(value: Callable[[list[Trade]], float] | None = None) -> Recording:
    return _in_windows(10 * SECOND, "weighted-prices", 43, value or _weighted)


def _weighted(some: list[Trade]) -> float:
    return sum(trade["price"] * trade["size"] for trade in some) / sum(trade["size"] for trade in some)


def _mean(some: list[Trade]) -> float:
    return sum(trade["price"] for trade in some) / len(some)


def _jumps(least: float = 1.003, other: Callable[[float, float], Any] = lambda low, high: None) -> Recording:
    def value(some: list[Trade]) -> Any:
        low, high = min(trade["price"] for trade in some), max(trade["price"] for trade in some)
        return {"low": low, "high": high} if high >= least * low else other(low, high)

    return _in_windows(5 * SECOND, "price-jumps", 53, value)


# ---- 4: asking a window store ----------------------------------------------------------------------------------------


def _ask_highest_average() -> list[Ask]:
    rows = _statistics(seed=61)
    store = windows("trade-stats", rows, Serdes.json("count long, sum double, min double"), 5 * SECOND)
    asks = []
    for symbol, first, last in (("KO", 0, 8), ("KO", 3, 4), ("PG", 0, 12), ("IBM", 5, 20), ("KO", 6, 6), ("MMM", 0, 9)):
        span = (NEW_YEAR + first * SECOND, NEW_YEAR + last * SECOND)
        told = f'highest_average(store, "{symbol}", second {first}, second {last})'
        asks.append(Ask(told, (store, symbol, *span), _highest(store, symbol, *span)))
    return asks


def _statistics(seed: int) -> dict[tuple[str, int], dict[str, Any]]:
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for trade in trades(600, seed, per_second=20.0, symbols=("KO", "PG", "IBM")):
        price, last = trade["value"]["price"], trade["timestamp"] // SECOND * SECOND
        for start in range(last - 4 * SECOND, last + 1, SECOND):
            row = rows.setdefault((trade["key"], start), {"count": 0, "sum": 0.0, "min": price})
            row |= {"count": row["count"] + 1, "sum": row["sum"] + price, "min": min(row["min"], price)}
    return rows


def _average(row: dict[str, Any]) -> float:
    return row["sum"] / row["count"]


def _highest(
    store: Any, symbol: str, first: int, last: int, by: Callable[[Any], float] = _average, of: Any = max
) -> int | None:
    found = store.fetch(symbol, first, last)
    return of(found, key=lambda pair: by(pair[1]))[0] if found else None


def _highest_by(by: Callable[[Any], float] = _average, of: Any = max, short: int = 0) -> Callable[..., int | None]:
    return lambda store, symbol, first, last: _highest(store, symbol, first, last - short, by, of)


def _highest_of_some(store: Any, symbol: str, first: int, last: int) -> int:
    return max(store.fetch(symbol, first, last), key=lambda pair: _average(pair[1]))[0]


def _highest_value(store: Any, symbol: str, first: int, last: int) -> float | None:
    return max((_average(row) for _, row in store.fetch(symbol, first, last)), default=None)


LAB = Lab(
    "17-trade-statistics",
    "Trade statistics",
    (
        Exercise(
            "windows_of_a_trade",
            "Say in which windows of five seconds, one begun each second, a trade counts.",
            Says(
                STARTS,
                "Five windows hold second 12: one of five seconds begins each second, and the one that ends at 12 does "
                "not hold it any more.",
                {
                    tuple(starts_of(TWELVE - 1, 5 * SECOND, SECOND)): (
                        "window end inclusive",
                        "The window that begins at 7 s ends at 12 s, and a window does not hold its end: [start, end).",
                    ),
                    (7_000, *STARTS): (
                        "window end inclusive",
                        "The window that begins at 7 s ends at 12 s, and a window does not hold its end: [start, end).",
                    ),
                    (10_000,): (
                        "tumbling instead of hopping",
                        "Only windows that tumble begin every five seconds. Here one begins each second, and they "
                        "overlap.",
                    ),
                    (12_000,): (
                        "one window a record",
                        "That is the last window of the trade. Those that began up to five seconds before have not "
                        "ended yet.",
                    ),
                    tuple(reversed(STARTS)): (
                        "the latest first",
                        "These are the windows; the task wants the earliest first.",
                    ),
                    tuple(start // SECOND for start in STARTS): (
                        "seconds in place of milliseconds",
                        "These are the windows, in seconds. Times are milliseconds, here as everywhere in Kafka.",
                    ),
                    len(STARTS): ("how many instead of which", "That is their number. Write a list of their starts."),
                },
            ),
            (
                "The last one begins at the trade itself. How long before can one have begun that still holds it?",
                "A window holds its start and not its end. The one from 7 to 12 seconds does not hold second 12.",
                "They begin at 8, 9, 10, 11 and 12 seconds; write milliseconds.",
            ),
        ),
        Exercise(
            "price_statistics",
            "Keep count, sum and lowest price of the last five seconds, anew each second.",
            Runs(
                lambda: Recording.of("windows-hopping-trade-stats", Costume({"stats": "trade-stats"}), ["trade-stats"]),
                (
                    Misconception(
                        "tumbling instead of hopping",
                        "Each trade is in one window only. Windows of five seconds that begin each second overlap, so "
                        "that a trade is in five of them: advance_by(...).",
                        one_window_a_record,
                    ),
                    END_INSIDE,
                ),
            ),
            (
                "Two things are missing: how time is cut into windows, and what is kept of the trades in one.",
                'TimeWindows.of_size_with_no_grace("5 seconds").advance_by("1 second"); and aggregate with a function '
                "of the value that makes a struct of three aggregates.",
                'lambda v: F.struct(F.count("*").alias("count"), F.sum(v.price).alias("sum"), '
                'F.min(v.price).alias("min"))',
            ),
        ),
        Exercise(
            "weighted_price",
            "Send the average price of ten seconds, in which a trade of 100 shares counts ten times one of 10.",
            Runs(
                _weighted_prices,
                (
                    Misconception(
                        "each trade weighs the same",
                        "Your average is that of the prices. A trade of many shares says more about the price than one "
                        "of few: multiply by size before you add, and divide by the sum of the sizes.",
                        as_if(lambda: _weighted_prices(_mean)),
                    ),
                    Misconception(
                        "divided by the number of trades",
                        "Prices times sizes are added up, and divided by the number of trades. Divide by the sum of "
                        "the sizes.",
                        as_if(
                            lambda: _weighted_prices(lambda some: sum(t["price"] * t["size"] for t in some) / len(some))
                        ),
                    ),
                    Misconception(
                        "the last price for the average",
                        "Each result is the price that has just come, whatever was before in its window.",
                        as_if(lambda: _weighted_prices(lambda some: some[-1]["price"])),
                    ),
                ),
            ),
            (
                "An average cannot be kept, only computed. What has to be kept so that this one can be?",
                "Keep the sum of price times size and the sum of size, and divide in map_values.",
                'F.struct(F.sum(v.price * v.size).alias("worth"), F.sum(v.size).alias("shares")), then '
                "map_values(lambda v: v.worth / v.shares)",
            ),
        ),
        Exercise(
            "highest_average",
            "Find the window with the highest average price of a symbol, among those that start in a span.",
            Asks(
                _ask_highest_average,
                "of three symbols, of one window, and of a symbol without any.",
                (
                    Misconception(
                        "sum taken for average",
                        "You compare the sums of the prices, and the window with the most trades wins. Divide by the "
                        "count.",
                        gives(_highest_by(lambda row: row["sum"]), _highest_by(lambda row: row["count"])),
                    ),
                    Misconception(
                        "lowest instead of highest",
                        "You return the window with the lowest average.",
                        gives(_highest_by(of=min)),
                    ),
                    Misconception(
                        "lowest price taken for the average",
                        "You compare the lowest prices of the windows. Their average is sum / count.",
                        gives(_highest_by(lambda row: row["min"])),
                    ),
                    Misconception(
                        "value instead of window",
                        "You return the highest average itself. The task wants the start of its window.",
                        gives(_highest_value),
                    ),
                    Misconception(
                        "fetch's end taken for exclusive",
                        "The last window of the span is left out. fetch has both ends in it, and so has the task.",
                        gives(_highest_by(short=1), _highest_by(short=SECOND)),
                    ),
                    Misconception(
                        "no windows at all",
                        "Of a symbol that was not traded fetch returns an empty list, and of that there is no highest. "
                        "The task wants None.",
                        gives(_highest_of_some),
                    ),
                ),
                (
                    Misconception(
                        "whole store read for a few windows",
                        "The answers are right, and for each of them all windows of all symbols were read. fetch reads "
                        "those of one symbol in a span of time.",
                        reads_all,
                    ),
                ),
            ),
            (
                "fetch gives pairs of a window's start and its value. By what do you compare them?",
                "max(..., key=...) finds the pair; its first part is the start. What if there is no pair?",
                'max(found, key=lambda pair: pair[1]["sum"] / pair[1]["count"])[0] if found else None',
            ),
        ),
        Exercise(
            "price_jumps",
            "Tell when a price moves by 0.3 percent or more within five seconds.",
            Runs(
                _jumps,
                (
                    Misconception(
                        "every update sent",
                        "Windows came whose price has not moved enough. Only those are wanted in which the highest is "
                        "0.3 percent above the lowest, or more.",
                        as_if(lambda: _jumps(other=lambda low, high: {"low": low, "high": high})),
                    ),
                    Misconception(
                        "percent taken for a factor",
                        "You let through only what has moved by far more, or nothing: 0.3 percent is a factor of "
                        "1.003.",
                        as_if(lambda: _jumps(least=1.03), lambda: _jumps(least=1.3), lambda: _jumps(least=4.0)),
                    ),
                ),
            ),
            (
                "Keep the lowest and the highest price of a window. When is a window worth a record?",
                "aggregate to a struct of low and high, to_stream(), filter, to(...).",
                "to_stream().filter(lambda v: v.high >= v.low * 1.003).to(...)",
            ),
        ),
    ),
)
