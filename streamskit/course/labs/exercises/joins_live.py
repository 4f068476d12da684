"""Exercise 5 of lab 06: two topics of different size are joined on a broker."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit.course.labs.exercise import Verdict, mistaken, right, wrong
from streamskit.course.labs.missions import Site
from streamskit.dsl.builder import StreamsBuilder
from streamskit.topology import Topology
from streamskit.topology.nodes import GlobalTableSource

NAMES = {f"c{n}": name for n, name in enumerate(("Ann", "Ben", "Cleo", "Dora", "Emil", "Fay", "Gus", "Hal", "Ida"), 1)}
ORDERS = [(f"c{n % 9 + 1}", f"o{n}") for n in range(1, 25)]
UNKNOWN = ("c99", "o99")


def orders_and_customers(site: Site) -> None:
    """Make the topics: orders of four partitions, customers of three, which are there already."""
    site.create_topics(orders=4, customers=3, named_orders=1)
    site.broker.produce(site.topic("customers"), list(NAMES.items()))


def judge_names_of_customers(site: Site, topology: Any) -> Verdict:
    """Judge a topology by the orders that come out with a name."""
    if not isinstance(topology, Topology):
        return wrong(f"It has to return the topology that builder.build() gives; it returned {topology!r}.")
    if any(isinstance(node, GlobalTableSource) for nodes in topology.sub_topologies() for node in nodes):
        return mistaken("a copy in every instance")
    with site.application(topology) as streams:
        streams.await_processed("60 seconds")
        site.broker.produce(site.topic("orders"), [*ORDERS, UNKNOWN])
        streams.await_processed("60 seconds")
    found = site.broker.consume(site.topic("named-orders"))
    came = sorted(zip(found["key"], found["value"], strict=True))
    due = sorted((customer, f"{order}:{NAMES[customer]}") for customer, order in ORDERS)
    if any(key == UNKNOWN[0] for key, _ in came):
        return mistaken("left instead of inner")
    if came != due:
        missing = len([each for each in due if each not in came])
        return wrong(f"{missing} of {len(due)} orders did not come out with the name of their customer.")
    return right(
        f"{len(due)} orders on four partitions met {len(NAMES)} customers on three, by way of a repartition topic; "
        "every order of a known customer has its name."
    )


# ---- wrong answers ---------------------------------------------------------------------------------------------------


def pair(order: Column, name: Column) -> Column:
    """Write an order with its customer's name."""
    return F.concat(order, F.lit(":"), name)


def joined(
    moved: Callable[[Any], Any] = lambda orders: orders, customers: str = "table", kind: str = "join"
) -> Callable[[Site], Topology]:
    """Return an answer that does this with the orders before it joins them with the customers."""

    def answer(site: Site) -> Topology:
        builder = StreamsBuilder()
        orders = moved(builder.stream(site.topic("orders")))
        known = getattr(builder, customers)(site.topic("customers"))
        how = {"key_selector": lambda k, v: k} if customers == "global_table" else {}
        getattr(orders, kind)(known, pair, **how).to(site.topic("named-orders"))
        return builder.build()

    return answer


WRONG = {
    "topics of different size": [joined(), joined(lambda orders: orders.repartition(partitions=4))],
    "a copy in every instance": joined(customers="global_table"),
    "left instead of inner": joined(lambda orders: orders.repartition(partitions=3), kind="left_join"),
}
ERRORS = {"brings together": "topics of different size"}
"""What a start says that is refused."""
