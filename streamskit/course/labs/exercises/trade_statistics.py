"""The exercises of lab 17: what to keep of the trades in a window, and what to ask of it."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql import functions as F

from streamskit.api.windows import SlidingWindows, TimeWindows, Windowed
from streamskit.course.datasets.event_time import NEW_YEAR
from streamskit.course.datasets.trades import trades
from streamskit.course.labs.asking import Ask, Asks, reading_all, reads_all
from streamskit.course.labs.exercise import Runs, Says
from streamskit.course.labs.exercises.trade_statistics_mission import WRONG, a_day_of_ticks, judge_fitting_grace
from streamskit.course.labs.exercises.windows import one_window_a_record
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.loops import Due, WrongLoop, looped, piped
from streamskit.course.labs.missions import Lives
from streamskit.course.labs.recording import Costume, Piped, Recording
from streamskit.course.labs.stores import windows
from streamskit.dsl.builder import StreamsBuilder
from streamskit.dsl.materialized import Materialized
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


# ---- answers ---------------------------------------------------------------------------------------------------------

FIVE_SECONDS = TimeWindows.of_size_with_no_grace("5 seconds")


def _kept_in(windows: TimeWindows | SlidingWindows) -> Callable[[StreamsBuilder], None]:
    """Return the answer that keeps statistics in these windows."""

    def answer(builder: StreamsBuilder) -> None:
        stock = builder.stream("trades", value=Serdes.json("symbol string, price double, size int")).group_by_key()
        kept = stock.windowed_by(windows).aggregate(
            lambda v: F.struct(F.count("*").alias("count"), F.sum(v.price).alias("sum"), F.min(v.price).alias("min")),
            Materialized("trade-stats", retention="1 hour"),
        )
        average = lambda v: F.struct(v["count"], v["sum"], v["min"], (v["sum"] / v["count"]).alias("avg"))  # noqa: E731
        kept.to_stream().map_values(average).to("trade-stats")

    return answer


LAB = lab(
    "17-trade-statistics",
    windows_of_a_trade=Says(
        STARTS,
        "Five windows hold second 12: one of five seconds begins each second, and the one that ends at 12 does "
        "not hold it any more.",
        wrong={
            "window end inclusive": [tuple(starts_of(TWELVE - 1, 5 * SECOND, SECOND)), (7_000, *STARTS)],
            "tumbling instead of hopping": (10_000,),
            "one window a record": (12_000,),
            "the latest first": tuple(reversed(STARTS)),
            "seconds in place of milliseconds": tuple(start // SECOND for start in STARTS),
            "how many instead of which": len(STARTS),
        },
    ),
    price_statistics=Runs(
        lambda: Recording.of("windows-hopping-trade-stats", Costume({"stats": "trade-stats"}), ["trade-stats"]),
        wrong={
            "tumbling instead of hopping": _kept_in(FIVE_SECONDS),
            "sliding instead of hopping": _kept_in(SlidingWindows.of_time_difference_with_no_grace("5 seconds")),
            "windows of another size": _kept_in(TimeWindows.of_size_with_no_grace(5).advance_by(1)),
            "late record counted": _kept_in(
                TimeWindows.of_size_and_grace("5 seconds", "50 minutes").advance_by("1 second")
            ),
        },
        signs={"tumbling instead of hopping": one_window_a_record},
        errors={"cannot run in sessions or sliding windows": "sliding instead of hopping"},
    ),
    weighted_price=Runs(
        _weighted_prices,
        wrong={
            "each trade weighs the same": WrongLoop(lambda: _weighted_prices(_mean)),
            "divided by the number of trades": WrongLoop(
                lambda: _weighted_prices(lambda some: sum(t["price"] * t["size"] for t in some) / len(some))
            ),
            "the last price for the average": WrongLoop(lambda: _weighted_prices(lambda some: some[-1]["price"])),
        },
    ),
    highest_average=Asks(
        _ask_highest_average,
        "of three symbols, of one window, and of a symbol without any.",
        wrong={
            "sum taken for average": [_highest_by(lambda row: row["sum"]), _highest_by(lambda row: row["count"])],
            "lowest instead of highest": _highest_by(of=min),
            "lowest price taken for the average": _highest_by(lambda row: row["min"]),
            "value instead of window": _highest_value,
            "fetch's end taken for exclusive": [_highest_by(short=1), _highest_by(short=SECOND)],
            "no windows at all": _highest_of_some,
            "whole store read for a few windows": reading_all(_highest_by()),
        },
        habits={"whole store read for a few windows": reads_all},
    ),
    price_jumps=Runs(
        _jumps,
        wrong={
            "every update sent": WrongLoop(lambda: _jumps(other=lambda low, high: {"low": low, "high": high})),
            "percent taken for a factor": [
                WrongLoop(lambda: _jumps(least=1.03)),
                WrongLoop(lambda: _jumps(least=1.3)),
                WrongLoop(lambda: _jumps(least=4.0)),
            ],
        },
    ),
    fitting_grace=Lives("fitting_grace", a_day_of_ticks, judge_fitting_grace, wrong=WRONG, returns_application=True),
)
