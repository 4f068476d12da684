"""The exercises of lab 17: what to keep of the trades in a window, and what to query."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from streamskit.api.windows import TimeWindows, Windowed
from streamskit.course.datasets.event_time import NEW_YEAR
from streamskit.course.datasets.trades import trades
from streamskit.course.labs.asking import Ask, Asks, reading_all, reads_all
from streamskit.course.labs.exercise import Runs, Says, Verdict, mistaken, right, wrong
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.loops import Due, Later, WrongLoop, followed_by, looped, piped
from streamskit.course.labs.misconceptions import one_at_most
from streamskit.course.labs.missions import Lives, Site
from streamskit.course.labs.recording import Costume, Piped, Recording
from streamskit.course.labs.stores import windows
from streamskit.dsl.builder import StreamsBuilder
from streamskit.dsl.materialized import Materialized
from streamskit.runtime.streams import KafkaStreams
from streamskit.serdes import Serdes
from streamskit.topology import Topology

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
    """Return what trades, the last one too late, give in tumbling windows; a value that is None is left out."""
    steps = piped("trades", trades(14, seed, per_second=0.9, symbols=("KO", "PG")))
    kept: dict[Windowed, list[Trade]] = defaultdict(list)

    def loop(record: Piped) -> Iterator[Due]:
        start = record.timestamp // size * size
        window = Windowed(record.key, start, start + size)
        kept[window].append(record.value)
        made = value(kept[window])
        if made is not None:
            yield Due(topic, window, made, record.timestamp)

    first = steps[0]
    late = first._replace(value={**first.value, "price": 50.0}, timestamp=first.timestamp + size - 1)
    return followed_by(looped(steps, [topic], loop), Later(late, dropped=1))


def _weighted_prices(value: Callable[[list[Trade]], float] | None = None) -> Recording:
    return _in_windows(10 * SECOND, "weighted-prices", 43, value or _weighted)


def _weighted(some: list[Trade]) -> float:
    return sum(trade["price"] * trade["size"] for trade in some) / sum(trade["size"] for trade in some)


def _mean(some: list[Trade]) -> float:
    return sum(trade["price"] for trade in some) / len(some)


def _jumps(
    least: float = 1.003, other: Callable[[float, float], Any] = lambda low, high: None, amount: float | None = None
) -> Recording:
    def value(some: list[Trade]) -> Any:
        low, high = min(trade["price"] for trade in some), max(trade["price"] for trade in some)
        has_jumped = high >= least * low if amount is None else high - low >= amount
        return {"low": low, "high": high} if has_jumped else other(low, high)

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


# ---- 6: a grace that fits --------------------------------------------------------------------------------------------


SIZE = 10_000
"""How long a window is, in milliseconds."""
LOST = 0.01
"""The largest share of the ticks that may be lost."""
SYMBOLS = (("KO", 0), ("PG", 1), ("IBM", 0), ("AMD", 1))
"""Symbols, and the partition in which each is."""


class Tick(NamedTuple):
    """A tick as it arrives: its symbol, its partition, and when it was made."""

    symbol: str
    partition: int
    time: int


def ticks(seed: int, count: int, begin: int) -> list[Tick]:
    """Return ticks in the order of their arrival: most are on time, some late by seconds, a few by half a minute."""
    chance = random.Random(seed)
    arrivals = []
    for number in range(count):
        symbol, partition = SYMBOLS[chance.randrange(4)]
        time = begin + number * 250 + (6_000 if partition else 0)  # the clock of one feed is ahead
        kind = chance.random()
        delay = chance.uniform(0, 2) if kind < 0.8 else chance.uniform(2, 22) if kind < 0.98 else chance.uniform(30, 45)
        arrivals.append((begin + number * 250 + delay * 1000, Tick(symbol, partition, time)))
    return [tick for _, tick in sorted(arrivals)]


YESTERDAY = ticks(19, 1150, NEW_YEAR)
TODAY = ticks(71, 400, NEW_YEAR + 1150 * 250)


def ticks_by_window(site: Site, grace: str) -> Topology:
    """Count the ticks of each symbol in windows of ten seconds, with this grace."""
    builder = StreamsBuilder()
    windows = TimeWindows.of_size_and_grace(SIZE, grace)
    counted = builder.stream(site.topic("ticks")).group_by_key().windowed_by(windows)
    counted.count(Materialized("ticks-by-window", retention="1 day"))
    return builder.build()


def a_day_of_ticks(site: Site) -> None:
    """Put yesterday's ticks into a topic of two partitions."""
    site.create_topics(ticks=2)
    site.broker.produce(site.topic("ticks"), as_records(YESTERDAY))


def as_records(some: Iterable[Tick]) -> list[dict[str, Any]]:
    """Return ticks as records for their partitions."""
    return [{"key": tick.symbol, "value": "tick", "timestamp": tick.time, "partition": tick.partition} for tick in some]


def judge_fitting_grace(site: Site, returned: KafkaStreams) -> Verdict:
    """Judge a running count by its results for today's ticks: they show which grace was chosen."""
    site.broker.produce(site.topic("ticks"), as_records(TODAY))
    returned.await_processed("60 seconds")
    found = {(window.key, window.start): count for window, count in returned.store("ticks-by-window").all()}
    due = least_grace()
    if found == counts(due):
        lost = share_lost([*YESTERDAY, *TODAY], due)
        return right(f"{due} seconds of grace: {lost:.1%} of {len(YESTERDAY) + len(TODAY)} ticks were too late for it.")
    for mistake, grace in OTHER_GRACES.items():
        if found == counts(grace()):
            return mistaken(mistake, grace=grace())
    fits = next((grace for grace in range(120) if found == counts(grace)), None)
    if fits is None:
        return wrong("The counts fit no grace of whole seconds. Is the topology of the task running?")
    lost = share_lost(YESTERDAY, fits)
    return mistaken("too little" if fits < due else "more than needed", grace=fits, lost=f"{lost:.2%}")


def overdue(some: Sequence[Tick], by_partition: bool = True) -> list[tuple[Tick, int]]:
    """Return each tick with how far stream time was beyond its window's end when it came, in milliseconds."""
    times: dict[int, int] = {}
    found = []
    for tick in some:
        clock = tick.partition if by_partition else 0
        times[clock] = max(times.get(clock, 0), tick.time)
        found.append((tick, times[clock] - (tick.time // SIZE + 1) * SIZE))
    return found


def share_lost(some: Sequence[Tick], grace: int, by_partition: bool = True) -> float:
    """Return the share of the ticks that is dropped with `grace` seconds of grace."""
    return sum(late >= grace * 1000 for _, late in overdue(some, by_partition)) / len(some)


def least_grace(lost: float = LOST, by_partition: bool = True) -> int:
    """Return the least whole number of seconds with which no larger part of yesterday's ticks is dropped."""
    return next(grace for grace in range(1000) if share_lost(YESTERDAY, grace, by_partition) <= lost)


def longest_delay(part: float = 1.0) -> int:
    """Return the delay, in whole seconds, that this part of yesterday's ticks does not exceed, windows aside."""
    times: dict[int, int] = {}
    delays = []
    for tick in YESTERDAY:
        times[tick.partition] = max(times.get(tick.partition, 0), tick.time)
        delays.append(times[tick.partition] - tick.time)
    return -(-sorted(delays)[int(part * (len(delays) - 1))] // 1000)


@cache
def counts(grace: int) -> dict[tuple[str, int], int]:
    """Count what is not too late with `grace` seconds of grace, by symbol and start of the window."""
    found: dict[tuple[str, int], int] = {}
    for tick, late in overdue([*YESTERDAY, *TODAY]):
        if late < grace * 1000:
            window = (tick.symbol, tick.time // SIZE * SIZE)
            found[window] = found.get(window, 0) + 1
    return found


OTHER_GRACES: dict[str, Callable[[], int]] = {
    "no grace at all": lambda: 0,
    "nothing may be lost": lambda: least_grace(lost=0.0),
    "delays without the window": lambda: longest_delay(1 - LOST),
    "one clock for two partitions": lambda: least_grace(by_partition=False),
}
"""Grace periods that result from a mistake."""


# ---- wrong answers ---------------------------------------------------------------------------------------------------


def started_with(grace: int) -> Callable[[Site], KafkaStreams]:
    """Return an answer that starts the count with `grace` seconds of grace."""

    def answer(site: Site) -> KafkaStreams:
        streams = site.application(ticks_by_window(site, f"{grace} seconds"))
        streams.start()
        return streams

    return answer


WRONG = {
    **{mistake: started_with(grace()) for mistake, grace in OTHER_GRACES.items()},
    "too little": started_with(least_grace() - 2),
    "more than needed": started_with(least_grace() + 1),
}


# ---- the lab ---------------------------------------------------------------------------------------------------------

LAB = lab(
    "17-trade-statistics",
    windows_of_a_trade=Says(
        STARTS,
        "Five windows hold second 12: one of five seconds begins each second, and the one that ends at 12 does "
        "not hold it any more.",
        wrong={
            "window end inclusive": [tuple(starts_of(TWELVE - 1, 5 * SECOND, SECOND)), (7_000, *STARTS)],
            "tumbling instead of hopping": (10_000,),
            "one window for each record": (12_000,),
            "the latest first": tuple(reversed(STARTS)),
            "seconds in place of milliseconds": tuple(start // SECOND for start in STARTS),
            "how many instead of which": len(STARTS),
        },
    ),
    price_statistics=Runs(
        lambda: Recording.of("windows-hopping-trade-stats", Costume({"stats": "trade-stats"}), ["trade-stats"]),
        signs={"tumbling instead of hopping": one_at_most},
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
            "percent taken for an amount": WrongLoop(lambda: _jumps(amount=0.3)),
        },
    ),
    fitting_grace=Lives("fitting_grace", a_day_of_ticks, judge_fitting_grace, wrong=WRONG, returns_application=True),
)
