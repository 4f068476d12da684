"""The mission of lab 13: one shop gives one task nearly all the work; it is shared out, and totals stay right."""

import random
from collections.abc import Callable
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit.course.labs.exercise import Verdict, mistaken, right, wrong
from streamskit.course.labs.missions import Site
from streamskit.dsl.builder import StreamsBuilder
from streamskit.serdes import Serdes
from streamskit.topology import Topology

SALE = Serdes.json("article string, pieces long")
LONG = Serdes.long()
SHOPS = ("Bergen", "Espoo", "Lund", "Malmo", "Tampere", "Turku", "Vaasa")
LARGEST = "Oslo"
SHARE = 0.4
"""Which part of the sales one task may have at most."""


def sales(seed: int, count: int = 200) -> list[tuple[str, dict[str, Any]]]:
    """Return sales, four of five of them in one shop."""
    chance = random.Random(seed)
    return [
        (
            LARGEST if chance.random() < 0.8 else chance.choice(SHOPS),
            {"article": f"article-{chance.randrange(40):02}", "pieces": chance.randrange(1, 5)},
        )
        for _ in range(count)
    ]


MORNING, AFTERNOON = sales(13), sales(31)


def a_busy_shop(site: Site) -> None:
    """Put the morning's sales into a topic of four partitions."""
    site.create_topics(sales=4, totals=1)
    site.broker.produce(site.topic("sales"), MORNING, value=SALE)


def judge_even_load(site: Site, topology: Any) -> Verdict:
    """Judge a topology by what its tasks got, and by the totals at noon and in the evening."""
    if not isinstance(topology, Topology):
        return wrong(f"It has to return the topology that builder.build() gives; it returned {topology!r}.")
    with site.application(topology) as streams:
        streams.await_processed("60 seconds")
        site.broker.produce(site.topic("sales"), AFTERNOON, value=SALE)
        streams.await_processed("60 seconds")
    largest = largest_share(site)
    if largest > SHARE:
        return mistaken("the work is where it was", share=f"{largest:.0%}")
    updates = site.broker.consume(site.topic("totals"), value=LONG)
    found = dict(zip(updates["key"], updates["value"], strict=True))
    due = pieces([*MORNING, *AFTERNOON])
    if odd := sorted(str(key) for key in found.keys() - due.keys()):
        return mistaken("shared out and not added up", key=odd[0])
    if missing := sorted(due.keys() - found.keys()):
        return wrong(f"The topic totals has no total of {', '.join(missing)}.")
    if found[LARGEST] > due[LARGEST]:
        return mistaken("old sums left in", found=found[LARGEST], due=due[LARGEST])
    if bad := [shop for shop in due if found[shop] != due[shop]]:
        return wrong(f"The total of {bad[0]} is {found[bad[0]]}, and should be {due[bad[0]]}.")
    count = len(MORNING) + len(AFTERNOON)
    return right(
        f"{count} sales went through a broker. No task had more than {largest:.0%} of them, where one had "
        f"{_share_of_the_largest_key():.0%} before, and all {len(due)} totals are right."
    )


def largest_share(site: Site) -> float:
    """Return the largest part of the sales that one task had, by the topic from which tasks took every sale."""
    count = len(MORNING) + len(AFTERNOON)
    shares = [1.0]
    for topic in site.broker.topics():
        if topic.startswith(site.application_id) and topic.endswith("-repartition"):
            offsets = site.broker.end_offsets(topic).values()
            if sum(offsets) >= count:
                shares.append(max(offsets) / sum(offsets))
    return min(shares)


def pieces(sold: list[tuple[str, dict[str, Any]]]) -> dict[str, int]:
    """Add up the pieces of each shop."""
    totals: dict[str, int] = {}
    for shop, sale in sold:
        totals[shop] = totals.get(shop, 0) + sale["pieces"]
    return totals


def _share_of_the_largest_key() -> float:
    sold = [*MORNING, *AFTERNOON]
    return sum(shop == LARGEST for shop, _ in sold) / len(sold)


# ---- wrong answers ---------------------------------------------------------------------------------------------------


def spread(
    key: Callable[[Column, Column], Column], added_up: bool = True, taken_out: bool = True
) -> Callable[[Site], Topology]:
    """Return an answer that adds up by this key first, and then by shop, old sums taken out or not."""

    def answer(site: Site) -> Topology:
        builder = StreamsBuilder()
        sold = builder.stream(site.topic("sales"), value=SALE)
        parts = sold.group_by(key, name="spread").aggregate(lambda v: F.sum(v.pieces))
        if added_up:
            by_shop = parts.group_by(lambda k, v: (F.split(k, "/")[0], v))
            parts = by_shop.reduce(
                lambda total, new: total + new, lambda total, old: total - old if taken_out else total
            )
        parts.to_stream().to(site.topic("totals"), value=LONG)
        return builder.build()

    return answer


def by_shop_and_article(k: Column, v: Column) -> Column:
    """Return a key of many values for each shop."""
    return F.concat(k, F.lit("/"), v.article)


WRONG = {
    "the work is where it was": spread(lambda k, v: k),
    "shared out and not added up": spread(by_shop_and_article, added_up=False),
    "old sums left in": spread(by_shop_and_article, taken_out=False),
}
