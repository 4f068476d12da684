"""`execution_diagram`: the picture of a topology with colours for what Spark runs and what Python runs, and why."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from streamskit.planning.options import QueryOptions
from streamskit.planning.plan import Plan
from streamskit.planning.planned_operators import nodes_of, operator_input
from streamskit.planning.planner import plan as planned
from streamskit.runtime import KafkaStreams
from streamskit.runtime.spark_reports import why
from streamskit.topology.drawing.diagram import as_html
from streamskit.topology.drawing.shapes import Engine
from streamskit.topology.nodes import Node
from streamskit.topology.topology import Topology

SHORT = {Engine.SPARK: "Spark", Engine.PYTHON: "Python"}


@dataclass(frozen=True)
class ExecutionDiagram:
    """A topology with what runs each of its steps.

    Args:
        topology: the topology.
        engines: what runs each operator, by the name of its node.
        notes: words to write at nodes.
        reasons: a sentence for each step that Python runs.
    """

    topology: Topology
    engines: dict[str, Engine]
    notes: dict[str, str]
    reasons: Sequence[str]

    @property
    def words(self) -> str:
        """What the colours say."""
        of_spark = [name for name, engine in self.engines.items() if engine is Engine.SPARK]
        said = [f"Spark runs {', '.join(of_spark)}."] if of_spark else []
        return " ".join([*said, *(self.reasons or ["Python runs none of the operators."])])

    def _repr_html_(self) -> str:
        picture = as_html(self.topology.sub_topologies(), self.notes, engines=self.engines, words=self.words)
        listed = "".join(f"<li>{escape(reason)}</li>" for reason in self.reasons)
        return picture + (f"<ul>{listed}</ul>" if listed else "")

    def __repr__(self) -> str:
        return self.words


def execution_diagram(program: Topology | KafkaStreams) -> ExecutionDiagram:
    """Draw a topology with colours that show which operators Spark runs and which Python runs, with the reasons.

    Python's boxes have a double edge, and every operator is labelled, so that nobody depends on the colours.

    Args:
        program: a topology, or an application, whose settings may differ from the defaults.

    Raises:
        TypeError: it is neither.
        TopologyError: a part of it cannot run on Spark.

    >>> execution_diagram(topology)  # doctest: +SKIP
    """
    if not isinstance(program, Topology | KafkaStreams):
        raise TypeError(
            f"execution_diagram draws a topology or an application, and this is a {type(program).__name__}: write "
            "execution_diagram(builder.build())."
        )
    topology = program if isinstance(program, Topology) else program.topology
    plans = program.plans if isinstance(program, KafkaStreams) else planned(topology, "", QueryOptions(cache=True))
    in_python = {name for plan in plans for name in _in_python(plan)}
    native = {plan.native.name for plan in plans if plan.native is not None}
    calls = {node.name for plan in plans for node in plan.side_effects}
    operators = {node.name for plan in plans for node in plan.nodes if not node.topic_names} | in_python
    engines = {
        name: Engine.PYTHON if name in in_python - native else Engine.SPARK
        for name in topology.nodes
        if name in operators - calls
    }
    notes = {name: SHORT[engine] for name, engine in engines.items()} | dict.fromkeys(calls, "your process")
    notes |= {node.name: words for node in topology.nodes.values() if (words := _at_topic(node))}
    return ExecutionDiagram(topology, engines, notes, list(dict.fromkeys(_reasons(plans, native))))


def _in_python(plan: Plan) -> Iterator[str]:
    """Yield the names of the operators that Python runs, both sides of a join among them."""
    yield from (node.name for node in plan.nodes if not node.topic_names and operator_input(node, plan) is not None)
    yield from (node.name for slot in plan.operators for node in slot.members)


def _at_topic(node: Node) -> str:
    """Return what Python does where a topic is read or written; nothing if Spark does it all."""
    if not node.topic_names:
        return ""
    said = ["serde in Python"] if node.key.runs_in_python or node.value.runs_in_python else []
    return " · ".join([*said, *(["partitioner in Python"] if node.partitioner else [])])


def _reasons(plans: Sequence[Plan], native: Collection[str]) -> Iterator[str]:
    for plan in plans:
        for slot in plan.operators:
            names = dict.fromkeys(node.name for node in (*nodes_of(slot.operator.name, plan), slot.node, *slot.members))
            what = "keeps the results of" if slot.node.name in native else "runs"
            yield f"Python {what} {' and '.join(names)}, because {why(slot.operator)}."
