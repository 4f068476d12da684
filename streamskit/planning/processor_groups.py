"""Which processors run together in one task operator, and how records come in and go out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from streamskit import operators
from streamskit.common.errors import TopologyError
from streamskit.serdes import Serde
from streamskit.state.stores import Store
from streamskit.topology import Node, Process, Sink

if TYPE_CHECKING:
    from streamskit.planning.plan import Plan


@dataclass(frozen=True)
class ProcessorGroup:
    """Processors that pass records to each other or share stores, and so have to be in one place."""

    members: tuple[Process, ...]

    @property
    def name(self) -> str:
        """The name of the operator that runs them."""
        return self.members[0].name

    def entrances(self, plan: "Plan") -> list[tuple[str, operators.InputPort]]:
        """Return the sides of the operator, each with the name of the node that its records come from."""
        names = {member.name for member in self.members}
        found = []
        for member in self.members:
            for parent in member.parents:
                if parent not in names:
                    giver = plan.topology[parent]
                    found.append((parent, operators.InputPort(giver.key, giver.value, member=member.name)))
        for store in self._looked_up():
            table = self._table(store, plan)
            found.append((table.name, operators.InputPort(table.key, table.value, store=store)))
        return found

    def sides(self, giver: Node, node: Process, plan: "Plan") -> list[int]:
        """Return the sides for what `giver` passes on: the table that the processors look into comes first."""
        names = [(name, entrance.member) for name, entrance in self.entrances(plan)]
        return [names.index(key) for key in ((giver.name, ""), (giver.name, node.name)) if key in names]

    def ways(self, plan: "Plan") -> list[tuple[Process, Node, Serde, Serde]]:
        """Return the ways out: the member, the step that follows it, and the serdes of what goes there."""
        return [
            (member, child, *((child.key, child.value) if isinstance(child, Sink) else (member.key, member.value)))
            for member in self.members
            for child in plan.topology.children(member)
            if child not in self.members and child.name in plan.within
        ]

    def operator(self, plan: "Plan") -> operators.ProcessorsOperator:
        """Return the operator that runs them."""
        ways = self.ways(plan)
        numbers = {(member.name, child.name): number for number, (member, child, *_) in enumerate(ways)}
        members = []
        for member in self.members:
            following = [child.name for child in plan.topology.children(member)]
            children = tuple((child, numbers.get((member.name, child))) for child in following)
            stores = (*(store.name for store in member.kept), *member.tables)
            members.append(operators.ProcessorSpec(member.name, member.supplier, stores, children))
        return operators.ProcessorsOperator(
            self.name,
            plan.application_id,
            tuple(members),
            tuple(entrance for _, entrance in self.entrances(plan)),
            tuple(operators.OutputPort(key, value, _sink(child)) for _, child, key, value in ways),
            self.stores,
            tuple(replace(plan.topology.store(store), timestamped=True) for store in self._looked_up()),
        )

    @property
    def stores(self) -> tuple[Store, ...]:
        """The stores that they keep, each once."""
        return tuple(dict.fromkeys(store for member in self.members for store in member.kept))

    def _looked_up(self) -> Sequence[str]:
        return list(dict.fromkeys(store for member in self.members for store in member.tables))

    def _table(self, store: str, plan: "Plan") -> Node:
        keepers = (node for node in plan.topology.nodes.values() if not isinstance(node, Process))
        return next(node for node in keepers if any(kept.name == store for kept in node.stores))


def _sink(child: Node) -> str:
    return child.name if isinstance(child, Sink) else ""


def processor_groups(nodes: Sequence[Node]) -> dict[str, ProcessorGroup]:
    """Return the group of each processor among the nodes, by its name."""
    processors = [node for node in nodes if isinstance(node, Process)]
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


def comes_back(node: Process, plan: "Plan") -> TopologyError:
    """Return the error for a processor that gets back what one it is bound to has passed on to other steps."""
    others = ", ".join(member.name for member in plan.groups[node.name].members if member is not node) or "itself"
    return TopologyError(
        f"{node.name} ({node.call_site}): it shares stores with {others}, whose records reach it through steps in "
        "between, so that the two cannot run in one place. Do in the processor what those steps do, or give each a "
        "store of its own."
    )


def _bound_together(processors: Sequence[Process]) -> Iterator[tuple[str, str]]:
    """Yield the names of processors of which one feeds the other, or that keep the same store."""
    names = {node.name for node in processors}
    keeper: dict[str, str] = {}
    for node in processors:
        yield from ((parent, node.name) for parent in node.parents if parent in names)
        yield from ((keeper.setdefault(store.name, node.name), node.name) for store in node.kept)
