"""Which processors run together in one operator, and how records enter and leave it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from streamskit import operators
from streamskit.common.errors import TopologyError
from streamskit.planning.plan import Handover, Plan, ProcessorGroup
from streamskit.planning.shared_stores import table_of, why_read_only
from streamskit.serdes import Serde
from streamskit.topology.nodes import GlobalProcess, Node, Process, Sink, of_kind


class ProcessorOutput(NamedTuple):
    """A way out of a group: the processor, and the step that follows it.

    If another query has that step, the records are handed over to it on a topic.
    """

    processor: Process
    child: Node
    handover: str = ""

    @property
    def sink(self) -> Sink | None:
        """The sink that the records go to directly, if there is one."""
        return self.child if isinstance(self.child, Sink) else None

    @property
    def key(self) -> Serde:
        """The serde of the keys that go there."""
        return (self.sink or self.processor).key

    @property
    def value(self) -> Serde:
        """The serde of the values that go there."""
        return (self.sink or self.processor).value


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
    """Return the operator's sides for what `parent` passes on: rows that are looked up come first."""
    sources = [(name, port.processor) for name, port in _input_ports(group, plan)]
    sides = (parent.name, ""), (parent.name, parent.name), (parent.name, node.name)
    return [sources.index(side) for side in sides if side in sources]


def outputs(group: ProcessorGroup, plan: Plan) -> list[ProcessorOutput]:
    """Return the ways out of a group, in the order of the operator's output ports."""
    found: list[ProcessorOutput] = []
    for member in group.members:
        for child in plan.topology.children(member):
            handover = plan.handovers.get(Handover(member.name, child.name), "")
            if handover or (child not in group.members and child.name in plan.node_names):
                found.append(ProcessorOutput(member, child, handover))
    return found


def processors_operator(group: ProcessorGroup, plan: Plan) -> operators.ProcessorsOperator:
    """Return the operator that runs a group."""
    ports, given = outputs(group, plan), global_stores(plan)
    specs = []
    for member in group.members:
        children = _children(member, ports, plan)
        stores = (*(store.name for store in member.own_stores), *member.reads, *(name for name, _ in given))
        specs.append(operators.ProcessorSpec(member.name, member.supplier, stores, children))
    fillers = [(node, node.stores[0]) for node in of_kind(GlobalProcess, (node for _, node in given))]
    specs += [operators.ProcessorSpec(node.name, node.supplier, (), (), fills=store.name) for node, store in fillers]
    return operators.ProcessorsOperator(
        group.name,
        plan.application_id,
        tuple(specs),
        tuple(port for _, port in _input_ports(group, plan)),
        tuple(_output_port(output, plan) for output in ports),
        group.stores,
        tuple(_table_store(store, group, plan) for store in _tables(group, plan)),
        tuple(store for _, store in fillers),
    )


def _children(member: Process, ports: Sequence[ProcessorOutput], plan: Plan) -> tuple[tuple[str, int | None], ...]:
    """Return the names of the steps after a processor, each with its output port; None is for one of the same group."""
    numbers = {output.child.name: number for number, output in enumerate(ports) if output.processor is member}
    names = [child.name for child in plan.topology.children(member)]
    return tuple((name, numbers.get(name)) for name in names if name in numbers or name in plan.node_names)


def changed_tables(group: ProcessorGroup, plan: Plan) -> list[Node]:
    """Return the tables into whose stores processors of a group may put rows, in the order of the operator's ports."""
    return [
        table_of(store, plan.topology.nodes.values())
        for store in _tables(group, plan)
        if not why_read_only(plan, group, store)
    ]


def global_stores(plan: Plan) -> list[tuple[str, Node]]:
    """Return the names of the global stores, which every processor may read, each with the node that keeps it."""
    return [
        (store.name, node)
        for node in plan.topology.nodes.values()
        for store in node.stores
        if node.is_global and store.queryable
    ]


def _tables(group: ProcessorGroup, plan: Plan) -> list[str]:
    """Return the names of the tables' stores that a group uses, including those of global tables."""
    looked_up = [store for member in group.members for store in member.reads]
    of_tables = [name for name, node in global_stores(plan) if node.is_table]
    return list(dict.fromkeys([*looked_up, *of_tables]))


def _table_store(name: str, group: ProcessorGroup, plan: Plan) -> operators.TableStore:
    """Return the store of a table as the processors of a group use it."""
    table, refusal = table_of(name, plan.topology.nodes.values()), why_read_only(plan, group, name)
    store = next(store for store in table.stores if store.name == name)
    store = replace(store, timestamped=store.kind in ("key-value", "window"))
    if (group.name, name) not in plan.shared:
        return operators.TableStore(store, f"store {name}", refusal)
    where = table.operator_input.operator if table.keeps_rows and table.operator_input else table.name
    if store.by_time:
        store = replace(store, retention=store.shown_for)
    return operators.TableStore(store, where, refusal)


def comes_back(node: Node, plan: Plan) -> TopologyError:
    """Return the error for a processor that gets back what its own group has passed on to other steps."""
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
    for store in _tables(group, plan):
        table = table_of(store, plan.topology.nodes.values())
        if (group.name, store) not in plan.shared:
            ports.append((table.name, operators.InputPort(table.key, table.value, store=store)))
    for filler in of_kind(GlobalProcess, (node for _, node in global_stores(plan))):
        ports.append((filler.name, operators.InputPort(filler.key, filler.value, processor=filler.name)))
    return ports


def _output_port(output: ProcessorOutput, plan: Plan) -> operators.OutputPort:
    """Return how the operator writes what leaves this way; a sink whose topic each record chooses names none."""
    sink = output.sink
    topic = plan.topic(sink) if sink is not None and isinstance(sink.topic, str) else None
    return operators.OutputPort(output.key, output.value, sink.name if sink is not None else "", topic)


def _bound_together(processors: Sequence[Process]) -> Iterator[tuple[str, str]]:
    """Yield the names of processors of which one feeds the other, or that keep the same store."""
    names = {node.name for node in processors}
    keeper: dict[str, str] = {}
    for node in processors:
        yield from ((parent, node.name) for parent in node.parents if parent in names)
        yield from ((keeper.setdefault(store.name, node.name), node.name) for store in node.own_stores)
