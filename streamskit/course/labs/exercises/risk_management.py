"""The exercises of lab 21: changes that add up to the current state, and views that are queried, not computed."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit.course.datasets.event_time import NEW_YEAR
from streamskit.course.datasets.quotes import QUOTE_SCHEMA, deals, quotes
from streamskit.course.labs.asking import Ask, Asks, reading_all, reads_all
from streamskit.course.labs.exercise import Runs
from streamskit.course.labs.exercises.risk_management_mission import (
    ANOTHER_STEP,
    held_since_monday,
    judge_new_rules,
)
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.loops import Due, WrongLoop, looped
from streamskit.course.labs.misconceptions import unasked
from streamskit.course.labs.missions import A_PROCESSOR, ID_IS_TAKEN, Lives
from streamskit.course.labs.recording import Piped, Recording
from streamskit.course.labs.stores import table
from streamskit.dsl.builder import StreamsBuilder
from streamskit.serdes import Serdes

MINUTE = 60_000
POSITION = Serdes.json("quantity long, paid double")
EXPOSURE = Serdes.json("quantity long, worth double")

# ---- 1: what was paid for what is held now ---------------------------------------------------------------------------


def _sign(deal: Mapping[str, Any]) -> int:
    return 1 if deal["side"] == "BUY" else -1


DEALS = (
    "GOLD BUY 10 100", "WHEAT SELL 40 6", "GOLD BUY 30 120", "GOLD SELL 8 150", "WHEAT BUY 10 5", "GOLD BUY 8 95",
    "GOLD SELL 40 110", "WHEAT SELL 20 9", "GOLD SELL 5 108", "GOLD SELL 15 100", "WHEAT BUY 90 7", "GOLD BUY 26 90",
)  # fmt: skip
"""Deals that add to a position, reduce it, close one, and turn a long position into a short one and back."""

Average = Callable[[int, float, int, float], float]
"""Returns the new average, given what was held, its average, what is held now, and the price of the deal."""


def _mixed(held: int, average: float, now: int, price: float) -> float:
    return (held * average + (now - held) * price) / now if now else 0.0


def _average(held: int, average: float, now: int, price: float) -> float:
    if held * now > 0 and abs(now) < abs(held):
        return average
    return price if held * now < 0 else _mixed(held, average, now, price)


def _positions(average: Average = _average, signed: bool = True, forgets: bool = False) -> Recording:
    held: dict[str, dict[str, Any]] = {}

    def loop(record: Piped) -> Iterator[Due]:
        deal, before = record.value, held.get(record.key, {"quantity": 0, "average": 0.0})
        was = 0 if forgets else before["quantity"]
        now = was + deal["quantity"] * (_sign(deal) if signed else 1)
        held[record.key] = {"quantity": now, "average": average(was, before["average"], now, deal["price"])}
        yield Due("risk-positions", record.key, held[record.key], record.timestamp)

    steps = []
    for number, (asset, side, quantity, price) in enumerate(map(str.split, DEALS)):
        deal = {"side": side, "quantity": int(quantity), "price": float(price)}
        steps.append(Piped("risk-deals", asset, deal, NEW_YEAR + number * MINUTE))
    return looped(steps, ["risk-positions"], loop, {"positions": held})


# ---- 2: exposure -----------------------------------------------------------------------------------------------------

Worth = Callable[[int, Mapping[str, float]], float]


def _by_sign(quantity: int, quote: Mapping[str, float]) -> float:
    return quantity * quote["ask" if quantity < 0 else "bid"]


def _exposure(worth: Worth = _by_sign, only_after: str = "", deletes: bool = True) -> Recording:
    gold, wheat = {"bid": 2430.5, "ask": 2433.0}, {"bid": 591.0, "ask": 592.25}
    updates = [
        ("risk-quotes", "GOLD", gold), ("risk-positions", "GOLD", 10), ("risk-positions", "WHEAT", -50),
        ("risk-quotes", "WHEAT", wheat), ("risk-positions", "GOLD", -15), ("risk-positions", "WHEAT", 25),
        ("risk-quotes", "GOLD", {"bid": 2428.0, "ask": 2431.5}), ("risk-quotes", "WHEAT", None),
        ("risk-positions", "WHEAT", -75), ("risk-quotes", "WHEAT", {"bid": 590.0, "ask": 591.75}),
    ]  # fmt: skip
    tables: dict[str, dict[str, Any]] = {"risk-quotes": {}, "risk-positions": {}}

    def loop(record: Piped) -> Iterator[Due]:
        asset = record.key
        was_there = all(rows.get(asset) is not None for rows in tables.values())
        tables[record.topic][asset] = record.value
        held, quote = tables["risk-positions"].get(asset), tables["risk-quotes"].get(asset)
        if only_after not in ("", record.topic):
            return
        if held is not None and quote is not None:
            yield Due("risk-exposure", asset, {"quantity": held, "worth": worth(held, quote)})
        elif was_there and deletes:
            yield Due("risk-exposure", asset, None)

    steps = [Piped(*update, NEW_YEAR + number * MINUTE) for number, update in enumerate(updates)]
    return looped(steps, ["risk-exposure"], loop)


def valued(kind: str) -> Callable[[StreamsBuilder], None]:
    """Return the answer that joins positions and quotes in this way."""

    def worth(held: Column, quote: Column) -> Column:
        price = F.when(held < 0, quote.ask).otherwise(quote.bid)
        return F.struct(held.alias("quantity"), (held * price).alias("worth"))

    def answer(builder: StreamsBuilder) -> None:
        positions = builder.table("risk-positions", value=Serdes.long())
        prices = builder.table("risk-quotes", value=Serdes.json(QUOTE_SCHEMA))
        getattr(positions, kind)(prices, worth).to_stream().to("risk-exposure")

    return answer


# ---- 3 and 4: asking for what is at stake ----------------------------------------------------------------------------


def _exposures(seed: int) -> dict[str, dict[str, Any]]:
    """Return what is held of each asset and what that is worth, from generated deals and quotes."""
    market = list(quotes(900, seed=seed))
    last = {quote["key"]: quote["value"] for quote in market}
    held: dict[str, int] = {}
    for deal in deals(market, seed=seed):
        held[deal["key"]] = held.get(deal["key"], 0) + _sign(deal["value"]) * deal["value"]["quantity"]
    return {asset: {"quantity": n, "worth": _by_sign(n, last[asset])} for asset, n in held.items()}


def _ask_at_stake() -> list[Ask]:
    asks = []
    for seed in (113, 127):
        rows = _exposures(seed) | {"TIN": {"quantity": 0, "worth": 0.0}, "ZINC": {"quantity": 200, "worth": 500_000.0}}
        store = table("exposure", rows, EXPOSURE)
        asks += [
            Ask(f"at_stake(store, {limit:_})", (store, limit), _at_stake()(store, limit))
            for limit in (100_000, 500_000, 1_000_000_000)
        ]
    return asks


def _at_stake(
    size: Callable[[float], float] = abs,
    order: Callable[[float], float] = lambda worth: -abs(worth),
    equal: bool = False,
) -> Callable[[Any, float], list[str]]:
    def answer(store: Any, limit: float) -> list[str]:
        found = [(asset, row["worth"]) for asset, row in store.all()]
        kept = [(asset, worth) for asset, worth in found if size(worth) > limit or (equal and size(worth) == limit)]
        return [asset for asset, _ in sorted(kept, key=lambda pair: order(pair[1]))]

    return answer


def _ask_gain() -> list[Ask]:
    rows = _exposures(131)
    positions = {asset: {"quantity": row["quantity"], "paid": row["worth"] - 1_000.5} for asset, row in rows.items()}
    positions["GOLD"]["paid"] += 5_000
    positions["TIN"] = {"quantity": 40, "paid": 1_200.0}
    rows["ZINC"] = {"quantity": 40, "worth": 99.0}
    rows["LEAD"], positions["LEAD"] = {"quantity": 0, "worth": 0.0}, {"quantity": 0, "paid": -75.0}
    rows["IRON"], positions["IRON"] = {"quantity": 10, "worth": 500.0}, {"quantity": 10, "paid": 500.0}
    stores = table("positions", positions, POSITION), table("exposure", rows, EXPOSURE)
    return [
        Ask(f'gain(positions, exposure, "{asset}")', (*stores, asset), _gain(*stores, asset))
        for asset in ("WHEAT", "GOLD", "LEAD", "IRON", "TIN", "ZINC", "PLATINUM")
    ]


def _gain(positions: Any, exposure: Any, asset: str, unknown: Any = None, sign: int = 1) -> float | None:
    held, valued = positions.get(asset), exposure.get(asset)
    if held is None or valued is None:
        return unknown
    return sign * (valued["worth"] - held["paid"])


def _gain_in_part(positions: Any, exposure: Any, asset: str) -> float:
    held, valued = positions.get(asset) or {"paid": 0.0}, exposure.get(asset) or {"worth": 0.0}
    return valued["worth"] - held["paid"]


# ---- 5: alarms -------------------------------------------------------------------------------------------------------

LIMIT = 100


def _alarms(
    size: Callable[[int], int] = abs,
    each: bool = False,
    equal: bool = False,
    once: bool = False,
    by_desk: bool = False,
) -> Recording:
    changes = [("GOLD", 60), ("GOLD", 40), ("GOLD", 5), ("WHEAT", -150), ("GOLD", 20), ("WHEAT", 30), ("GOLD", -30)]
    changes += [("GOLD", 50), ("WHEAT", 40), ("WHEAT", -30), ("GOLD", -10), ("WHEAT", 220)]
    changes += [("TIN", -60), ("TIN", -40), ("TIN", -1)]
    held: dict[tuple[str, str | None], int] = {}
    alarmed: dict[tuple[str, str | None], bool] = {}

    def loop(record: Piped) -> Iterator[Due]:
        deal = record.value
        of = record.key, deal["desk"] if by_desk else None
        held[of] = held.get(of, 0) + _sign(deal) * deal["quantity"]
        beyond = size(held[of]) > LIMIT or (equal and size(held[of]) == LIMIT)
        if beyond and (each or not alarmed.get(of, False)):
            yield Due("risk-alarms", record.key, {"quantity": held[of]}, record.timestamp)
        alarmed[of] = beyond or (once and alarmed.get(of, False))

    steps = []
    for number, (asset, change) in enumerate(changes):
        deal: dict[str, Any] = {"deal": f"D{number:05}", "desk": ("London", "Geneva")[number % 2]}
        deal |= {"side": "BUY" if change > 0 else "SELL", "quantity": abs(change), "price": 100.0}
        steps.append(Piped("risk-deals", asset, deal, NEW_YEAR + number * MINUTE))
    return looped(steps, ["risk-alarms"], loop)


LAB = lab(
    "21-risk-management",
    risk_positions=Runs(
        _positions,
        wrong={
            "sales counted as purchases": WrongLoop(lambda: _positions(signed=False)),
            "a sale changes what was paid": [
                WrongLoop(lambda: _positions(_mixed)),
                WrongLoop(
                    lambda: _positions(
                        lambda h, a, now, p: p if h * now < 0 else _mixed(abs(h), a, abs(h) + abs(now - h), p)
                    )
                ),
            ],
            "the old average on the other side": WrongLoop(
                lambda: _positions(lambda h, a, now, p: a if h * now < 0 else _average(h, a, now, p))
            ),
            "prices added in place of money": WrongLoop(
                lambda: _positions(
                    lambda h, a, now, p: (a + p) / 2 if h and abs(now) > abs(h) else _average(h, a, now, p)
                )
            ),
            "the last deal for the position": WrongLoop(lambda: _positions(forgets=True)),
        },
    ),
    exposure_view=Runs(
        _exposure,
        wrong={
            "a side that is missing": [valued("left_join"), valued("outer_join")],
            "valued at the wrong side of the quote": [
                WrongLoop(lambda: _exposure(lambda quantity, quote: quantity * quote["bid"])),
                WrongLoop(lambda: _exposure(lambda quantity, quote: quantity * quote["ask"])),
                WrongLoop(
                    lambda: _exposure(lambda quantity, quote: quantity * quote["bid" if quantity < 0 else "ask"])
                ),
                WrongLoop(lambda: _exposure(lambda quantity, quote: quantity * (quote["bid"] + quote["ask"]) / 2)),
            ],
            "only one side's changes": [
                WrongLoop(lambda: _exposure(only_after="risk-positions", deletes=False)),
                WrongLoop(lambda: _exposure(only_after="risk-quotes", deletes=False)),
            ],
        },
        signs={"a side that is missing": unasked},
    ),
    at_stake=Asks(
        _ask_at_stake,
        "with a limit that one asset has just reached, and with one that none has.",
        wrong={
            "owed positions forgotten": [
                _at_stake(size=lambda worth: worth),
                _at_stake(size=lambda worth: worth, order=lambda worth: -worth),
            ],
            "sorted with the sign": [_at_stake(order=lambda worth: -worth), _at_stake(order=lambda worth: worth)],
            "least first": _at_stake(order=abs),
            "the limit itself": _at_stake(equal=True),
            "in the order of the store": _at_stake(order=lambda worth: 0),
        },
    ),
    gain=Asks(
        _ask_gain,
        "of gains and losses, of an asset that was sold out, and of some that a store does not know.",
        wrong={
            "null taken for 0": [
                _gain_in_part,
                lambda positions, exposure, asset: _gain(positions, exposure, asset, 0),
                lambda positions, exposure, asset: _gain(positions, exposure, asset, 0.0),
            ],
            "gains and losses exchanged": lambda positions, exposure, asset: _gain(positions, exposure, asset, sign=-1),
            "an unknown asset asked for its fields": lambda positions, exposure, asset: (
                exposure.get(asset)["worth"] - positions.get(asset)["paid"]
            ),
            "a gain of nothing taken for none": lambda positions, exposure, asset: (
                _gain(positions, exposure, asset) if (exposure.get(asset) or {}).get("worth") else None
            ),
            "whole store read for one key": reading_all(_gain),
        },
        habits={"whole store read for one key": reads_all},
    ),
    limit_alarms=Runs(
        _alarms,
        wrong={
            "an alarm at each deal": [
                WrongLoop(lambda: _alarms(each=True)),
                WrongLoop(lambda: _alarms(each=True, equal=True)),
            ],
            "owed positions forgotten": [
                WrongLoop(lambda: _alarms(size=lambda held: held)),
                WrongLoop(lambda: _alarms(lambda held: held, each=True)),
            ],
            "the limit itself": WrongLoop(lambda: _alarms(equal=True)),
            "one alarm for ever": WrongLoop(lambda: _alarms(once=True)),
            "each desk by itself": WrongLoop(lambda: _alarms(by_desk=True)),
        },
    ),
    new_rules=Lives(
        "new_rules",
        held_since_monday,
        judge_new_rules,
        returns_application=True,
        errors={
            ID_IS_TAKEN: "two of one name",
            ANOTHER_STEP: "the state of another step",
            A_PROCESSOR: "a processor more",
        },
    ),
)
