"""`Plan`: one Spark query, the part of a sub-topology between the topics it reads and the topics it writes."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from streamskit.api.error_handlers import asks
from streamskit.common.errors import StreamsError
from streamskit.operators import Operator
from streamskit.planning.options import QueryOptions
from streamskit.serdes import Serde, SessionWindowedSerde, TimeWindowedSerde
from streamskit.state.stores import Store
from streamskit.topology.nodes import Aggregation, Node, Process, SideEffect, Sink, Source, of_kind
from streamskit.topology.topology import Topology

CLOCK_TOPIC = "streamskit-wall-clock"
"""The topic of a record that moves the wall clock: of a test driver to its timestamp, of a running query to now."""

STREAM_TIME_KEY = b"stream time"
"""The key of a record of the clock that says how far stream time has advanced; others give the wall clock."""

FLUSH_KEY = b"flush"
"""The key of a record of the clock after which the record caches are empty; it moves no clock."""

WINDOW_BYTES: dict[type, int] = {TimeWindowedSerde: 8, SessionWindowedSerde: 16}
"""How many bytes of a windowed key are not the key."""


@dataclass(frozen=True)
class PlanInput:
    """Topics that a query reads, and the node whose records they hold.

    `changes` says that a value holds both the new and the old value of a row; `is_broadcast` that every task gets all
    records; `is_handover` that an earlier query of the same sub-topology has written them, and done the node's part;
    `tells` that this query, and no other, reports the records that are dropped as they are read. Until it is known
    which topics match a `pattern`, the pattern takes their place.
    """

    node: Node
    topics: tuple[str, ...]
    changes: bool = False
    is_broadcast: bool = False
    is_handover: bool = False
    tells: bool = True
    pattern: str = ""

    @property
    def node_pattern(self) -> str:
        """The pattern that its node has in place of topics, whether they are known or not; "" if it names them."""
        return "" if self.is_handover else self.node.pattern

    def reads(self, topic: str) -> bool:
        """Return whether its records are in a topic."""
        return bool(re.fullmatch(self.pattern, topic)) if self.pattern else topic in self.topics


@dataclass(frozen=True)
class PlannedOperator:
    """A stateful operator in a query: its results go on from `node`.

    Those of a `level` need only the results of the levels before it; those with the same `shared_table` are on one
    level. `members` are the nodes that it runs, where it runs several whose results differ. `key` is the serde of the
    keys on all its sides, where they come from nodes with serdes of their own.
    """

    operator: Operator
    node: Node
    level: int = 1
    shared_table: str = ""
    members: tuple[Node, ...] = ()
    key: Serde | None = None

    @property
    def exits(self) -> tuple[Node, ...]:
        """The nodes from which results go on."""
        return self.members or (self.node,)


@dataclass(frozen=True)
class ProcessorGroup:
    """Processors that pass records to each other or share stores, and so have to run in one operator."""

    members: tuple[Process, ...]

    @property
    def name(self) -> str:
        """The name of the operator that runs them."""
        return self.members[0].name

    @property
    def stores(self) -> tuple[Store, ...]:
        """The stores that they keep, each once."""
        return tuple(dict.fromkeys(store for member in self.members for store in member.own_stores))


class Handover(NamedTuple):
    """What of a node's records another query continues with: all of them, or those for one `child` of a processor."""

    node: str
    child: str = ""


@dataclass(frozen=True)
class Plan:
    """One Spark query: what it reads, and the nodes through which it follows its records.

    The planner fills it in this order: what is cut out of the topology (`inputs`, `node_names`, `native`, `handovers`),
    the `nodes` that its records reach, the processors that run together, the stateful operators by level, and how often
    the wall clock has to tick.
    """

    topology: Topology
    application_id: str
    options: QueryOptions
    number: int
    part: int
    inputs: tuple[PlanInput, ...]
    node_names: frozenset[str]
    native: Aggregation | None = None
    """The aggregation that Spark's own operators do."""
    handovers: Mapping[Handover, str] = field(default_factory=dict)
    """The records that other queries continue with, and the topics in between."""
    ordered: frozenset[str] = frozenset()
    """Nodes whose records have to be put in the order of their timestamps before they are handed over."""
    nodes: tuple[Node, ...] = ()
    """All nodes of which this query runs a part, in the order of the program."""
    groups: Mapping[str, ProcessorGroup] = field(default_factory=dict)
    """The processors that run together, by the name of each."""
    shared: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """The tables' stores that processors use themselves, by group and store, with the level that they share with the
    table's operator. Of other stores they have a copy."""
    operators: tuple[PlannedOperator, ...] = ()
    """The stateful operators that run in Python, by level."""
    keeps_partitions: bool = False
    """Whether its records are where a partitioner has sent them, so that what it keeps of them stays in its task's
    partitions, whatever the keys."""
    wall_clock_interval: int | None = None
    """How often the wall clock has to tick even if no records come, in milliseconds; None if nothing needs it."""

    @property
    def name(self) -> str:
        """The query's name: the number of its sub-topology, and of its part where there are several."""
        return f"{self.number}" if self.part == 0 else f"{self.number}.{self.part}"

    def following(self, node: Node) -> list[Node]:
        """Return the nodes that get this one's records: its children, and those that look into its table."""
        every = self.topology.nodes.values()
        # A step that looks into a table finds the update that it is given there.
        looking = [each for each in every if each.looks_into(node) and not self.uses(each, node)]
        readers, joins = ([each for each in looking if each.has_own_keys is own] for own in (True, False))
        # Processors that run together have one copy.
        readers = list({self.groups[each.name].name if each.name in self.groups else each.name: each
                        for each in reversed(readers)}.values())[::-1]  # fmt: skip
        return [each for each in (*readers, *joins, *self.topology.children(node)) if each.name in self.node_names]

    def uses(self, processor: Node, table: Node) -> bool:
        """Return whether a processor uses the store of a table itself, and so needs no copy of its rows."""
        if processor.name not in self.groups:
            return False
        group = self.groups[processor.name].name
        return any((group, store.name) in self.shared for store in table.stores)

    def is_used(self, table: Node) -> bool:
        """Return whether processors use the store of a table themselves."""
        return table.is_table and any(store == kept.name for _, store in self.shared for kept in table.stores)

    def level_with(self, node: Node) -> str:
        """Return the name of the level that a table shares with the processors that use its store, given either."""
        group = self.groups[node.name].name if node.name in self.groups else ""
        stores = {store.name for store in node.stores} if self.is_used(node) else set()
        return next((level for (user, store), level in self.shared.items() if user == group or store in stores), "")

    # ---- topics ------------------------------------------------------------------------------------------------------

    @property
    def topics(self) -> list[str]:
        """The topics that this query reads."""
        return list(dict.fromkeys(topic for each in self.inputs for topic in each.topics))

    @property
    def topics_as_written(self) -> list[str]:
        """The topics that this query reads, as the program names them: all that match a pattern are one."""
        names = (each.node.topic_names if each.node.pattern else each.topics for each in self.inputs)
        return list(dict.fromkeys(topic for each in names for topic in each))

    def reads(self, topic: str) -> bool:
        """Return whether it reads a topic."""
        return any(each.reads(topic) for each in self.inputs)

    @property
    def waits_for_topics(self) -> bool:
        """Whether it is not known yet which topics match its patterns."""
        return any(each.pattern for each in self.inputs)

    @property
    def patterns(self) -> list[str]:
        """The patterns that the program has in place of topics."""
        return [each.node_pattern for each in self.inputs if each.node_pattern]

    def with_topics(self, topics: Iterable[str]) -> "Plan":
        """Return the plan for the existing topics, among which are those that match its patterns."""
        there = sorted(topics)
        inputs = [
            replace(each, topics=tuple(name for name in there if re.fullmatch(each.node_pattern, name)), pattern="")
            if each.node_pattern
            else each
            for each in self.inputs
        ]
        return replace(self, inputs=tuple(inputs))

    @property
    def partitioned_topics(self) -> list[str]:
        """The topics whose partitions are shared out among the tasks."""
        return [topic for each in self.inputs if not each.is_broadcast for topic in each.topics]

    @property
    def broadcast_topics(self) -> tuple[str, ...]:
        """The topics whose records go to every task: those of global tables, and the wall clock."""
        return (CLOCK_TOPIC, *(topic for each in self.inputs if each.is_broadcast for topic in each.topics))

    @property
    def topics_by_time(self) -> frozenset[str]:
        """The repartition topics that it writes for steps that go by time: tasks with different times meet there."""
        sinks = [sink for sink in self.sinks if sink.internal and not sink.changes]
        return frozenset(self.topic(sink) for sink in sinks if self._goes_by_time(str(sink.topic)))

    def _goes_by_time(self, topic: str) -> bool:
        """Return whether a step of the sub-topology that reads an internal topic goes by time."""
        sources = of_kind(Source, self.topology.nodes.values())
        to_visit: list[Node] = [each for each in sources if each.internal and topic in each.topics]
        visited: set[str] = set()
        while to_visit:
            node = to_visit.pop()
            if node.goes_by_time:
                return True
            if node.name not in visited:
                visited.add(node.name)
                to_visit += self.topology.children(node)
        return False

    @property
    def transactions_topic(self) -> str:
        """The topic that says which micro-batches were written, where output is exactly once."""
        return f"{self.application_id}-{self.name}-transactions"

    @property
    def checkpoint_topic(self) -> str:
        """The topic with a copy of the query's checkpoint, from which it can be rebuilt."""
        return f"{self.application_id}-{self.name}-checkpoint"

    def topic(self, sink: Sink) -> str:
        """Return the real name of a sink's topic: an internal one begins with the application's id."""
        return f"{self.application_id}-{sink.topic}" if sink.internal else str(sink.topic)

    def topics_between(self, node: Node) -> list[str]:
        """Return the topics on which other queries get a node's records."""
        return [topic for handover, topic in self.handovers.items() if handover.node == node.name]

    @property
    def named_topics(self) -> set[str]:
        """The topics its sinks write whose names do not depend on the records."""
        return {self.topic(sink) for sink in self.sinks if isinstance(sink.topic, str)}

    @property
    def outer_topics(self) -> list[str]:
        """The topics of others that its sinks write, as far as their names do not depend on the records."""
        outer = (self.topic(sink) for sink in self.sinks if isinstance(sink.topic, str) and not sink.internal)
        return list(dict.fromkeys(outer))

    def changelog(self, store: Store) -> str:
        """Return the name of the topic that holds a store's updates, as Kafka Streams names it."""
        return f"{self.application_id}-{store.name}-changelog"

    def calls_topic(self, node: SideEffect) -> str:
        """Return the name of the topic on which records travel to the process that calls a user's function."""
        return f"{self.application_id}-{node.name}-calls"

    def windowed_topics(self) -> dict[str, int]:
        """Return the topics whose keys end in bytes that are not the key, and how many those are.

        Records with the same inner key have to meet in one partition, whatever their window.
        """
        found: dict[str, int] = {}
        for sink in self.sinks:
            if isinstance(sink.topic, str) and (extra := WINDOW_BYTES.get(type(sink.key), 0)):
                found[self.topic(sink)] = extra
        for node in self.nodes:
            extra = WINDOW_BYTES.get(type(node.key), 0)
            for store in node.stores:
                if has_changelog(node, store) and (beyond := _beyond_key(node, store)):
                    found[self.changelog(store)] = beyond
            if extra:
                found |= dict.fromkeys(self.topics_between(node), extra)
        return found

    # ---- nodes and stores --------------------------------------------------------------------------------------------

    @property
    def sources(self) -> list[Source]:
        """The nodes that read topics."""
        return of_kind(Source, self.nodes)

    @property
    def sinks(self) -> list[Sink]:
        """The nodes that write topics."""
        return of_kind(Sink, self.nodes)

    @property
    def partitioned_sinks(self) -> list[Sink]:
        """The sinks that have a partitioner."""
        return [sink for sink in self.sinks if sink.partitioner is not None]

    @property
    def side_effects(self) -> list[SideEffect]:
        """The nodes that call a user's function for each record."""
        return of_kind(SideEffect, self.nodes)

    @property
    def stores(self) -> list[Store]:
        """The named stores whose updates this query writes to a changelog."""
        logged = [store for node in self.nodes for store in node.stores if has_changelog(node, store)]
        return list(dict.fromkeys(logged))  # processors share stores

    @property
    def handed_over(self) -> frozenset[str]:
        """The names of nodes whose records an earlier query has written."""
        return frozenset(each.node.name for each in self.inputs if each.is_handover)

    @property
    def tells_failures(self) -> bool:
        """Whether it counts records that cannot be read or processed, and makes dead letters of them.

        Otherwise another query that reads the same records does so.
        """
        return any(each.tells for each in self.inputs)

    # ---- how it runs -------------------------------------------------------------------------------------------------

    @property
    def uses_wall_clock(self) -> bool:
        """Whether the wall clock comes in among the records."""
        return self.wall_clock_interval is not None or (self.options.test and bool(self.operators))

    @property
    def tells_beginnings(self) -> bool:
        """Whether a row precedes each record of the task's topics to mark its beginning, even if the record is one row.

        Handlers need to know where a record came from. Rows of unreadable records must not move a clock. And an
        operator may decide the time of a record.
        """
        return self.options.handlers.make_rows or any(source.needs_partition_time for source in self.sources)

    @property
    def is_stateful(self) -> bool:
        """Whether something has to be remembered from one micro-batch to the next."""
        return bool(self.operators) or self.native is not None

    @property
    def fits_real_time(self) -> bool:
        """Whether Spark's real-time mode can run it."""
        return not self.against_real_time

    @property
    def runs_in_real_time(self) -> bool:
        """Whether it does run in that mode."""
        return self.options.real_time and self.fits_real_time

    @property
    def against_real_time(self) -> str:
        """Why Spark's real-time mode cannot run it, as part of a sentence; "" if it can."""
        if self.operators and self._reads_several:
            name = self.operators[0].node.name
            if any(each.is_broadcast for each in self.inputs):
                return f"{name} needs all of a global table before any other record"
            if not self.options.as_they_come:
                return (
                    f"{name} takes several topics in the order of their time, and they are read side by side there "
                    "(max_task_idle_ms=-1 does without the order)"
                )
        if self.wall_clock_interval is not None:
            return "a processor schedules by the wall clock, which ticks between micro-batches"
        if any(map(asks, self.options.handlers.every)):
            return "an error handler is a function, which runs in Python between two of Spark's steps"
        if self.partitioned_sinks:
            return f"the partitioner of {self.partitioned_sinks[0].name} runs in Python"
        for node in self.nodes:
            if node.topic_names and (node.key.runs_in_python or node.value.runs_in_python):
                return f"a serde of {node.name} runs in Python"
        return self._against_native_in_real_time

    @property
    def _against_native_in_real_time(self) -> str:
        """Why Spark's own aggregation cannot run in real-time mode, in such words; "" if it can, or there is none."""
        if self.native is None:
            return ""
        if self.options.test and self.options.cache:  # an application has no cache there
            return f"the record cache folds the updates of {self.native.name}"
        if self.native.windows is not None and self._reads_several:
            return f"the windows of {self.native.name} go by the time of several topics, read side by side there"
        return ""

    @property
    def _reads_several(self) -> bool:
        """Whether Spark reads several topics side by side; a test driver gives it one record after the other."""
        return not self.options.test and (len(self.topics) > 1 or self.waits_for_topics)

    def slots(self, partitions: Mapping[str, int]) -> int:
        """Return how many tasks run side by side in real-time mode: those that read, and those that keep state.

        Args:
            partitions: how many each topic has.
        """
        levels = len({each.level for each in self.operators}) + (self.native is not None)
        return sum(partitions[topic] for topic in self.topics) + levels * self.tasks(partitions)

    @property
    def output_mode(self) -> str:
        """Spark's output mode: "update" for a query with state, "append" for others."""
        return "update" if self.is_stateful else "append"

    def tasks(self, partitions: Mapping[str, int]) -> int:
        """Return how many tasks the query has: as many as its largest topic has of the given partitions."""
        return max(partitions[topic] for topic in self.partitioned_topics)


def _beyond_key(node: Node, store: Store) -> int:
    """Return how many bytes of a key in a store's changelog are not the key but its window, and a number."""
    if store in node.own_stores:
        return {"window": 12, "session": 16}.get(store.kind) or WINDOW_BYTES.get(type(store.key), 0)
    extra = WINDOW_BYTES.get(type(node.key), 0)
    return extra + 4 if extra == 8 else extra


def is_readable(store: Store) -> bool:
    """Return whether a store can be read from outside: it was given a name, and is no buffer."""
    return store.queryable and store.kind != "buffer"


def is_whole(topology: Topology, store: Store) -> bool:
    """Return whether every task and every instance has all of a store, as of a global table."""
    return any(node.is_global and store in node.stores for node in topology.nodes.values())


def check_seen_outside(topology: Topology, store: Store) -> None:
    """Make sure that a store's rows are known outside of the tasks that keep it.

    Raises:
        StreamsError: nothing tells of them: the store has no changelog, and is not global.
    """
    if not store.logged and not is_whole(topology, store):
        raise StreamsError(
            f"Store '{store.name}' cannot be read from outside: it has no changelog, because logging is off. Leave "
            "logging on, or have a processor read the store."
        )


def has_changelog(node: Node, store: Store) -> bool:
    """Return whether a store's updates are written to a changelog: it was named, and no topic holds them already."""
    return is_readable(store) and store.logged and not node.is_global
