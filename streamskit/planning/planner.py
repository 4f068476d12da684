"""The query planner: cuts a topology into Spark queries, and plans each of them.

There is one query for each sub-topology, and one more for each aggregation that Spark's own operators do.
"""

import logging
from dataclasses import replace
from typing import Any

from streamskit import operators
from streamskit.api.error_handlers import fails
from streamskit.api.processor import PunctuationType
from streamskit.api.windows import TimeWindows
from streamskit.common.errors import StreamsError, TopologyError
from streamskit.operators.error_handling import read_attribution
from streamskit.operators.processors import RunningProcessors
from streamskit.planning.old_values import keeps_latest, needs_old_values
from streamskit.planning.options import QueryOptions
from streamskit.planning.plan import Handover, Plan, PlanInput, PlannedOperator, has_changelog
from streamskit.planning.planned_operators import operators_by_level
from streamskit.planning.processor_groups import processor_groups
from streamskit.planning.shared_stores import shared_stores
from streamskit.topology.description import is_global
from streamskit.topology.nodes import Aggregation, ColumnAggregate, Count, Node, Process, Source, of_kind
from streamskit.topology.topology import Topology

logger = logging.getLogger("streamskit")


def plan(topology: Topology, application_id: str, options: QueryOptions | None = None) -> list[Plan]:
    """Return the plans of a topology: the queries that run it, each after those that feed it where possible.

    A sub-topology that does nothing with its records has none, and is logged as a warning.

    Args:
        topology: what to run.
        application_id: the application's name, with which the internal topics begin.
        options: how its queries run.

    Raises:
        TopologyError: a part of it cannot run on Spark, none of it does anything with its records, or a variable that
            a function uses has another value than where the step was written.
    """
    _check_outer_values(topology)
    plans: list[Plan] = []
    idle: list[str] = []
    for number, nodes in enumerate(topology.sub_topologies()):
        if not is_global(nodes):  # the topic of a global table is its store
            cut = SubtopologyPlanner(topology, application_id, options or QueryOptions(), number, nodes).cut()
            plans += map(planned, cut)
            if not cut:
                source = of_kind(Source, nodes)[0]
                idle.append(f"{source.name} ({source.call_site}): nothing uses its records")
    if idle and not plans:
        raise TopologyError(f"{idle[0]}. End it in .to('a-topic').")
    for told in idle:
        logger.warning("%s, so that they are not read. End it in .to('a-topic'), or leave it out.", told)
    return _telling_once(plans)


def _check_outer_values(topology: Topology) -> None:
    for node in topology.nodes.values():
        for value in node.outer_variables or ():
            if not value.is_same:
                raise TopologyError(
                    f"{node.name} at {node.call_site}: its function uses a variable that has changed: {value.change}. "
                    f"{value.remedy}"
                )


def _telling_once(plans: list[Plan]) -> list[Plan]:
    """Return the plans so that only one reports the dropped records of a global table that several may read."""
    told, found = set[str](), list[Plan]()
    for each in plans:
        inputs = [replace(one, tells=one.tells and one.node.name not in told) for one in each.inputs]
        told |= {one.node.name for one in inputs if one.is_broadcast}
        found.append(replace(each, inputs=tuple(inputs)))
    return found


def planned(cut: Plan) -> Plan:
    """Return a query that was cut out of a topology, planned step by step.

    Raises:
        TopologyError: a part of it cannot run on Spark.
    """
    plan = replace(cut, nodes=reached_nodes(cut))
    plan = replace(plan, groups=processor_groups([cut.topology[name] for name in _in_order(cut, cut.node_names)]))
    plan = replace(plan, shared=shared_stores(plan))
    plan = replace(plan, operators=operators_by_level(plan))
    # A test driver's clock is moved by hand, but its processors are tried out like all others.
    interval = wall_clock_interval(plan)
    if not plan.options.test:
        plan = replace(plan, wall_clock_interval=interval)
    # A cache would hold updates back until a batch ends, which is long in real-time mode; a test driver empties it.
    keeps_cache = plan.options.test or not plan.runs_in_real_time
    return plan if keeps_cache else replace(plan, options=replace(plan.options, cache=False))


def reached_nodes(cut: Plan) -> tuple[Node, ...]:
    """Return the nodes that the records of a query reach, in the order of the program."""
    reached: set[str] = set()
    to_visit = [node for each in cut.inputs for node in (cut.following(each.node) if each.is_handover else [each.node])]
    while to_visit:
        node = to_visit.pop()
        if node.name not in reached:
            reached.add(node.name)
            to_visit += cut.following(node)
    return tuple(cut.topology[name] for name in _in_order(cut, reached))


def _in_order(cut: Plan, names: set[str] | frozenset[str]) -> list[str]:
    return [name for name in cut.topology.nodes if name in names]


class SubtopologyPlanner:
    """Cuts one sub-topology into queries."""

    def __init__(self, topology: Topology, application_id: str, options: QueryOptions, number: int, nodes: list[Node]):
        self.topology, self.application_id, self.options = topology, application_id, options
        self.number, self.nodes = number, nodes
        self.names = frozenset(node.name for node in nodes)
        self.natives = [node for node in of_kind(Aggregation, nodes) if self._runs_natively(node)]

    def cut(self) -> list[Plan]:
        """Return the queries: the native aggregations, each with its own path from a source, and the rest as one.

        There are none if nothing is done with the records.
        """
        queries: list[Plan] = []
        handed_in: dict[Handover, str] = {}
        handed_over: list[PlanInput] = []
        ordered: set[str] = set()
        failing: set[str] = set()
        for node in self.natives:
            path = self._path_to(node)
            needs_order = node.windows is not None and self._has_no_order(path[0])
            # Records meet in a topic first if they come on several paths, if their time depends on earlier ones, or if
            # a function decides about them, as it may decide differently when called twice.
            if _is_plain_source(path[0]) and not self.options.handlers.ask_on_the_way and not needs_order:
                (source,) = map(self._input, of_kind(Source, path[:1]))
                if self._may_leave_dead_letters(path):
                    failing.add(path[-1].name)
            else:
                topic = self._handed_in(path[0], node, handed_in)
                if needs_order and not self.options.test:  # a test driver's records come one by one
                    ordered.add(path[0].name)
                source = PlanInput(path[0], (topic,), is_handover=True)
            handovers = {}
            if self._state_follows(node):
                handovers[Handover(node.name)] = self._handover(node)
                handed_over.append(PlanInput(node, (self._handover(node),), is_handover=True))
            names = {each.name for each in (*path, node)} | (self._after(node) if not handovers else set())
            queries.append(self._query((source,), frozenset(names), len(queries) + 1, node, handovers))
        names_left = self.names - {node.name for node in self.natives}
        inputs = [*map(self._input, of_kind(Source, self.nodes)), *handed_over]
        ends = failing.union(handover.node for handover in handed_in)
        inputs = [each for each in inputs if self._leads_somewhere(each.node, names_left, ends)]
        queries = self._telling_once(queries, inputs)
        if inputs:
            tables = self._global_tables()
            with_tables = names_left.union(*((each.node.name, table.name) for each, table in tables))
            inputs += [each for each, _ in tables]
            rest = self._query(tuple(inputs), with_tables, len(queries) + 1, None, handed_in)
            queries.append(replace(rest, ordered=frozenset(ordered)))
        return [replace(queries[0], part=0)] if len(queries) == 1 else queries

    def _may_leave_dead_letters(self, path: list[Node]) -> bool:
        """Return whether records on such a path may fail without stopping the application, and leave their own rows.

        A query of Spark's aggregations has no rows but their results, so another query has to make these.
        """
        handlers = self.options.handlers
        is_read_here = any(not source.internal for source in of_kind(Source, path[:1]))
        return (is_read_here and handlers.make_rows_in_reading) or (len(path) > 1 and not fails(handlers.processing))

    def _telling_once(self, natives: list[Plan], inputs: list[PlanInput]) -> list[Plan]:
        """Return the queries of native aggregations so that only one query reports the failed records of a source."""
        told, queries = {each.node.name for each in inputs}, list[Plan]()
        for query in natives:
            (source,) = query.inputs
            tells = source.is_handover or source.node.name not in told
            queries.append(replace(query, inputs=(replace(source, tells=tells),)))
            told.add(source.node.name)
        return queries

    def _query(
        self,
        inputs: tuple[PlanInput, ...],
        names: frozenset[str],
        part: int,
        native: Aggregation | None,
        handovers: dict[Handover, str],
    ) -> Plan:
        cut = Plan(
            self.topology, self.application_id, self.options, self.number, part, inputs, names, native, handovers
        )
        return replace(cut, keeps_partitions=self._is_placed_by_partitioners())

    def _is_placed_by_partitioners(self) -> bool:
        """Return whether a topic that is read here is written by a sink with a partitioner."""
        sinks = [sink for sink in self.topology.sinks if sink.partitioner is not None and isinstance(sink.topic, str)]
        return any(
            source.internal == sink.internal and source.reads_topic(str(sink.topic))
            for source in of_kind(Source, self.nodes)
            for sink in sinks
        )

    def _input(self, source: Source) -> PlanInput:
        if source.pattern:
            return PlanInput(source, (source.pattern,), pattern=source.pattern)
        topics = tuple(f"{self.application_id}-{topic}" if source.internal else topic for topic in source.topics)
        changes = any(sink.changes and sink.topic in source.topics for sink in self.topology.sinks if source.internal)
        return PlanInput(source, topics, changes)

    def _handover(self, node: Node, child: str = "") -> str:
        return f"{self.application_id}-{node.name}{child and '-'}{child}-handover"

    def _handed_in(self, node: Node, child: Node, handed_in: dict[Handover, str]) -> str:
        """Return the topic on which a child gets a node's records, and note it in `handed_in`.

        A processor may forward a record to one child only, so that each has a topic of its own.
        """
        if not of_kind(Process, [node]):
            return handed_in.setdefault(Handover(node.name), self._handover(node))
        is_first = all(handover.node != node.name for handover in handed_in)
        topic = handed_in[Handover(node.name, child.name)] = self._handover(node, "" if is_first else child.name)
        return topic

    def _global_tables(self) -> list[tuple[PlanInput, Node]]:
        """Return the global tables that steps of this sub-topology look into, each with what its source reads."""
        looked_into = [
            table
            for table in self.topology.nodes.values()
            if table.is_global and any(node.looks_into(table) for node in self.nodes)
        ]
        sources = [of_kind(Source, [self.topology[table.parents[0]]])[0] for table in looked_into]
        return [
            (PlanInput(source, source.topics, is_broadcast=True), table)
            for source, table in zip(sources, looked_into, strict=True)
        ]

    # ---- what Spark's own operators can do ---------------------------------------------------------------------------

    def _runs_natively(self, node: Aggregation) -> bool:
        if isinstance(node, ColumnAggregate):
            return True
        if not isinstance(node, Count) or node.on_close or not isinstance(node.windows, TimeWindows | None):
            return False
        path = self._path_to(node)
        if self._state_follows(node) or not _is_plain_source(path[0]):
            return False
        if node.windows is not None and self._has_no_order(path[0]):
            return False
        # Spark folds the updates of a batch, but not in real-time mode. A test driver's batch is one record, as long as
        # nothing multiplies it.
        one_by_one = self.options.test and not any(step.flattens for step in path)
        if any(store.kind == "versioned" for store in node.stores):  # they have no cache, and drop what is too old
            return False
        if self.options.cache and not all(store.cached for store in node.stores):
            return False
        if self.options.test and self.options.real_time and self.options.cache:  # there Spark emits each update
            return False
        if self.options.test and self._meets_others_at_the_end(node):
            return False
        return self.options.cache or one_by_one or (self.options.real_time and self._fits_real_time(node, path))

    def _fits_real_time(self, node: Count, path: list[Node]) -> bool:
        """Return whether the query of a count with no state after it can run in real-time mode."""
        names = frozenset({each.name for each in (*path, node)} | self._after(node))
        query = self._query(tuple(map(self._input, of_kind(Source, path[:1]))), names, 0, node, {})
        return replace(query, nodes=reached_nodes(query)).fits_real_time

    def _meets_others_at_the_end(self, node: Count) -> bool:
        """Return whether other steps write the topics, or call functions, that a count leads to as well.

        A test sees their order within a record, and only one query keeps it.
        """
        beside, to_visit = set[str](), list[Node](of_kind(Source, self.nodes))
        while to_visit:
            new = [each for each in self._following(to_visit.pop()) if each.name not in beside | {node.name}]
            beside.update(each.name for each in new)
            to_visit += new
        return bool(self._ends(self._after(node)) & self._ends(beside))

    def _ends(self, names: set[str]) -> set[str]:
        """Return the topics that some nodes write; those that call a function for its effect share one name."""
        nodes = [self.topology[name] for name in names]
        return {end for node in nodes if node.is_visible for end in node.topic_names or ("a function",)}

    def _path_to(self, node: Node) -> list[Node]:
        """Return the nodes before an aggregation, from a source on; only the last, if there is no single such path."""
        path: list[Node] = []
        if self.options.handlers.ask_on_the_way:
            return [self.topology[node.parents[0]]]
        while len(node.parents) == 1:
            node = self.topology[node.parents[0]]
            path.insert(0, node)
            if node.operator_input is not None or node.is_stateful:
                return path[-1:]
        return path if path[0].kind == "Source" else path[-1:]

    def _has_no_order(self, node: Node) -> bool:
        """Return whether a node's records come from several topics, and an extractor gives the times of some."""
        sources = self._sources_before(node)
        return sum(len(each.topics) for each in sources) > 1 and any(each.timestamps is not None for each in sources)

    def _sources_before(self, node: Node) -> set[Source]:
        own = {node} if isinstance(node, Source) else set[Source]()
        return own.union(*(self._sources_before(self.topology[parent]) for parent in node.parents))

    def _after(self, node: Node) -> set[str]:
        """Return the names of all nodes that `node` leads to within the sub-topology."""
        names: set[str] = set()
        for child in self._following(node):
            names |= {child.name} | self._after(child)
        return names

    def _state_follows(self, node: Node) -> bool:
        after = (self.topology[name] for name in self._after(node))
        cache = self.options.cache
        keeps_rows = any(each.is_stateful or keeps_latest(each, self.topology, cache) for each in after)
        return keeps_rows or needs_old_values(node, self.topology)

    def _following(self, node: Node) -> list[Node]:
        return [each for each in self.nodes if node.name in each.parents or each.looks_into(node)]

    def _leads_somewhere(self, node: Node, names: frozenset[str], ends: set[str]) -> bool:
        """Return whether a query without the native aggregations has anything to do with a node's records.

        Args:
            node: whose records they are.
            names: the nodes of that query.
            ends: nodes to which it has to follow records, even if it writes nothing there.
        """
        if node.name in ends:
            return True
        if node.name in names and (
            node.is_visible or node.is_stateful or any(has_changelog(node, store) for store in node.stores)
        ):
            return True
        return any(self._leads_somewhere(child, names, ends) for child in self._following(node) if child.name in names)


def _is_plain_source(node: Node) -> bool:
    """Return whether a node reads topics whose records need no operator before they go on."""
    return node.kind == "Source" and node.operator_input is None


def wall_clock_interval(plan: Plan) -> int | None:
    """Return the shortest wall-clock interval, in milliseconds, that processors of a plan schedule in `init()`.

    Raises:
        TopologyError: a processor cannot be initialized.
    """
    return min(_intervals(plan, PunctuationType.WALL_CLOCK_TIME), default=None)


def follows_stream_time(plan: Plan) -> bool:
    """Return whether it can be seen in a plan how far records of other sub-topologies have moved stream time.

    Any processor may ask for it, or schedule a punctuation later. But with a record cache those alone follow it that
    schedule one in `init()`: as records then come one at a time, a cache would fold nothing.

    Raises:
        TopologyError: a processor cannot be initialized.
    """
    if plan.options.cache:
        return bool(_intervals(plan, PunctuationType.STREAM_TIME))
    return any(planned.operator.punctuates for planned in plan.operators)


def _intervals(plan: Plan, kind: PunctuationType) -> list[int]:
    """Return the intervals of the punctuations that processors of a plan schedule in `init()`."""
    return [
        schedule.interval
        for planned in plan.operators
        if isinstance(planned.operator, operators.ProcessorsOperator)
        for schedule in _initialized(planned, planned.operator, plan).task.punctuations.schedules
        if schedule.kind is kind
    ]


def _initialized(planned: PlannedOperator, operator: operators.ProcessorsOperator, plan: Plan) -> RunningProcessors:
    """Return processors after their init(), tried on empty stores."""
    try:
        task = operators.StreamTask([operator], operators.NoPages())
        return RunningProcessors(operator, operators.OperatorContext(task, 0, operator.name, _forget, is_cached=False))
    except Exception as failure:
        failed = read_attribution("\n".join(getattr(failure, "__notes__", ())))
        node = plan.topology[failed.operator] if failed else planned.node
        is_ours = isinstance(failure, StreamsError)
        said = str(failure).removeprefix(f"{node.name}: ") if is_ours else repr(failure)
        raise TopologyError(
            f"{node.name} ({node.call_site}): the processor could not be initialized: {said}"
        ) from failure


def _forget(*_: Any, **__: Any) -> None:
    """Discard what a processor forwards while it is only tried out."""
