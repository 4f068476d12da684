"""The exercises of lab 13: where a topology is cut, how many tasks it has, and what many slots can do for them."""

from collections.abc import Callable, Mapping
from typing import Any

from streamskit.common.errors import StreamsKitError
from streamskit.course.labs.asking import Asks, gives, like
from streamskit.course.labs.exercise import Exercise, Lab, Runs, Says, Verdict, right, topology_of, unwritten, wrong
from streamskit.course.labs.exercises import live
from streamskit.course.labs.misconceptions import Misconception
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
WHY_CUT = {
    ("A", 2): ("steps are no cuts", "A: from its source to its sink nothing leaves the task. Steps do not cut."),
    ("B", 2): (
        "grouping by the key it has",
        "B: grouping by the key that is there leaves all records where they are: no repartition topic, no cut.",
    ),
    ("C", 1): (
        "another key, another partition",
        "C: group_by gives another key, whose records may lie in other partitions. They travel through a topic.",
    ),
    ("D", 1): (
        "a key that was changed on the way",
        "D: select_key alone cuts nothing. What works by key after it does: the records have to move before they are "
        "counted, also with a filter in between.",
    ),
    ("E", 2): (
        "a key that nobody works by",
        "E: the key changes at the end, and no step after it works by key. Records are not moved for nothing.",
    ),
    ("F", 1): (
        "nothing joins the two",
        "F: two pipelines of one program, without an arrow or a store between them, are two sub-topologies.",
    ),
}


def examine_cuts(answer: Any) -> Verdict:
    """Judge the numbers of sub-topologies, by those that the programs have."""
    if not isinstance(answer, dict) or ... in answer.values():
        return unwritten("Put a number in place of each `...`.")
    expected = {name: len(topology_of(program).sub_topologies()) for name, program in PROGRAMS.items()}
    for (name, number), (mistake, says) in WHY_CUT.items():
        if answer.get(name) == number:
            return wrong(says, mistake)
    return Says(expected, f"{len(expected)} programs were built, and their sub-topologies counted.")(answer)


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
    all_partitions: (
        "partitions added up",
        "All partitions of all source topics are added up. Within a sub-topology a task reads the same partition of "
        "each topic, so that only the largest one counts.",
    ),
    largest_topic: (
        "one largest topic for all",
        "Only the largest topic of the whole program counts in your answer. Each sub-topology has tasks of its own, "
        "and those add up.",
    ),
    without_repartition: (
        "repartition topic forgotten",
        "A sub-topology is missing: the one that reads the repartition topic. It has tasks like any other.",
    ),
    written_too: (
        "topics that are written counted",
        "A topic that is only written was counted. Tasks come from what is read.",
    ),
}
"""Functions that count tasks wrongly, each with the mistake's name and what to think of."""


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


def examine_shop(answer: Any) -> Verdict:
    """Judge the number of tasks of the shop."""
    topology = topology_of(shop)
    mistakes = {counted(topology, SHOP): mistake for counted, mistake in WRONG_COUNTS.items()}
    says = "The shop's topology was built, and its tasks counted from the partitions of what it reads."
    return Says(tasks(topology, SHOP), says, mistakes)(answer)


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


def examine_detour(answer: Any) -> Verdict:
    """Judge sums in cents, by their records first and then by the number of sub-topologies."""
    verdict = Runs(
        in_cents,
        (
            Misconception(
                "zero kept",
                "A sum of zero stayed. A reducer that returns None deletes the row, as the program above does.",
                lambda outcome: any(row.value == 0 for moment in outcome.moments for row in moment.extra),
            ),
            Misconception(
                "euros for cents",
                "The sums are in euros. The topic and the store are to have cents.",
                lambda outcome: bool(outcome.actual) and outcome.actual[0].value == outcome.expected[0].value / 100,
            ),
        ),
    )(answer)
    if not verdict.passed or verdict.outcome is None:
        return verdict
    parts = len(verdict.outcome.trial.topology.sub_topologies())
    if parts > 1:
        return wrong(
            f"The sums are right, and the topology still has {parts} sub-topologies. map, select_key and group_by may "
            "change the key, whatever they do with it; map_values and group_by_key cannot.",
            "a step that may change the key",
        )
    return right(f"{verdict.says} The topology has one sub-topology, and no repartition topic.")


# ---- 5: turns --------------------------------------------------------------------------------------------------------


def dealt_out(tasks: int, slots: int) -> tuple[int, int]:
    """Deal tasks out to slots turn by turn; return how many turns it takes, and how many slots idle in the last one."""
    turns, idle, left = 0, 0, tasks
    while left > 0:
        turns, idle, left = turns + 1, max(0, slots - left), left - slots
    return turns, idle


TURN_MISTAKES = (
    Misconception(
        "a turn that is not full forgotten",
        "The last turn is missing where it is not full: what is left over needs a turn, too.",
        gives(lambda tasks, slots: (tasks // slots, max(0, slots - tasks))),
    ),
    Misconception(
        "idle in the first turn only",
        "The turns are right. Idle slots are those of the last turn, which there may be with fewer slots than tasks, "
        "too.",
        gives(lambda tasks, slots: (-(-tasks // slots), max(0, slots - tasks))),
    ),
    Misconception(
        "none idle is not all idle",
        "The turns are right. Where the last turn is full, no slot idles in it.",
        gives(lambda tasks, slots: (-(-tasks // slots), slots - tasks % slots)),
    ),
    Misconception(
        "what is left over for who is idle",
        "The turns are right. The second number is that of the tasks in the last turn; asked is how many slots have "
        "none.",
        gives(lambda tasks, slots: (-(-tasks // slots), tasks % slots)),
    ),
)

# ---- 6: topics of different size -------------------------------------------------------------------------------------

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
        return wrong("What came back was added. A return takes its amount off the balance.", "returns added")
    says = f"{len(orders)} orders and {len(returns)} returns went through a broker; every balance is right."
    return Says(expected, says)(found)


def _refused(error: StreamsKitError) -> Verdict:
    if "brings together" in str(error):
        says = (
            "It is refused: four partitions meet three, so that the same customer would be in two tasks, each with "
            "half of the balance. Send one of the two, or both, through a topic with as many partitions as the other."
        )
        return Verdict(False, says, wrong(says, "topics of different size").misconception, cause=error)
    return Verdict(False, f"It does not run: {error}", cause=error)


# ---- the lab ---------------------------------------------------------------------------------------------------------

LAB = Lab(
    "13-topology-and-tasks",
    "Topology and tasks",
    (
        Exercise(
            "cuts",
            "Say how many sub-topologies six programs have.",
            examine_cuts,
            (
                "Ask two questions of each program: does a step work by key, and may the key have changed before it?",
                "Steps that work by key are aggregations and joins. The key may change in group_by, select_key, map "
                "and flat_map.",
                "Two of C, D and F are cut by a repartition topic; the third has two pipelines. The other programs "
                "are whole.",
            ),
        ),
        Exercise(
            "tasks_of_the_shop",
            "Compute the tasks of a program with three sub-topologies.",
            examine_shop,
            (
                "Cut the program first. How many sub-topologies are there, and which topics does each of them read?",
                "Orders and customers are read in one sub-topology, the repartition topic in another, visits in the "
                "third.",
                "12 and 12 in the first make 12; then 12, and 5.",
            ),
        ),
        Exercise(
            "count_tasks",
            "Count the tasks of any topology, given the partitions of its topics.",
            Asks(
                like(tasks, others),
                "the tasks of five topologies were counted.",
                tuple(Misconception(*mistake, gives(counted)) for counted, mistake in WRONG_COUNTS.items()),
            ),
            (
                "A loop over topology.sub_topologies(), each a list of nodes. Which of the nodes matter?",
                "isinstance(node, Source): such a node has topics, a tuple of names. Take the largest number, and add "
                "up.",
                "sum(max(partitions[topic] for node in nodes if isinstance(node, Source) for topic in node.topics) "
                "for nodes in topology.sub_topologies())",
            ),
        ),
        Exercise(
            "without_the_detour",
            "Write a program again so that it needs no repartition topic.",
            examine_detour,
            (
                "Which steps of the program may change the key, as far as Kafka Streams can see? Does any of them "
                "really?",
                "map returns a key, even if it is the same one; group_by chooses one. Each has a relative that leaves "
                "the key alone.",
                'builder.stream("amounts", value=Serdes.long()).map_values(lambda v: v * '
                '100).group_by_key().reduce(add, "sums")',
            ),
        ),
        Exercise(
            "turns",
            "Compute how many turns some tasks take on some slots, and how many slots idle in the last.",
            Asks(
                like(dealt_out, lambda: [(tasks, slots) for tasks in range(1, 14) for slots in range(1, 9)]),
                "13 numbers of tasks were dealt out, each to 1 to 8 slots.",
                TURN_MISTAKES,
            ),
            (
                "math.ceil(tasks / slots) turns. How many places do so many turns have, in all?",
                "turns * slots places, for so many tasks: the rest is empty, and it is all in the last turn.",
                "turns = math.ceil(tasks / slots); return turns, turns * slots - tasks",
            ),
        ),
        Exercise(
            "balance_of_both",
            "Add up topics of different size by key, so that it runs on a broker.",
            examine_balances,
            (
                "What has four partitions can meet what has four. How do records get into a topic with another number?",
                "repartition(partitions=4) sends a stream through a topic of the application's own.",
                'returns = builder.stream("lab-returns", value=LONG).map_values(lambda v: '
                "-v).repartition(partitions=4), then merge, group_by_key and reduce.",
            ),
        ),
    ),
)
