"""What raw materials are bought and sold for, and the deals of a trading house in them, made from a seed.

The assets are real; prices, desks and deals are not.
"""

import random
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from streamskit.course.datasets.arguments import checked
from streamskit.course.datasets.event_time import DAY, HOUR, NEW_YEAR, numbers

QUOTE_SCHEMA = "bid double, ask double"
"""The fields of a quote: for how much the market buys (bid) and sells (ask) one unit, in dollars."""

DEAL_SCHEMA = "deal string, desk string, side string, quantity long, price double"
"""The fields of a deal; `side` is BUY or SELL."""

DESKS = ("Geneva", "London", "Singapore")


class Asset(NamedTuple):
    """What is traded: its price at the start in cents, how much it moves, how much of it a deal is about.

    `lean` is the share of deals that buy; not all are even, so that positions grow.
    """

    name: str
    cents: int
    movement: float
    lot: int
    lean: float


ASSETS = (
    Asset("GOLD", 243_200, 0.0006, 5, 0.55), Asset("BRENT", 8_140, 0.0012, 100, 0.62),
    Asset("COPPER", 42_050, 0.0010, 20, 0.50), Asset("WHEAT", 59_200, 0.0009, 25, 0.35),
    Asset("SILVER", 2_915, 0.0011, 250, 0.50), Asset("GAS", 2_260, 0.0025, 300, 0.42),
    Asset("COFFEE", 23_180, 0.0014, 30, 0.58), Asset("COTTON", 7_030, 0.0008, 80, 0.48),
)  # fmt: skip
"""The first are quoted most."""


@checked
def quotes(
    count: int | None = None, seed: int = 7, per_day: int = 1_000, start: int = NEW_YEAR
) -> Iterator[dict[str, Any]]:
    """Yield quotes in the order of their time, ready for `broker.produce`; the key is the asset.

    The market is open from eight to eighteen o'clock. The ask is above the bid, further when the price moves more.

    Args:
        count: how many; a smaller count gives the first of the same quotes. Without it they never end.
        seed: another seed gives other prices.
        per_day: how many quotes of all assets there are in a day.
        start: the midnight before the first, in milliseconds since 1970.

    >>> next(quotes(1))
    {'key': 'GOLD', 'value': {'bid': 2430.11, 'ask': 2433.18}, 'timestamp': 1767254411991}
    """
    chance = random.Random(seed)
    prices = {asset.name: float(asset.cents) for asset in ASSETS}
    often = [1 / (place + 3) for place in range(len(ASSETS))]
    times: list[int] = []
    for number in numbers(count):
        day, place = divmod(number, per_day)
        if place == 0:
            times = sorted(start + day * DAY + 8 * HOUR + chance.randrange(10 * HOUR) for _ in range(per_day))
        asset = chance.choices(ASSETS, often)[0]
        # A price wanders, and is pulled back gently so that it neither vanishes nor explodes.
        wandered = prices[asset.name] * chance.gauss(1.0, asset.movement)
        prices[asset.name] = middle = max(100.0, wandered + (asset.cents - wandered) * 0.002)
        half_spread = max(1.0, middle * asset.movement * chance.uniform(0.4, 1.2))
        value = {"bid": round(middle - half_spread) / 100, "ask": round(middle + half_spread) / 100}
        yield {"key": asset.name, "value": value, "timestamp": times[place]}


@checked
def deals(on: Iterable[dict[str, Any]], seed: int = 7, share: float = 0.25) -> Iterator[dict[str, Any]]:
    """Yield the deals that are made on some quotes, each a second after its quote; the key is the asset.

    A desk buys at the ask and sells at the bid.

    Args:
        on: the quotes, in the order of their time.
        seed: another seed gives other deals.
        share: how many quotes lead to a deal, from 0 to 1.

    >>> next(deals(quotes(100)))["value"].keys()
    dict_keys(['deal', 'desk', 'side', 'quantity', 'price'])
    """
    chance = random.Random(seed)
    assets = {asset.name: asset for asset in ASSETS}
    number = 0
    for quote in on:
        if chance.random() >= share:
            continue
        number += 1
        asset = assets[quote["key"]]
        is_bought = chance.random() < asset.lean
        value = {
            "deal": f"D{number:05}",
            "desk": chance.choice(DESKS),
            "side": "BUY" if is_bought else "SELL",
            "quantity": chance.randint(1, 10) * asset.lot,
            "price": quote["value"]["ask" if is_bought else "bid"],
        }
        yield {"key": asset.name, "value": value, "timestamp": quote["timestamp"] + 1_000}
