"""Which processors run together in one operator, and how records come into it and go out."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from streamskit import operators
from streamskit.common.errors import TopologyError
from streamskit.planning.plan import Plan, ProcessorGroup
from streamskit.serdes import Serde
from streamskit.topology.nodes import Node, Process, of_kind


class ProcessorOutput(NamedTuple):
    """A way out of a group: the processor, the step that follows it, and the serdes of what goes there."""

    processor: Process
    child: Node
    key: Serde
    value: Serde


def processor_groups(nodes: Sequence[Node]) -> dict[str, ProcessorGroup]:
    """Return the group of each processor among the nodes, by its name."""
    processors = of_kind(Process, nodes)
    group = {node.name: node.name for node in processors}

    def root(name: str) -> str:
        while group[name] != name:
            name = group[name]
        return name

    for one, other in _bound_together(processors):
        group[root(other)] = root(one)
    members: dict[str, list[Process]] = {}
    for node in processors:
        members.setdefault(root(node.name), []).append(node)
    return {node.name: ProcessorGroup(tuple(together)) for together in members.values() for node in together}


def input_sides(group: ProcessorGroup, parent: Node, node: Node, plan: Plan) -> list[int]:
    """Return the operator's sides for what `parent` passes on: the table that the processors look into comes first."""
    sources = [(name, port.processor) for name, port in _input_ports(group, plan)]
    return [sources.index(key) for key in ((parent.name, ""), (parent.name, node.name)) if key in sources]


def outputs(group: ProcessorGroup, plan: Plan) -> list[ProcessorOutput]:
    """Return the ways out of a group, in the order of the operator's output ports."""
    return [
        ProcessorOutput(member, child, *((child.key, child.value) if _sink_name(child) else (member.key, member.value)))
        for member in group.members
        for child in plan.topology.children(member)
        if child not in group.members and child.name in plan.node_names
    ]


def processors_operator(group: ProcessorGroup, plan: Plan) -> operators.ProcessorsOperator:
    """Return the operator that runs a group."""
    ports = outputs(group, plan)
    numbers = {(output.processor.name, output.child.name): number for number, output in enumerate(ports)}
    specs = []
    for member in group.members:
        following = [child.name for child in plan.topology.children(member)]
        children = tuple((child, numbers.get((member.name, child))) for child in following)
        stores = (*(store.name for store in member.kept), *member.tables)
        specs.append(operators.ProcessorSpec(member.name, member.supplier, stores, children))
    return operators.ProcessorsOperator(
        group.name,
        plan.application_id,
        tuple(specs),
        tuple(port for _, port in _input_ports(group, plan)),
        tuple(operators.OutputPort(output.key, output.value, _sink_name(output.child)) for output in ports),
        group.stores,
        tuple(replace(plan.topology.store(store), timestamped=True) for store in _looked_up(group)),
    )


def comes_back(node: Node, plan: Plan) -> TopologyError:
    """Return the error for a processor that gets back what one it is bound to has passed on to other steps."""
    others = ", ".join(member.name for member in plan.groups[node.name].members if member is not node) or "itself"
    return TopologyError(
        f"{node.name} ({node.call_site}): it shares stores with {others}, whose records reach it through steps in "
        "between, so that the two cannot run in one place. Do in the processor what those steps do, or give each a "
        "store of its own."
    )


def _input_ports(group: ProcessorGroup, plan: Plan) -> list[tuple[str, operators.InputPort]]:
    """Return the sides of the operator, each with the name of the node that its records come from."""
    names = {member.name for member in group.members}
    ports = []
    for member in group.members:
        for parent in member.parents:
            if parent not in names:
                feeder = plan.topology[parent]
                ports.append((parent, operators.InputPort(feeder.key, feeder.value, processor=member.name)))
    for store in _looked_up(group):
        table = next(
            node
            for node in plan.topology.nodes.values()
            if not node.has_own_keys and any(kept.name == store for kept in node.stores)
        )
        ports.append((table.name, operators.InputPort(table.key, table.value, store=store)))
    return ports


def _looked_up(group: ProcessorGroup) -> list[str]:
    return list(dict.fromkeys(store for member in group.members for store in member.tables))


def _sink_name(child: Node) -> str:
    return child.name if child.kind == "Sink" else ""


def _bound_together(processors: Sequence[Process]) -> Iterator[tuple[str, str]]:
    """Yield the names of processors of which one feeds the other, or that keep the same store."""
    names = {node.name for node in processors}
    keeper: dict[str, str] = {}
    for node in processors:
        yield from ((parent, node.name) for parent in node.parents if parent in names)
        yield from ((keeper.setdefault(store.name, node.name), node.name) for store in node.kept)
