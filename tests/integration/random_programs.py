"""Programs made up at random as a running application can show them, with what a test driver makes of their records."""

from contextlib import suppress

from hypothesis import strategies as st

from streamskit import StreamsError, TopologyError
from streamskit.planning.planner import plan as planned
from streamskit.topology.nodes import Source, of_kind
from tests.conformance.inventor import Inventor
from tests.conformance.random_programs import Program, outcome, store_kinds, topics_read, topology_of
from tests.conformance.test_vectors import Vector

CUTS = ("whole", "each", "random 1", "random 2")


def live(program: Program) -> Program:
    """Return a program without what only a test driver has: a clock that it moves, and a cache that ends with a record.

    A running application does not read a global table that nobody asks, and so counts no drops of it: all can be asked.
    Spark's own aggregations fold the updates of a record that becomes several: the sums are Python's.

    >>> live({"steps": [{"op": "process", "kind": "wall clock"}], "records": [{"advance": 5}], "cache": True})
    {'steps': [{'op': 'process', 'kind': 'each'}], 'records': [], 'cache': False, 'continue': False}
    """
    steps = [
        step
        | ({"kind": "each"} if step.get("kind") == "wall clock" else {})
        | ({"fold": "sum"} if step.get("fold") == "column sum" else {})
        | ({"store": f"s-{number}"} if step["op"] == "global" else {})
        for number, step in enumerate(program["steps"])
    ]
    records = [each for each in program["records"] if "topic" in each]
    return {"steps": steps, "records": records, "cache": False, "continue": program.get("continue", False)}


def cuts_of(program: Program) -> tuple[str, ...]:
    """Return how a program's records may be cut so that all it writes is what it writes record by record.

    Behind repartition topics a task finds the records of several topics at once: those of one step, and those of
    another that the same record has made. There is no cut then, as nothing says which of them comes first.

    Raises:
        TopologyError: it cannot be built, such as one with a source that nothing reads.
    """
    topology = topology_of(program)
    planned(topology, "oracle")
    found: tuple[str, ...] = CUTS
    for nodes in topology.sub_topologies():
        sources = of_kind(Source, nodes)
        internal = sum(source.internal for source in sources)
        if internal > 1:
            return ()
        if internal and len(sources) > 1:
            found = ("each",)
    # A row that changes while its subscription travels answers a foreign-key join for its latest value.
    return ("each",) if any(step["op"] == "foreign_key" for step in program["steps"]) else found


def replayed(program: Program) -> Vector:
    """Return what a test driver makes of a program, as a vector."""
    found = outcome(program, partitions=1)
    sources = [step for step in program["steps"] if "topic" in step and step["op"] != "to"]
    topics = [topic for step in sources for topic in topics_read(step)]
    read = {topic: {"role": "input", "value": "long"} for topic in topics}
    written = {topic: {"role": "output", "value": "long"} for topic in found["outputs"]}
    return {
        "steps": [{"pipe": record} for record in program["records"]],
        "topics": read | written,
        "outputs": found["outputs"],
        "stores": found["stores"],
        "store_kinds": store_kinds(program, topology_of(program)),
        "dropped": sum(count for _, count in found["dropped"]),
    }


@st.composite
def live_programs(draw: st.DrawFn) -> tuple[Program, str]:
    """Draw a program that a running application can show, with its records, and a way to cut these."""
    while True:
        program = live(Inventor(draw(st.integers(0, 10**9))).program())
        with suppress(StreamsError, TopologyError):
            if cuts := cuts_of(program):
                return program, draw(st.sampled_from(cuts))
