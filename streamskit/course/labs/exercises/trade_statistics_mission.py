"""The mission of lab 17: the grace of a live count is chosen by the delays of the day before."""

import random
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from streamskit.api.windows import TimeWindows
from streamskit.course.datasets.event_time import NEW_YEAR
from streamskit.course.labs.exercise import Verdict, mistaken, right, wrong
from streamskit.course.labs.missions import Site
from streamskit.dsl.builder import StreamsBuilder
from streamskit.dsl.materialized import Materialized
from streamskit.runtime.streams import KafkaStreams
from streamskit.topology import Topology

SIZE = 10_000
"""How long a window is, in milliseconds."""
LOST = 0.01
"""Which part of the ticks may be lost at most."""
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
    """Judge a running count by what it makes of today's ticks: it tells which grace was chosen."""
    site.broker.produce(site.topic("ticks"), as_records(TODAY))
    returned.await_processed("60 seconds")
    found = {(window.key, window.start): count for window, count in returned.store("ticks-by-window").all()}
    due = least_grace()
    if found == counts(due):
        lost = share_lost([*YESTERDAY, *TODAY], due)
        return right(f"{due} seconds of grace: {lost:.1%} of {len(YESTERDAY) + len(TODAY)} ticks came too late for it.")
    for mistake, grace in OTHER_GRACES.items():
        if found == counts(grace()):
            return mistaken(mistake, grace=grace())
    fits = next((grace for grace in range(120) if found == counts(grace)), None)
    if fits is None:
        return wrong("The counts are those of no grace in whole seconds. Is it the topology of the task that runs?")
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
    """Return which part of the ticks is dropped with so many seconds of grace."""
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
    """Count what is not too late with so many seconds of grace, by symbol and start of the window."""
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
"""Graces that come of a mistake."""


# ---- wrong answers ---------------------------------------------------------------------------------------------------


def started_with(grace: int) -> Callable[[Site], KafkaStreams]:
    """Return an answer that starts the count with so many seconds of grace."""

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
