"""The exercises of lab 13: where a topology is cut, how many tasks it has, and what many slots can do for them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import Column

from streamskit.common.errors import StreamsKitError
from streamskit.course.labs.asking import Asks, like
from streamskit.course.labs.difference import Outcome
from streamskit.course.labs.exercise import Judges, Runs, Says, Verdict, mistaken, right, topology_of
from streamskit.course.labs.exercises import live
from streamskit.course.labs.exercises.topology_and_tasks_mission import WRONG, a_busy_shop, judge_even_load
from streamskit.course.labs.lab_files import lab
from streamskit.course.labs.missions import Lives
from streamskit.course.labs.parts import SaysEach, Typical
from streamskit.course.labs.recording import Costume, Recording
from streamskit.dsl.builder import StreamsBuilder
from streamskit.serdes import Serdes
from streamskit.topology import Topology
from streamskit.topology.nodes import Sink, Source

ORDER = Serdes.json("customer string, country string, amount long")
LONG = Serdes.long()

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
    """Count the topics that are written, too."""
    return sum(
        max([*sizes, *(partitions[str(node.topic)] for node in nodes if isinstance(node, Sink))])
        for sizes, nodes in zip(_sizes(topology, partitions), topology.sub_topologies(), strict=True)
    )


def _sizes(topology: Topology, partitions: Partitions, internal: bool = True) -> list[list[int]]:
    """By sub-topology the partitions of each of its source topics."""
    return [
        [
            partitions[topic]
            for node in nodes
            if isinstance(node, Source) and (internal or not node.internal)
            for topic in node.topics
        ]
        for nodes in topology.sub_topologies()
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
        builder.stream("orders").merge(builder.stream("returns")).to("all-orders")

    def twice(builder: StreamsBuilder) -> None:
        orders = builder.stream("orders", value=ORDER)
        orders.group_by(lambda v: v.customer, name="by-customer").count().to_stream().to("counts")
        orders.group_by(lambda v: v.country, name="by-country").count().to_stream().to("counts")

    def narrowed(builder: StreamsBuilder) -> None:
        builder.stream("orders", value=ORDER).repartition(name="few", partitions=2).to("copies")

    return [
        (topology_of(shop), SHOP),
        (topology_of(filtered), {"orders": 7, "amounts": 9}),
        (topology_of(merged), {"orders": 4, "returns": 3, "all-orders": 12}),
        (
            topology_of(twice),
            {"orders": 6, "by-customer-repartition": 6, "by-country-repartition": 6, "counts": 1},
        ),
        (topology_of(narrowed), {"orders": 8, "few-repartition": 2, "copies": 8}),
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


def summed(
    reducer: Callable[[int, int], int | None], factor: int = 100, rekeyed: bool = False
) -> Callable[[StreamsBuilder], None]:
    """Return the answer that adds up amounts times a factor, with a step that may change the key if it is to."""

    def answer(builder: StreamsBuilder) -> None:
        amounts = builder.stream("amounts", value=LONG).map_values(lambda v: v * factor)
        grouped = amounts.group_by(lambda k, v: k) if rekeyed else amounts.group_by_key()
        grouped.reduce(reducer, "sums").to_stream().to("sums")

    return answer


def add(total: int, amount: int) -> int | None:
    """Add up, and delete a sum of zero."""
    return total + amount or None


def zero_kept(outcome: Outcome) -> bool:
    """A sum of zero stayed."""
    return any(row.value == 0 for moment in outcome.moments for row in moment.extra)


def in_euros(outcome: Outcome) -> bool:
    """The sums are in euros."""
    return bool(outcome.actual) and outcome.actual[0].value == outcome.expected[0].value / 100


# ---- 5: topics of different size -------------------------------------------------------------------------------------

CUSTOMERS = [f"customer-{number:02}" for number in range(12)]


def examine_balances(answer: Any) -> Verdict:
    """Judge balances of orders and returns, by those of an application that runs on topics of different size."""
    topology = topology_of(answer)
    orders = [(customer, 10 * number + 7) for number in range(5) for customer in CUSTOMERS]
    returns = [(customer, number) for number, customer in enumerate(CUSTOMERS)]
    with (
        live.topics(lab_orders=4, lab_returns=3) as broker,
        live.application(topology, "lab-balances-app", broker) as streams,
    ):
        broker.produce("lab-orders", orders, value=LONG)
        broker.produce("lab-returns", returns, value=LONG)
        try:
            streams.start()
            streams.await_processed("60 seconds")
            found = dict(streams.store("balances").all())
        except StreamsKitError as error:
            return _refused(error)
    ordered = {customer: sum(amount for key, amount in orders if key == customer) for customer in CUSTOMERS}
    expected = {customer: ordered[customer] - amount for customer, amount in returns}
    if found == {customer: ordered[customer] + amount for customer, amount in returns}:
        return mistaken("returns added")
    says = f"{len(orders)} orders and {len(returns)} returns went through a broker; every balance is right."
    return Says(expected, says)(found)


def balances(signed: Callable[[Column], Column], partitions: int | None = None) -> Callable[[StreamsBuilder], None]:
    """Return the answer that adds returns with this sign, sent through a topic with so many partitions if it is to."""

    def answer(builder: StreamsBuilder) -> None:
        returns = builder.stream("lab-returns", value=LONG).map_values(signed)
        returns = returns.repartition(partitions=partitions) if partitions else returns
        both = builder.stream("lab-orders", value=LONG).merge(returns)
        both.group_by_key().reduce(lambda total, amount: total + amount, "balances")

    return answer


def _refused(error: StreamsKitError) -> Verdict:
    if "brings together" in str(error):
        return replace(mistaken("topics of different size"), cause=error)
    return Verdict(False, f"It does not run: {error}", cause=error)


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
    count_tasks=Asks(like(tasks, others), "the tasks of five topologies were counted.", wrong=WRONG_COUNTS),
    without_the_detour=Detour(
        in_cents,
        wrong={
            "zero kept": summed(lambda total, amount: total + amount),
            "euros for cents": summed(add, 1),
            "a step that may change the key": summed(add, rekeyed=True),
        },
        signs={"zero kept": zero_kept, "euros for cents": in_euros},
    ),
    balance_of_both=Judges(
        examine_balances,
        {
            "returns added": balances(lambda v: v, partitions=4),
            "topics of different size": balances(lambda v: -v),
        },
    ),
    even_load=Lives("even_load", a_busy_shop, judge_even_load, wrong=WRONG),
)
