"""The exercises of lab 13: where a topology is cut, how many tasks it has, and what many slots can do for them."""

import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from streamskit.course.labs.asking import Asks, like
from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Runs, Says, Verdict, mistaken, right, topology_of, wrong
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.misconceptions import extra_row
from streamskit.course.labs.missions import Lives, Site
from streamskit.course.labs.parts import SaysEach, Typical
from streamskit.course.labs.recording import Costume, Recording
from streamskit.dsl.builder import StreamsBuilder
from streamskit.serdes import Serdes
from streamskit.topology import Topology
from streamskit.topology.nodes import Node, Sink, Source, of_kind

ORDER = Serdes.json("customer string, country string, amount long")

# ---- 1: where it is cut ----------------------------------------------------------------------------------------------


def filtered(builder: StreamsBuilder) -> None:
    """A."""
    builder.stream("orders", value=ORDER).filter(lambda v: v.amount > 0).map_values(lambda v: v.amount).to("amounts")


def by_key(builder: StreamsBuilder) -> None:
    """B."""
    builder.stream("orders", value=ORDER).group_by_key().count().to_stream().to("counts")


def by_customer(builder: StreamsBuilder) -> None:
    """C."""
    builder.stream("orders", value=ORDER).group_by(lambda v: v.customer).count().to_stream().to("counts")


def rekeyed_before(builder: StreamsBuilder) -> None:
    """D."""
    orders = builder.stream("orders", value=ORDER).select_key(lambda v: v.customer).filter(lambda v: v.amount > 0)
    orders.group_by_key().count().to_stream().to("counts")


def rekeyed_after(builder: StreamsBuilder) -> None:
    """E."""
    counts = builder.stream("orders", value=ORDER).group_by_key().count().to_stream()
    counts.select_key(lambda v: v).to("by-count")


def two_in_one(builder: StreamsBuilder) -> None:
    """F."""
    builder.stream("orders", value=ORDER).to("orders-copy")
    builder.stream("returns", value=ORDER).to("returns-copy")


PROGRAMS = {
    "A": filtered, "B": by_key, "C": by_customer, "D": rekeyed_before, "E": rekeyed_after, "F": two_in_one
}  # fmt: skip
TYPICAL_CUTS: dict[str, Typical] = {
    "steps are no cuts": {"A": 2},
    "grouping by the key it has": {"B": 2},
    "another key, another partition": {"C": 1},
    "a key that was changed on the way": {"D": 1},
    "a key that nobody works by": {"E": 2},
    "nothing joins the two": {"F": 1},
}


def sub_topologies() -> dict[str, int]:
    """Count the sub-topologies of each program."""
    return {name: len(topology_of(program).sub_topologies()) for name, program in PROGRAMS.items()}


# ---- 2, 3: tasks -----------------------------------------------------------------------------------------------------

Partitions = Mapping[str, int]


def tasks(topology: Topology, partitions: Partitions) -> int:
    """Count the tasks of a topology: in each sub-topology one for each partition of its largest source topic."""
    return sum(max(sizes) for sizes in _sizes(topology, partitions))


def all_partitions(topology: Topology, partitions: Partitions) -> int:
    """Add up the partitions of all source topics."""
    return sum(sum(sizes) for sizes in _sizes(topology, partitions))


def largest_topic(topology: Topology, partitions: Partitions) -> int:
    """Take the largest source topic of all for the whole."""
    return max(max(sizes) for sizes in _sizes(topology, partitions))


def without_repartition(topology: Topology, partitions: Partitions) -> int:
    """Leave repartition topics out."""
    return sum(max(sizes) for sizes in _sizes(topology, partitions, internal=False) if sizes)


def written_too(topology: Topology, partitions: Partitions) -> int:
    """Count the topics that are written as well."""
    return sum(
        max([*sizes, *(partitions[str(node.topic)] for node in nodes if isinstance(node, Sink))])
        for sizes, nodes in zip(_sizes(topology, partitions), with_tasks(topology), strict=True)
    )


def global_tables_too(topology: Topology, partitions: Partitions) -> int:
    """Count a task for each partition of a global table, too."""
    return sum(max(sizes) for sizes in _sizes(topology, partitions, of=topology.sub_topologies()))


def first_topics(topology: Topology, partitions: Partitions) -> int:
    """Take the first topic of each sub-topology for the largest."""
    return sum(sizes[0] for sizes in _sizes(topology, partitions))


def first_of_each_source(topology: Topology, partitions: Partitions) -> int:
    """Take the first topic of each source for all of its topics."""
    sources = [of_kind(Source, nodes) for nodes in with_tasks(topology)]
    return sum(max(partitions[source.topics[0]] for source in some) for some in sources)


def with_tasks(topology: Topology) -> list[list[Node]]:
    """Return the sub-topologies that tasks run: an instance reads a global table by itself."""
    return [nodes for nodes in topology.sub_topologies() if not any(node.is_global for node in nodes)]


def _sizes(
    topology: Topology, partitions: Partitions, internal: bool = True, of: list[list[Node]] | None = None
) -> list[list[int]]:
    """By sub-topology the partitions of each of its source topics."""
    return [
        [
            partitions[topic]
            for node in nodes
            if isinstance(node, Source) and (internal or not node.internal)
            for topic in node.topics
        ]
        for nodes in of or with_tasks(topology)
    ]


WRONG_COUNTS = {
    "partitions added up": all_partitions,
    "one largest topic for all": largest_topic,
    "repartition topic forgotten": without_repartition,
    "topics that are written counted": written_too,
}


def shop(builder: StreamsBuilder) -> None:
    """Orders with the discount of their customer, by country; and visits, which have nothing to do with them."""
    orders = builder.stream("orders", value=ORDER)
    customers = builder.table("customers", value=LONG)
    dear = orders.join(customers, lambda order, discount: order.withField("amount", order.amount - discount))
    dear.group_by(lambda v: v.country, name="by-country").count("by-country").to_stream().to("totals")
    builder.stream("visits").filter(lambda v: v != "").to("checked-visits")


SHOP = {
    "orders": 12, "customers": 12, "by-country-repartition": 12, "totals": 3, "visits": 5, "checked-visits": 20
}  # fmt: skip


def _in_the_shop(count: Callable[[Topology, Partitions], int]) -> int:
    return count(topology_of(shop), SHOP)


def others() -> list[tuple[Topology, Partitions]]:
    """Return topologies that the notebook does not show, with the partitions of their topics."""

    def merged(builder: StreamsBuilder) -> None:
        builder.stream("returns").merge(builder.stream("orders")).to("all-orders")

    def read_as_one(builder: StreamsBuilder) -> None:
        builder.stream(["returns", "orders"]).to("all-orders")

    def twice(builder: StreamsBuilder) -> None:
        orders = builder.stream("orders", value=ORDER)
        orders.group_by(lambda v: v.customer, name="by-customer").count().to_stream().to("counts")
        orders.group_by(lambda v: v.country, name="by-country").count().to_stream().to("counts")

    def narrowed(builder: StreamsBuilder) -> None:
        builder.stream("orders", value=ORDER).repartition(name="few", partitions=2).to("copies")

    def looked_up(builder: StreamsBuilder) -> None:
        countries = builder.global_table("countries")
        orders = builder.stream("orders", value=ORDER)
        orders.join(countries, lambda order, name: name, key_selector=lambda k, v: v.country).to("names")

    return [
        (topology_of(shop), SHOP),
        (topology_of(filtered), {"orders": 7, "amounts": 9}),
        (topology_of(merged), {"orders": 4, "returns": 3, "all-orders": 12}),
        (topology_of(read_as_one), {"orders": 5, "returns": 2, "all-orders": 9}),
        (
            topology_of(twice),
            {"orders": 6, "by-customer-repartition": 6, "by-country-repartition": 6, "counts": 1},
        ),
        (topology_of(narrowed), {"orders": 8, "few-repartition": 2, "copies": 8}),
        (topology_of(looked_up), {"orders": 4, "countries": 3, "names": 4}),
    ]


# ---- 4: a cut less ---------------------------------------------------------------------------------------------------


def in_cents() -> Recording:
    """Return amounts in euros, to be added up in cents."""
    cents: Callable[[str, Any], Any] = lambda topic, value: (  # noqa: E731
        value if topic == "in" or value is None else value * 100
    )
    dress = Costume({"in": "amounts", "out": "sums"}, {}, {"a": "ann", "b": "bob"}, 1000, cents)
    return Recording.of("basic-reduce", dress, ["sums"])


class Detour(Runs):
    """Examines sums in cents, by their records first and then by the number of sub-topologies."""

    def __call__(self, answer: Any) -> Verdict:
        verdict = super().__call__(answer)
        if not verdict.passed or verdict.outcome is None:
            return verdict
        parts = len(verdict.outcome.trial.topology.sub_topologies())
        if parts > 1:
            return mistaken("a step that may change the key", parts=parts)
        return right(f"{verdict.says} The topology has one sub-topology, and no repartition topic.")


def in_euros(outcome: Outcome) -> bool:
    """The sums are in euros."""
    return bool(outcome.actual) and outcome.actual[0].value == outcome.expected[0].value / 100


# ---- 5: topics of different size -------------------------------------------------------------------------------------

CUSTOMERS = [f"customer-{number:02}" for number in range(12)]


ORDERS = [(customer, 10 * number + 7) for number in range(5) for customer in CUSTOMERS[:-1]]
RETURNS = [(customer, number) for number, customer in enumerate(CUSTOMERS) if number % 4 != 2]
"""Some customers return nothing, and the last one has returned something without an order."""


def topics_of_different_size(site: Site) -> None:
    """Put orders into four partitions and returns into three."""
    site.create_topics(orders=4, returns=3)
    site.broker.produce(site.topic("orders"), ORDERS, value=LONG)
    site.broker.produce(site.topic("returns"), RETURNS, value=LONG)


def judge_balances(site: Site, topology: Topology) -> Verdict:
    """Judge balances of orders and returns, by those of an application that runs on topics of different size."""
    with site.application(topology) as streams:
        streams.await_processed("60 seconds")
        found = dict(streams.store("balances").all())
    ordered, returned = totals(ORDERS), totals(RETURNS)
    if found == ordered + returned:
        return mistaken("returns added")
    due = {customer: ordered[customer] - returned[customer] for customer in CUSTOMERS}
    if found == {customer: due[customer] for customer in ordered.keys() & returned.keys()}:
        return mistaken("no balance without both", customer=min(due.keys() - found.keys()))
    says = f"{len(ORDERS)} orders and {len(RETURNS)} returns went through a broker; every balance is right."
    return Says(due, says)(found)


def totals(records: list[tuple[str, int]]) -> Counter[str]:
    """Add up the amounts of each customer."""
    found = Counter[str]()
    for customer, amount in records:
        found[customer] += amount
    return found


# ---- 6: one shop too many --------------------------------------------------------------------------------------------


SALE = Serdes.json("article string, pieces long")
LONG = Serdes.long()
SHOPS = ("Bergen", "Espoo", "Lund", "Malmo", "Tampere", "Turku", "Vaasa")
LARGEST = "Oslo"
SHARE = 0.4
"""The largest share of the sales that one task may have."""


def sales(seed: int, count: int = 200) -> list[tuple[str, dict[str, Any]]]:
    """Return sales, four out of five in one shop."""
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


def judge_even_load(site: Site, topology: Topology) -> Verdict:
    """Judge a topology by what its tasks got, and by the totals at noon and in the evening."""
    with site.application(topology) as streams:
        streams.await_processed("60 seconds")
        site.broker.produce(site.topic("sales"), AFTERNOON, value=SALE)
        streams.await_processed("60 seconds")
    largest = largest_share(site, topology)
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
        f"{count} sales went through a broker. No task had more than {largest:.0%} of them (before, one task had "
        f"{_share_of_the_largest_key():.0%}), and all {len(due)} totals are right."
    )


def largest_share(site: Site, topology: Topology) -> float:
    """Return the largest part of the sales that one task had, of those that first keep state of them."""
    return max((_share(site, nodes) for nodes in first_with_state(topology)), default=1.0)


def first_with_state(topology: Topology) -> list[list[Node]]:
    """Return the sub-topologies that keep state, and to which none that does sends records: they get every sale.

    What comes later gets updates of rows. What is before only passes sales on, as they come from their topic.
    """
    groups = topology.sub_topologies()
    keepers = [nodes for nodes in groups if any(node.stores and not node.is_global for node in nodes)]
    reached, written = list[list[Node]](), {sink.topic for nodes in keepers for sink in of_kind(Sink, nodes)}
    while fed := [nodes for nodes in groups if nodes not in reached and _reads_any(nodes, written)]:
        reached += fed
        written = {sink.topic for nodes in fed for sink in of_kind(Sink, nodes)}
    return [nodes for nodes in keepers if nodes not in reached]


def _reads_any(nodes: Sequence[Node], topics: Collection[Any]) -> bool:
    return any(topic in topics for source in of_kind(Source, nodes) for topic in source.topics)


def _share(site: Site, nodes: Sequence[Node]) -> float:
    """Return the largest part of the sales in one partition of what a sub-topology reads; of a pattern, all of them."""
    read = Counter[int]()
    for source in of_kind(Source, nodes):
        for topic in source.topics:
            read.update(site.broker.end_offsets(f"{site.application_id}-{topic}" if source.internal else topic))
    count = len(MORNING) + len(AFTERNOON)
    return max(read.values(), default=count) / max(count, read.total())


def pieces(sold: list[tuple[str, dict[str, Any]]]) -> dict[str, int]:
    """Add up the pieces of each shop."""
    totals: dict[str, int] = {}
    for shop, sale in sold:
        totals[shop] = totals.get(shop, 0) + sale["pieces"]
    return totals


def _share_of_the_largest_key() -> float:
    sold = [*MORNING, *AFTERNOON]
    return sum(shop == LARGEST for shop, _ in sold) / len(sold)


# ---- the lab ---------------------------------------------------------------------------------------------------------

LAB = lab(
    "13-topology-and-tasks",
    cuts=SaysEach(
        sub_topologies, f"{len(PROGRAMS)} programs were built, and their sub-topologies counted.", TYPICAL_CUTS
    ),
    tasks_of_the_shop=Says(
        partial(_in_the_shop, tasks),
        "The shop's topology was built, and its tasks counted from the partitions of what it reads.",
        wrong={mistake: partial(_in_the_shop, counted) for mistake, counted in WRONG_COUNTS.items()},
    ),
    count_tasks=Asks(
        like(tasks, others),
        "the tasks of seven topologies were counted.",
        wrong={
            **WRONG_COUNTS,
            "global tables counted": global_tables_too,
            "a topic left out": [first_topics, first_of_each_source],
        },
    ),
    without_the_detour=Detour(
        in_cents,
        signs={"zero kept": extra_row(lambda row: row.value == 0), "euros for cents": in_euros},
    ),
    balance_of_both=Lives(
        "balance_of_both",
        topics_of_different_size,
        judge_balances,
        errors={"brings together": "topics of different size"},
        returns_topology=True,
    ),
    even_load=Lives("even_load", a_busy_shop, judge_even_load, returns_topology=True),
)
