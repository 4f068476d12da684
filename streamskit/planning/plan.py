"""What one Spark query runs: the part of a sub-topology between the topics it reads and the topics it writes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from streamskit.planning.levels import slots_by_level
from streamskit.planning.options import QueryOptions
from streamskit.planning.planned_operators import PlannedOperator
from streamskit.planning.processor_groups import ProcessorGroup, processor_groups
from streamskit.planning.wall_clock import CLOCK_TOPIC, wakes_every
from streamskit.serdes import SessionWindowedSerde, TimeWindowedSerde
from streamskit.topology import (
    GlobalTableSource,
    Node,
    Process,
    SideEffect,
    Sink,
    Source,
    Store,
    StreamTableJoin,
    Topology,
)

WINDOW_BYTES: dict[type, int] = {TimeWindowedSerde: 8, SessionWindowedSerde: 16}
"""How many bytes of a windowed key are not the key."""


@dataclass(frozen=True)
class PlanInput:
    """Topics that a query reads, and the node whose records they hold.

    `is_handover` says that an earlier query of the same sub-topology has written them, and done the node's own part.
    """

    node: Node
    topics: tuple[str, ...]
    changes: bool = False
    everywhere: bool = False
    is_handover: bool = False


@dataclass(frozen=True)
class Plan:
    """One Spark query: what it reads, and `within` which nodes it follows its records.

    `native` is the aggregation that Spark's own operators do.
    """

    topology: Topology
    application_id: str
    options: QueryOptions
    number: int
    part: int
    entries: tuple[PlanInput, ...]
    within: frozenset[str]
    native: Node | None = None
    handovers: Mapping[str, str] = field(default_factory=dict)
    """Nodes whose records another query takes up, and the topic between the two."""

    @property
    def name(self) -> str:
        """The query's name: the number of its sub-topology, and of its part where there are several."""
        return f"{self.number}" if self.part == 0 else f"{self.number}.{self.part}"

    def topic(self, sink: Sink) -> str:
        """Return the real name of a sink's topic: an internal one begins with the application's id."""
        return f"{self.application_id}-{sink.topic}" if sink.internal else str(sink.topic)

    def changelog(self, store: Store) -> str:
        """Return the name of the topic that holds a store's updates, as Kafka Streams names it."""
        return f"{self.application_id}-{store.name}-changelog"

    def calls_topic(self, node: SideEffect) -> str:
        """Return the name of the topic on which records travel to the process that calls a learner's function."""
        return f"{self.application_id}-{node.name}-calls"

    @property
    def marks_topic(self) -> str:
        """The name of the topic that says which micro-batches were written, where output is exactly once."""
        return f"{self.application_id}-{self.name}-transactions"

    def following(self, node: Node) -> list[Node]:
        """Return the nodes that get this one's records: its children, and those that look into its table."""
        every = self.topology.nodes.values()
        own = {store.name for store in node.stores} if node.is_table else set()
        joins = [each for each in every if isinstance(each, StreamTableJoin) and each.table == node.name]
        # A processor finds in a table the record that it is given.
        readers = [each for each in every if isinstance(each, Process) and own.intersection(each.tables)]
        return [each for each in (*readers, *self.topology.children(node), *joins) if each.name in self.within]

    @cached_property
    def groups(self) -> Mapping[str, ProcessorGroup]:
        """The processors that run together, by the name of each."""
        return processor_groups([node for node in self.topology.nodes.values() if node.name in self.within])

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes of which this query runs a part, in the order of the program."""
        found: set[str] = set()

        def visit(node: Node) -> None:
            found.add(node.name)
            for child in self.following(node):
                if child.name not in found:
                    visit(child)

        for entry in self.entries:
            for node in self.following(entry.node) if entry.is_handover else [entry.node]:
                visit(node)
        return tuple(node for node in self.topology.nodes.values() if node.name in found)

    @property
    def sources(self) -> list[Source]:
        """The nodes that read topics."""
        return [node for node in self.nodes if isinstance(node, Source)]

    @property
    def sinks(self) -> list[Sink]:
        """The nodes that write topics."""
        return [node for node in self.nodes if isinstance(node, Sink)]

    @property
    def side_effects(self) -> list[SideEffect]:
        """The nodes that call a learner's function for each record."""
        return [node for node in self.nodes if isinstance(node, SideEffect)]

    @property
    def topics(self) -> list[str]:
        """The topics that this query reads."""
        return list(dict.fromkeys(topic for entry in self.entries for topic in entry.topics))

    @property
    def stores(self) -> list[Store]:
        """The named stores whose updates this query writes to a changelog."""
        kept = [store for node in self.nodes for store in node.stores if has_changelog(node, store)]
        return list(dict.fromkeys(kept))  # processors share stores

    @cached_property
    def slots(self) -> tuple[PlannedOperator, ...]:
        """The task operators of this query, by level: those of a level need nothing but the levels before it."""
        return slots_by_level(self)

    @property
    def taken_up(self) -> frozenset[str]:
        """The names of nodes whose records an earlier query has written."""
        return frozenset(entry.node.name for entry in self.entries if entry.is_handover)

    @cached_property
    def wakes_every(self) -> int | None:
        """How often the wall clock has to tick though no records come, in milliseconds; None if nobody asks."""
        return None if self.options.test else wakes_every(self)

    @property
    def hears_clock(self) -> bool:
        """Whether the wall clock comes in among the records."""
        return self.wakes_every is not None or (self.options.test and bool(self.slots))

    @property
    def everywhere(self) -> tuple[str, ...]:
        """The topics whose records go to every task: those of global tables, and the wall clock."""
        return (CLOCK_TOPIC, *(topic for entry in self.entries if entry.everywhere for topic in entry.topics))

    @property
    def is_stateful(self) -> bool:
        """Whether something has to be remembered from one micro-batch to the next."""
        return bool(self.slots) or self.native is not None

    @property
    def output_mode(self) -> str:
        """Spark's output mode: a table's updates as they happen, a stream's records once."""
        return "update" if self.is_stateful else "append"

    def tasks(self, partitions: Mapping[str, int]) -> int:
        """Return how many tasks the query has, given the partitions of each topic: one for each it reads."""
        return max(partitions[topic] for topic in self.spread)

    @property
    def spread(self) -> list[str]:
        """The topics whose partitions are shared out among the tasks."""
        return [topic for entry in self.entries if not entry.everywhere for topic in entry.topics]

    def windowed_topics(self) -> dict[str, int]:
        """Return the topics whose keys end in bytes that are not the key, and how many those are.

        Records with the same inner key have to meet in one partition, whatever their window.
        """
        found: dict[str, int] = {}
        for node in self.nodes:
            extra = WINDOW_BYTES.get(type(node.key), 0)
            if extra and isinstance(node, Sink) and isinstance(node.topic, str):
                found[self.topic(node)] = extra
            for store in node.stores:
                if has_changelog(node, store) and (beyond := _beyond_key(node, store)):
                    found[self.changelog(store)] = beyond
            if extra and node.name in self.handovers:
                found[self.handovers[node.name]] = extra
        return found


def _beyond_key(node: Node, store: Store) -> int:
    """Return how many bytes of a key in a store's changelog are not the key but its window, and a number."""
    if isinstance(node, Process):  # its records have keys of their own
        return {"window": 12, "session": 16}.get(store.kind) or WINDOW_BYTES.get(type(store.key), 0)
    extra = WINDOW_BYTES.get(type(node.key), 0)
    return extra + 4 if extra == 8 else extra


def is_readable(store: Store) -> bool:
    """Return whether a store can be read from outside: it was given a name, and is no buffer."""
    return store.queryable and store.kind != "buffer"


def has_changelog(node: Node, store: Store) -> bool:
    """Return whether a store's updates are written to a changelog: it was named, and no topic holds them already."""
    return is_readable(store) and store.logged and not isinstance(node, GlobalTableSource)
