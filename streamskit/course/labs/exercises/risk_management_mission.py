"""The mission of lab 21: new rules for positions whose first deals are on no topic any more."""

from collections.abc import Iterable
from typing import Any

from kafka import TopicPartition

from streamskit.common.names import own_name
from streamskit.course.datasets.quotes import DEAL_SCHEMA
from streamskit.course.labs.exercise import Verdict, mistaken, right, wrong
from streamskit.course.labs.missions import Site, is_up
from streamskit.dsl.builder import StreamsBuilder
from streamskit.kafka.connection import admin_client
from streamskit.runtime.streams import KafkaStreams
from streamskit.serdes import Serdes
from streamskit.topology import Topology

DEAL, POSITION = Serdes.json(DEAL_SCHEMA), Serdes.json("quantity long, paid double")
LIMIT = 1_000
TRAINING = "Training"
"""A desk whose deals are not to count."""

KeyedDeal = tuple[str, dict[str, Any]]
Positions = dict[str, dict[str, Any]]


def deals_of(desk: str, **changes: int) -> list[KeyedDeal]:
    """Return a desk's deals: for each asset how much more of it is held then."""
    return [
        (asset, {"deal": "D1", "desk": desk, "side": "BUY" if change > 0 else "SELL", "quantity": abs(change),
                 "price": 100.0})
        for asset, change in changes.items()
    ]  # fmt: skip


MONDAY = [
    *deals_of("London", GOLD=500, BRENT=300, WHEAT=-900, COFFEE=400),
    *deals_of("Geneva", GOLD=300, COTTON=100),
]
TUESDAY = deals_of("Geneva", GOLD=50, WHEAT=-50, BRENT=200, COTTON=-150)
WEDNESDAY = [
    *deals_of(TRAINING, BRENT=5_000, SILVER=100),
    *deals_of("London", GOLD=300, WHEAT=-200, BRENT=500, COTTON=-950, COFFEE=601),
    *deals_of(TRAINING, COTTON=-4_000),
]
"""Afterwards two positions are exactly at the limit, and one is beyond it by 1."""


def positions(site: Site) -> Topology:
    """Keep what is held of each asset, and what was paid for it."""
    builder = StreamsBuilder()
    dealt = builder.stream(site.topic("deals"), value=DEAL).group_by_key()
    held = dealt.aggregate(nothing_held, booked, "positions", value=POSITION)
    held.to_stream().to(site.topic("positions"))
    return builder.build()


def nothing_held() -> dict[str, Any]:
    """Return the position in which nothing is held."""
    return {"quantity": 0, "paid": 0.0}


def booked(asset: str, deal: dict[str, Any], position: dict[str, Any]) -> dict[str, Any]:
    """Return a position after a deal."""
    signed = deal["quantity"] if deal["side"] == "BUY" else -deal["quantity"]
    return {"quantity": position["quantity"] + signed, "paid": position["paid"] + signed * deal["price"]}


def held_since_monday(site: Site) -> None:
    """Let the positions of two days be kept; the topic has only the second day's deals any more."""
    site.create_topics(deals=2, positions=2, alarms=1)
    site.broker.produce(site.topic("deals"), MONDAY)
    streams = site.props["streams"] = site.application(positions(site))
    streams.start()
    streams.await_processed("60 seconds")
    ends = site.broker.end_offsets(site.topic("deals"))
    with admin_client(site.broker.connection) as admin:  # what the topic's retention would do
        deals = own_name(site.topic("deals"))
        admin.delete_records({TopicPartition(deals, number): end for number, end in ends.items() if end})
    site.broker.produce(site.topic("deals"), TUESDAY)
    streams.await_processed("60 seconds")


def judge_new_rules(site: Site, returned: KafkaStreams) -> Verdict:
    """Judge by a day with the new rules: its positions go on from those of the days before, and some give an alarm."""
    if returned is site.streams:
        return mistaken("nothing has changed")
    if not is_up(returned):
        return mistaken("not running")
    site.broker.produce(site.topic("deals"), WEDNESDAY)
    returned.await_processed("60 seconds")
    rows = {asset: dict(row) for asset, row in returned.store("positions").all()}
    found = {asset: row for asset, row in rows.items() if row != nothing_held()}  # a desk may be left out in `booked`
    if found in (held([*TUESDAY, *WEDNESDAY]), held([*TUESDAY, *WEDNESDAY], TRAINING)):
        gold = held([*MONDAY, *TUESDAY, *WEDNESDAY])["GOLD"]
        return mistaken("started again from the beginning", found=found["GOLD"]["quantity"], gold=gold["quantity"])
    if found == held([*MONDAY, *TUESDAY, *WEDNESDAY]):
        return mistaken("training deals counted")
    due = held([*MONDAY, *TUESDAY, *WEDNESDAY], TRAINING)
    if found != due:
        return wrong(f"The positions are {found}, and should be {due}.")
    if stale := [asset for asset, row in _last_in(site, "positions").items() if row != rows.get(asset)]:
        return mistaken("positions no longer sent", asset=min(stale))
    return _by_alarms(_last_in(site, "alarms"), due)


def _last_in(site: Site, topic: str) -> dict[str, Any]:
    sent = site.broker.consume(site.topic(topic), value=POSITION)
    return dict(zip(sent["key"], sent["value"], strict=True))


def _by_alarms(alarms: dict[str, Any], due: Positions) -> Verdict:
    beyond = {asset for asset, position in due.items() if abs(position["quantity"]) > LIMIT}
    if not alarms:
        return mistaken("no alarm")
    if within := sorted(alarms.keys() - beyond):
        quantity = due.get(within[0], nothing_held())["quantity"]
        return mistaken("alarms within the limit", asset=within[0], quantity=quantity)
    if missing := sorted(beyond - alarms.keys()):
        if {asset for asset in beyond if due[asset]["quantity"] < 0} == {*missing}:
            return mistaken("owed positions forgotten")
        return mistaken("another limit", asset=missing[0], quantity=due[missing[0]]["quantity"])
    if off := [asset for asset in sorted(beyond) if alarms[asset] != due[asset]]:
        return mistaken("not as it is", asset=off[0], sent=alarms[off[0]], due=due[off[0]])
    return right(
        f"The rules changed on Wednesday, and all {len(due)} positions continue from Monday's, whose deals are in "
        f"no topic any more; {', '.join(sorted(beyond))} are beyond the limit, and an alarm says so."
    )


def held(deals: Iterable[KeyedDeal], without: str = "") -> Positions:
    """Add up the deals of each asset, those of one desk left out."""
    positions: Positions = {}
    for asset, deal in deals:
        if deal["desk"] != without:
            positions[asset] = booked(asset, deal, positions.get(asset, nothing_held()))
    return positions


# ---- wrong answers ---------------------------------------------------------------------------------------------------


ANOTHER_STEP = "gives this one its state back"
"""The message of a start that is refused because the step that keeps the state has another number now."""
