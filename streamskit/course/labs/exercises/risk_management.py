"""The exercises of lab 21: changes that add up to what is true now, and views that are asked instead of computed."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from streamskit.course.datasets.event_time import NEW_YEAR
from streamskit.course.datasets.quotes import deals, quotes
from streamskit.course.labs.asking import Ask, Asks, gives, reads_all
from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Exercise, Lab, Runs
from streamskit.course.labs.loops import Due, as_if, looped, piped
from streamskit.course.labs.misconceptions import Misconception
from streamskit.course.labs.recording import Piped, Recording
from streamskit.course.labs.stores import table
from streamskit.serdes import Serdes

MINUTE = 60_000
POSITION = Serdes.json("quantity long, paid double")
EXPOSURE = Serdes.json("quantity long, worth double")

# ---- 1: positions ----------------------------------------------------------------------------------------------------


def _sign(deal: Mapping[str, Any]) -> int:
    return 1 if deal["side"] == "BUY" else -1


def _positions(
    quantity: Callable[[Mapping[str, Any]], float] = _sign,
    paid: Callable[[Mapping[str, Any]], float] = lambda deal: _sign(deal) * deal["quantity"] * deal["price"],
    forgets: bool = False,
) -> Recording:
    made = (deal for deal in deals(quotes(400, seed=107), seed=109) if deal["key"] in ("GOLD", "WHEAT"))
    steps = piped("risk-deals", (deal for deal, _ in zip(made, range(10), strict=False)))
    held: dict[str, dict[str, Any]] = {}

    def loop(record: Piped) -> Iterator[Due]:
        deal, nothing = record.value, {"quantity": 0, "paid": 0.0}
        before = nothing if forgets else held.get(record.key, nothing)
        more = {"quantity": quantity(deal) * deal["quantity"], "paid": paid(deal)}
        held[record.key] = {name: before[name] + more[name] for name in nothing}
        yield Due("risk-positions", record.key, held[record.key], record.timestamp)

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


def unmatched_sent(outcome: Outcome) -> bool:
    """Something came where one of the two sides is not known."""
    return any(moment.extra and not moment.expected for moment in outcome.moments)


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
    stores = table("positions", positions, POSITION), table("exposure", rows, EXPOSURE)
    return [
        Ask(f'gain(positions, exposure, "{asset}")', (*stores, asset), _gain(*stores, asset))
        for asset in ("WHEAT", "GOLD", "LEAD", "TIN", "ZINC", "PLATINUM")
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


def _alarms(size: Callable[[int], int] = abs, each: bool = False, equal: bool = False, once: bool = False) -> Recording:
    changes = [("GOLD", 60), ("GOLD", 40), ("GOLD", 5), ("WHEAT", -150), ("GOLD", 20), ("WHEAT", 30), ("GOLD", -30)]
    changes += [("GOLD", 50), ("WHEAT", 40), ("WHEAT", -30), ("GOLD", -10)]
    held: dict[str, int] = {}
    alarmed: dict[str, bool] = {}

    def loop(record: Piped) -> Iterator[Due]:
        deal, asset = record.value, record.key
        held[asset] = held.get(asset, 0) + _sign(deal) * deal["quantity"]
        beyond = size(held[asset]) > LIMIT or (equal and size(held[asset]) == LIMIT)
        if beyond and (each or not alarmed.get(asset, False)):
            yield Due("risk-alarms", asset, {"quantity": held[asset]}, record.timestamp)
        alarmed[asset] = beyond or (once and alarmed.get(asset, False))

    steps = []
    for number, (asset, change) in enumerate(changes):
        deal: dict[str, Any] = {"deal": f"D{number:05}", "desk": "London", "side": "BUY" if change > 0 else "SELL"}
        deal |= {"quantity": abs(change), "price": 100.0}
        steps.append(Piped("risk-deals", asset, deal, NEW_YEAR + number * MINUTE))
    return looped(steps, ["risk-alarms"], loop)


LAB = Lab(
    "21-risk-management",
    "Risk management",
    (
        Exercise(
            "risk_positions",
            "Keep what is held of each asset, and what was paid for it in all.",
            Runs(
                _positions,
                (
                    Misconception(
                        "sales counted as purchases",
                        "The position grows with each deal. A sale makes it smaller, and brings money in: both count "
                        "negative.",
                        as_if(lambda: _positions(lambda deal: 1, lambda deal: deal["quantity"] * deal["price"])),
                    ),
                    Misconception(
                        "money without a sign",
                        "The quantities are right. What was paid grows with each deal, and a sale brings money in.",
                        as_if(lambda: _positions(paid=lambda deal: deal["quantity"] * deal["price"])),
                    ),
                    Misconception(
                        "prices added in place of money",
                        "paid is a sum of prices. A deal costs its price times its quantity.",
                        as_if(
                            lambda: _positions(paid=lambda deal: _sign(deal) * deal["price"]),
                            lambda: _positions(paid=lambda deal: deal["price"]),
                        ),
                    ),
                    Misconception(
                        "the last deal for the position",
                        "Each result is the last deal alone. A deal is a change: it is added to what was held before.",
                        as_if(lambda: _positions(forgets=True)),
                    ),
                ),
            ),
            (
                "The function gets the asset, a deal, and what was held so far. What does the deal change?",
                'The change is deal["quantity"], and minus that where the side is SELL.',
                'signed = deal["quantity"] if deal["side"] == "BUY" else -deal["quantity"]; add it to quantity, and '
                'signed * deal["price"] to paid.',
            ),
        ),
        Exercise(
            "exposure_view",
            "Join positions and quotes to a view of what each position is worth.",
            Runs(
                _exposure,
                (
                    Misconception(
                        "valued at the wrong side of the quote",
                        "What is held would be sold at the bid; what is owed, a negative position, would have to be "
                        "bought at the ask.",
                        as_if(
                            lambda: _exposure(lambda quantity, quote: quantity * quote["bid"]),
                            lambda: _exposure(lambda quantity, quote: quantity * quote["ask"]),
                            lambda: _exposure(
                                lambda quantity, quote: quantity * quote["bid" if quantity < 0 else "ask"]
                            ),
                            lambda: _exposure(lambda quantity, quote: quantity * (quote["bid"] + quote["ask"]) / 2),
                        ),
                    ),
                    Misconception(
                        "only one side's changes",
                        "The view changes with the one topic and not with the other. A stream that is joined with a "
                        "table looks it up; two tables that are joined follow both.",
                        as_if(
                            lambda: _exposure(only_after="risk-positions", deletes=False),
                            lambda: _exposure(only_after="risk-quotes", deletes=False),
                        ),
                    ),
                    Misconception(
                        "a side that is missing",
                        "A record came for an asset of which only a position or only a quote is known. Without a "
                        "quote nobody can say what a position is worth: join, not left_join.",
                        unmatched_sent,
                    ),
                ),
            ),
            (
                "Both topics say what is true now. What does that make of them: streams or tables?",
                "builder.table(...) twice, join with a function of both values, to_stream().to(...).",
                "F.when(held < 0, quote.ask).otherwise(quote.bid) is the price.",
            ),
        ),
        Exercise(
            "at_stake",
            "List the assets of which more is at stake than a limit, the most first.",
            Asks(
                _ask_at_stake,
                "with a limit that one asset has just reached, and with one that none has.",
                (
                    Misconception(
                        "what is owed forgotten",
                        "Negative positions are missing. To owe a million is as much at stake as to hold one: compare "
                        "without the sign.",
                        gives(
                            _at_stake(size=lambda worth: worth),
                            _at_stake(size=lambda worth: worth, order=lambda worth: -worth),
                        ),
                    ),
                    Misconception(
                        "sorted with the sign",
                        "The assets are the right ones. What is owed stands at the wrong place: sort without the sign.",
                        gives(_at_stake(order=lambda worth: -worth), _at_stake(order=lambda worth: worth)),
                    ),
                    Misconception("least first", "You begin with the least.", gives(_at_stake(order=abs))),
                    Misconception(
                        "the limit itself",
                        "An asset is in it that has just reached the limit. The task wants those with more.",
                        gives(_at_stake(equal=True)),
                    ),
                    Misconception(
                        "in the order of the store",
                        "The assets are the right ones, in the order of their names. The task wants the most first.",
                        gives(_at_stake(order=lambda worth: 0)),
                    ),
                ),
            ),
            (
                "The order of the keys does not help here: the store is read whole.",
                "Compare abs(row['worth']) with the limit, and sort by it.",
                'sorted(found, key=lambda pair: -abs(pair[1]["worth"])), and then the names.',
            ),
        ),
        Exercise(
            "gain",
            "Say what was gained with an asset, from two stores; None where one of them doesn't know it.",
            Asks(
                _ask_gain,
                "of gains and losses, of an asset that was sold out, and of some that a store does not know.",
                (
                    Misconception(
                        "null taken for 0",
                        "A store that does not know an asset says None, and you go on with 0: an asset without a quote "
                        "looks like a loss of all that was paid.",
                        gives(
                            _gain_in_part,
                            lambda positions, exposure, asset: _gain(positions, exposure, asset, 0),
                            lambda positions, exposure, asset: _gain(positions, exposure, asset, 0.0),
                        ),
                    ),
                    Misconception(
                        "gains and losses exchanged",
                        "The sign is wrong: what it is worth, less what was paid, is the gain.",
                        gives(lambda positions, exposure, asset: _gain(positions, exposure, asset, sign=-1)),
                    ),
                    Misconception(
                        "an unknown asset asked for its fields",
                        "A store that does not know an asset returns None, and None has no fields.",
                        gives(
                            lambda positions, exposure, asset: (
                                exposure.get(asset)["worth"] - positions.get(asset)["paid"]
                            )
                        ),
                    ),
                    Misconception(
                        "a gain of nothing taken for none",
                        "An asset was sold out, is worth 0, and was a gain all the same. Ask whether the row is None, "
                        "not whether its number is 0.",
                        gives(
                            lambda positions, exposure, asset: (
                                _gain(positions, exposure, asset) if (exposure.get(asset) or {}).get("worth") else None
                            )
                        ),
                    ),
                ),
                (
                    Misconception(
                        "whole store read for one key",
                        "The answers are right, and whole stores were read for them. Both are asked by key.",
                        reads_all,
                    ),
                ),
            ),
            (
                "Two look-ups, and a case in which there is no answer.",
                "held = positions.get(asset), valued = exposure.get(asset); either may be None.",
                'return None if held is None or valued is None else valued["worth"] - held["paid"]',
            ),
        ),
        Exercise(
            "limit_alarms",
            "Send an alarm when a position passes the limit of 100, and not again until it was back within.",
            Runs(
                _alarms,
                (
                    Misconception(
                        "an alarm at each deal",
                        "As long as a position is beyond the limit, each deal gives an alarm. It is wanted when the "
                        "limit is passed: the state before the deal has to be known, too.",
                        as_if(lambda: _alarms(each=True), lambda: _alarms(each=True, equal=True)),
                    ),
                    Misconception(
                        "what is owed forgotten",
                        "There is no alarm for a position below -100. To owe is as much of a risk as to hold.",
                        as_if(lambda: _alarms(size=lambda held: held), lambda: _alarms(lambda held: held, each=True)),
                    ),
                    Misconception(
                        "the limit itself",
                        "A position of just 100 gives an alarm. The limit may be reached, and not passed.",
                        as_if(lambda: _alarms(equal=True)),
                    ),
                    Misconception(
                        "one alarm for ever",
                        "A position that came back and passes the limit again gives no alarm. What is remembered of "
                        "the first one has to be forgotten when the position is back within the limit.",
                        as_if(lambda: _alarms(once=True)),
                    ),
                ),
            ),
            (
                "What has to be known of an asset before a deal, so that one can tell whether this deal passes the "
                "limit?",
                "A processor with a store of positions: read what was held, add the deal, write it back. Forward if it "
                "was within the limit before and is not now.",
                "if abs(before) <= 100 < abs(after): self.context.forward(record.with_value({...}))",
            ),
        ),
    ),
)
