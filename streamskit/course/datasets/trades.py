"""Stock trades, and the widgets of the first lesson."""

import random
from collections.abc import Iterator
from typing import Any

from streamskit.course.datasets.arguments import checked
from streamskit.course.datasets.event_time import NEW_YEAR, numbers

SYMBOLS = ("AAPL", "AMZN", "GOOG", "IBM", "INTC", "KO", "MMM", "MSFT", "ORCL", "PG")


@checked
def trades(
    count: int | None = None,
    seed: int = 7,
    per_second: float = 50.0,
    start: int = NEW_YEAR,
    symbols: tuple[str, ...] = SYMBOLS,
) -> Iterator[dict[str, Any]]:
    """Yield stock trades in the order of their time, ready for `broker.produce`.

    Args:
        count: how many. Without it they never end.
        seed: another seed gives other trades.
        per_second: how many there are on average in a second of event time.
        start: the time of the first, in milliseconds since 1970.
        symbols: the stocks that are traded; the first are traded most.

    >>> next(trades(1))["value"]
    {'symbol': 'AAPL', 'type': 'ASK', 'price': 78.43, 'size': 80}
    """
    chance = random.Random(seed)
    prices = {symbol: chance.uniform(20, 200) for symbol in symbols}
    weights = [1 / (place + 2) for place in range(len(symbols))]
    now = float(start)
    for _ in numbers(count):
        symbol = chance.choices(symbols, weights)[0]
        # A price wanders, and is pulled back gently so that it neither vanishes nor explodes.
        prices[symbol] = max(1.0, prices[symbol] * chance.gauss(1.0, 0.002) + (100 - prices[symbol]) * 1e-4)
        yield {
            "key": symbol,
            "value": {
                "symbol": symbol,
                "type": chance.choice(("ASK", "BID")),
                "price": round(prices[symbol], 2),
                "size": chance.randint(1, 20) * 10,
            },
            "timestamp": int(now),
        }
        now += chance.expovariate(per_second) * 1000


@checked
def widgets(count: int, seed: int = 7, start: int = NEW_YEAR) -> Iterator[dict[str, Any]]:
    """Yield widgets, one a second, each with a colour: what the first lesson picks the red ones from.

    >>> next(widgets(1))["value"]
    {'id': 0, 'colour': 'green', 'grams': 59}
    """
    chance = random.Random(seed)
    for number in range(count):
        value = {"id": number, "colour": chance.choice(("red", "green", "blue")), "grams": chance.randint(40, 120)}
        yield {"key": f"widget-{number}", "value": value, "timestamp": start + number * 1000}
