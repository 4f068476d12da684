"""Cuts a topology into Spark queries: one a sub-topology, and one more for each aggregation that Spark does itself."""

from dataclasses import replace

from streamskit.api.windows import TimeWindows
from streamskit.common.errors import TopologyError
from streamskit.planning.old_values import needs_old_values
from streamskit.planning.options import QueryOptions
from streamskit.planning.plan import Plan, PlanInput, has_changelog
from streamskit.planning.planned_operators import needs_partition_time
from streamskit.topology import (
    Aggregation,
    ColumnAggregate,
    Count,
    FlatMap,
    FlatMapValues,
    ForeignKeyStep,
    GlobalTableSource,
    Node,
    Process,
    SideEffect,
    Sink,
    Source,
    StreamJoinSide,
    StreamTableJoin,
    Suppress,
    TableAggregate,
    TableJoinSide,
    Topology,
)
from streamskit.topology.description import is_global


def plan(topology: Topology, application_id: str, options: QueryOptions | None = None) -> list[Plan]:
    """Return the plans of a topology: the queries that run it, each after those that feed it where that can be.

    Args:
        topology: what to run.
        application_id: the application's name, with which the internal topics begin.
        options: how its queries run.

    Raises:
        TopologyError: a part of it cannot run on Spark.
    """
    made: list[Plan] = []
    for number, nodes in enumerate(topology.sub_topologies()):
        if not is_global(nodes):  # the topic of a global table is its store
            made += SubtopologyPlanner(topology, application_id, options or QueryOptions(), number, nodes).plans()
    return made


class SubtopologyPlanner:
    """Cuts one sub-topology."""

    def __init__(self, topology: Topology, application_id: str, options: QueryOptions, number: int, nodes: list[Node]):
        self.topology, self.application_id, self.options = topology, application_id, options
        self.number, self.nodes = number, nodes
        self.names = frozenset(node.name for node in nodes)
        self.natives = [node for node in nodes if self._runs_natively(node)]

    def plans(self) -> list[Plan]:
        """Return the queries: the native aggregations, each with its own way from a source, and the rest as one."""
        made: list[Plan] = []
        handed_in: dict[str, str] = {}
        taken_up: list[PlanInput] = []
        for node in self.natives:
            way, entry = self._way_to(node), None
            # Records that come on several ways, or may leave dead letters behind, meet in a topic first.
            if isinstance(way[0], Source) and not self.options.handlers.make_rows:
                entry = self._entry(way[0])
            else:
                topic = handed_in[way[0].name] = self._handover(way[0])
                entry = PlanInput(way[0], (topic,), is_handover=True)
            handovers = {}
            if self._state_follows(node):
                handovers[node.name] = self._handover(node)
                taken_up.append(PlanInput(node, (self._handover(node),), is_handover=True))
            mine = {each.name for each in (*way, node)} | (self._after(node) if not handovers else set())
            made.append(self._plan((entry,), frozenset(mine), len(made) + 1, node, handovers))
        names = self.names - {node.name for node in self.natives}
        tables = self._global_tables()
        entries = [*map(self._entry, self._sources()), *taken_up]
        entries = [entry for entry in entries if self._leads_somewhere(entry.node, names, handed_in)]
        if entries:
            with_tables = names.union(*(more for _, more in tables))
            rest = (*entries, *(entry for entry, _ in tables))
            made.append(self._plan(rest, with_tables, len(made) + 1, None, handed_in))
        if not made:
            source = self._sources()[0]
            raise TopologyError(
                f"{source.name} ({source.call_site}): nothing is made of its records. End it in .to('a-topic')."
            )
        return made if len(made) > 1 else [replace(made[0], part=0)]

    def _plan(
        self,
        entries: tuple[PlanInput, ...],
        within: frozenset[str],
        part: int,
        native: Node | None,
        handovers: dict[str, str],
    ) -> Plan:
        return Plan(
            self.topology, self.application_id, self.options, self.number, part, entries, within, native, handovers
        )

    def _entry(self, source: Source) -> PlanInput:
        topics = tuple(f"{self.application_id}-{topic}" if source.internal else topic for topic in source.topics)
        changes = any(sink.changes and sink.topic in source.topics for sink in self.topology.sinks if source.internal)
        return PlanInput(source, topics, changes)

    def _handover(self, node: Node) -> str:
        return f"{self.application_id}-{node.name}-handover"

    def _sources(self) -> list[Source]:
        return [node for node in self.nodes if isinstance(node, Source)]

    def _global_tables(self) -> list[tuple[PlanInput, set[str]]]:
        """Return the global tables that joins of this sub-topology look into, and the names of their nodes."""
        tables = {node.table: self.topology[node.table] for node in self.nodes if isinstance(node, StreamTableJoin)}
        read = {store for node in self.nodes if isinstance(node, Process) for store in node.global_stores}
        for node in self.topology.nodes.values():
            if isinstance(node, GlobalTableSource) and not read.isdisjoint(store.name for store in node.stores):
                tables[node.name] = node
        found = []
        for table in tables.values():
            if isinstance(table, GlobalTableSource):
                source = self.topology[table.parents[0]]
                if isinstance(source, Source):
                    entry = PlanInput(source, source.topics, everywhere=True)
                    found.append((entry, {source.name, table.name}))
        return found

    # ---- what Spark's own operators can do ---------------------------------------------------------------------------

    def _runs_natively(self, node: Node) -> bool:
        if isinstance(node, ColumnAggregate):
            return True
        if not isinstance(node, Count) or node.on_close or not isinstance(node.windows, TimeWindows | None):
            return False
        way = self._way_to(node)
        if self._state_follows(node) or not isinstance(way[0], Source):
            return False
        # Spark folds the updates of a batch. A test driver's batch is one record, as long as nothing multiplies it.
        one_by_one = self.options.test and not any(isinstance(step, FlatMap | FlatMapValues) for step in way)
        return self.options.cache or one_by_one

    def _way_to(self, node: Node) -> list[Node]:
        """Return the nodes before an aggregation, from a source on; only the last, if there is no single such way."""
        way: list[Node] = []
        if self.options.handlers.make_rows:
            return [self.topology[node.parents[0]]]
        while len(node.parents) == 1:
            node = self.topology[node.parents[0]]
            way.insert(0, node)
            if isinstance(node, STATEFUL) or (isinstance(node, Source) and needs_partition_time(node)):
                return way[-1:]
        return way if isinstance(way[0], Source) else way[-1:]

    def _after(self, node: Node) -> set[str]:
        """Return the names of all nodes that `node` leads to within the sub-topology."""
        found: set[str] = set()
        for child in self._following(node):
            found |= {child.name} | self._after(child)
        return found

    def _state_follows(self, node: Node) -> bool:
        after = [self.topology[name] for name in self._after(node)]
        return any(isinstance(each, STATEFUL) for each in after) or needs_old_values(node, self.topology)

    def _following(self, node: Node) -> list[Node]:
        def looks_into(other: Node) -> bool:
            if isinstance(other, Process):
                return node.is_table and any(store.name in other.tables for store in node.stores)
            return isinstance(other, StreamTableJoin) and other.table == node.name

        return [each for each in self.nodes if node.name in each.parents or looks_into(each)]

    def _leads_somewhere(self, node: Node, names: frozenset[str], handed_in: dict[str, str]) -> bool:
        """Return whether a query without the native aggregations has anything to do with a node's records."""
        if node.name in handed_in or (isinstance(node, (Sink, SideEffect, *STATEFUL)) and node.name in names):
            return True
        if any(has_changelog(node, store) for store in node.stores) and node.name in names:
            return True
        return any(self._leads_somewhere(child, names, handed_in)
                   for child in self._following(node) if child.name in names)  # fmt: skip


STATEFUL = (
    Aggregation,
    TableAggregate,
    StreamJoinSide,
    TableJoinSide,
    StreamTableJoin,
    Suppress,
    ForeignKeyStep,
    Process,
)
"""The kinds of nodes that keep state."""
