"""The topics of an application: what each is for, which ones it makes, and how many partitions each has."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from streamskit.api.stream_partitioner import Partitioner, beyond, only_one
from streamskit.broker import ExternalBroker
from streamskit.columns.type_inference import check_partitioner
from streamskit.common.errors import StreamsError, StreamsKitError, TopologyError
from streamskit.common.names import LONGEST_NAME
from streamskit.kafka.access import Right
from streamskit.kafka.topic_partition import partition_for
from streamskit.kafka.topics import list_topics, unseen
from streamskit.planning import planner
from streamskit.planning.options import QueryOptions
from streamskit.planning.plan import Plan, is_readable, is_whole
from streamskit.planning.planned_operators import operator_input
from streamskit.queries import Catalogue, LocalStore, QueryableStore, local_store
from streamskit.runtime.co_partitioning import Meeting
from streamskit.state.stores import Store
from streamskit.topology import Topology
from streamskit.topology.nodes import GlobalTableSource, Node, SideEffect, Sink, TableSource, of_kind

OWN_TIMES = {"message.timestamp.type": "CreateTime"}
"""Records keep the time that they were written with, event time, whatever the broker's own default is."""
CHANGELOG = {"cleanup.policy": "compact", "segment.bytes": str(16 * 1024 * 1024)} | OWN_TIMES
# "delete" lets the application delete expired windows; nothing is deleted by age.
WINDOWED_CHANGELOG = CHANGELOG | {"cleanup.policy": "compact,delete", "retention.ms": "-1"}
ADDITIONAL_LAG = 24 * 60 * 60 * 1000
"""For how many milliseconds beyond its history the changelog of a versioned store keeps every version of a row.

Compaction goes by the clock and history by stream time, which may be behind. Kafka Streams adds a day as well.
"""
REPARTITION = {"cleanup.policy": "delete", "retention.ms": "-1"} | OWN_TIMES
TRANSACTIONS = {"cleanup.policy": "compact", "segment.bytes": str(1024 * 1024)}
CHECKPOINTS = {"cleanup.policy": "compact", "segment.bytes": str(16 * 1024 * 1024)}
SIDE_EFFECTS = {"cleanup.policy": "delete", "retention.ms": "-1", "max.message.bytes": str(2**31 - 1)} | OWN_TIMES
"""Whatever record was read can be passed to a function, so the topic takes records of any size."""


def changelogs(plans: list[Plan]) -> dict[str, Store]:
    """Return the changelogs that queries write, each with the store whose updates it holds."""
    return {plan.changelog(store): store for plan in plans for store in plan.stores}


def global_tables(topology: Topology) -> dict[str, list[GlobalTableSource]]:
    """Return the topics that are the changelogs of global tables, each with the nodes whose stores it fills."""
    found: dict[str, list[GlobalTableSource]] = {}
    for node in of_kind(GlobalTableSource, topology.nodes.values()):
        if node.store is not None and is_readable(node.store):
            for topic in topology[node.parents[0]].topic_names:
                found.setdefault(topic, []).append(node)
    return found


def local_stores(topology: Topology) -> dict[str, LocalStore]:
    """Return an empty local copy of each store that can be queried, by its name."""
    readable = (store for store in topology.stores.values() if is_readable(store))
    return {store.name: local_store(store, is_global=is_whole(topology, store)) for store in readable}


def ever_made(topology: Topology, application_id: str, options: QueryOptions) -> list[str]:
    """Return every topic that an application makes in either mode, with or without a record cache.

    Each of them may cut a sub-topology into other queries, and what "auto" chooses is known only after a start.

    Args:
        topology: what it runs.
        application_id: its id.
        options: how its queries run.
    """
    modes = [(cache, real_time) for cache in (options.cache, not options.cache) for real_time in (False, True)]
    plans = (
        planner.plan(topology, application_id, replace(options, cache=cache, real_time=real_time))
        for cache, real_time in modes
    )
    return list(dict.fromkeys(topic for each in plans for topic in ApplicationTopics(application_id, each).internal))


def filled_stores(topology: Topology, plans: list[Plan]) -> dict[str, list[str]]:
    """Return all topics that fill stores, each with the stores' names."""
    found = {topic: [store.name] for topic, store in changelogs(plans).items()}
    for topic, nodes in global_tables(topology).items():
        found[topic] = found.get(topic, []) + [node.store.name for node in nodes if node.store is not None]
    return found


def side_effects(plans: list[Plan]) -> dict[str, SideEffect]:
    """Return the topics on which records travel to a user's functions, each with its step."""
    return {plan.calls_topic(node): node for plan in plans for node in plan.side_effects}


def catalogue(application_id: str, topology: Topology, plans: list[Plan]) -> Catalogue:
    """Return the stores that can be queried, each with its changelog and whether a key determines its partition."""
    entries = []
    for plan in plans:
        by_task = {store.name for node in plan.nodes if node.has_own_keys for store in node.stores}
        beyond = plan.windowed_topics()
        for store in plan.stores:
            topic = plan.changelog(store)
            # A windowed row in a plain table is in the partition of its key without the window.
            by_key = store.name not in by_task and (topic not in beyond or store.kind in ("window", "session"))
            entries.append(QueryableStore(store, topic, plan.number, by_key and not plan.keeps_partitions))
    for topic, nodes in global_tables(topology).items():
        entries += [QueryableStore(node.store, topic, -1, is_global=True) for node in nodes if node.store is not None]
    return Catalogue(application_id, tuple(entries))


def partition_of_key(
    plans: list[Plan], store: str, key: Any, partitioner: Partitioner | None, partitions: Mapping[str, int]
) -> int | None:
    """Return in which partition of a store a partitioner puts a key; None without a partitioner or such a store.

    It is called for the topic with the most partitions among those that the store is made of.

    Args:
        plans: what runs.
        store: the name of the store.
        key: the key.
        partitioner: the user's.
        partitions: how many partitions each topic has.

    Raises:
        StreamsError: it does not choose exactly one existing partition.

    Mirrors `StreamsMetadataState#keyQueryMetadataForKey`.
    """
    partition = check_partitioner(partitioner, "query_metadata_for_key")
    plan = next((plan for plan in plans if store in (each.name for each in plan.stores)), None)
    if partition is None or plan is None:
        return None
    sources = [each for each in plans if each.number == plan.number]
    handed = {topic for each in sources for topic in each.handovers.values()}
    read = [topic for each in sources for topic in each.partitioned_topics if topic not in handed]
    topic = max(read, key=lambda each: partitions[each])
    chosen = only_one(partition, topic, key, partitions[topic])
    if chosen is None:
        serde = next(each.key for each in plan.stores if each.name == store)
        return partition_for(serde.serialize(key) or b"", partitions[topic])
    if chosen >= partitions[topic]:
        raise StreamsError(f"query_metadata_for_key: {beyond(topic, [chosen], partitions[topic])}.")
    return chosen


def _lag(store: Store) -> dict[str, str]:
    """Return the settings that keep the old versions of a versioned store's rows from compaction.

    Mirrors `VersionedChangelogTopicConfig`.
    """
    if store.kind != "versioned" or store.retention is None:
        return {}
    return {"min.compaction.lag.ms": str(store.retention + ADDITIONAL_LAG)}


@dataclass(frozen=True)
class ApplicationTopics:
    """The topics of an application with the given plans."""

    application_id: str
    plans: list[Plan]
    exactly_once: bool = False
    replication_factor: int = -1
    """How many brokers keep each partition of the internal topics; -1 for as many as the cluster's settings say."""

    @property
    def internal(self) -> list[str]:
        """Every topic that the application makes: between its queries, and for its stores and side effects."""
        of_queries = [topic for plan in self.plans for topic in (plan.transactions_topic, plan.checkpoint_topic)]
        return list(dict.fromkeys([*self.between, *changelogs(self.plans), *self.side_effects, *of_queries]))

    @property
    def between(self) -> list[str]:
        """The topics between its queries."""
        return [*self._sinks(), *(topic for plan in self.plans for topic in plan.handovers.values())]

    @property
    def written(self) -> list[str]:
        """The topics of others that it writes, as far as their names are known in advance."""
        return list(dict.fromkeys(topic for plan in self.plans for topic in plan.outer_topics))

    @property
    def streams(self) -> list[str]:
        """The topics of others that it reads as streams of records, not as the rows of a table."""
        tables = (TableSource, GlobalTableSource)
        read = [
            each
            for plan in self.plans
            for each in plan.inputs
            for node in plan.topology.nodes.values()
            if each.node.name in node.parents and not isinstance(node, tables)
        ]
        own = set(self.internal)
        return list(dict.fromkeys(topic for each in read for topic in each.topics if topic not in own))

    @property
    def windowed(self) -> dict[str, int]:
        """The changelogs of windowed stores, each with how many milliseconds of stream time the store keeps."""
        kept = changelogs(self.plans).items()
        return {topic: store.retention or 0 for topic, store in kept if store.kind in ("window", "session")}

    @property
    def side_effects(self) -> list[str]:
        """The topics on which records travel to a user's functions."""
        return list(side_effects(self.plans))

    @property
    def rights(self) -> list[Right]:
        """What a cluster with access control has to allow it to do with the topics."""
        own = [plan.options.handlers.dead_letter_topics for plan in self.plans]
        written = dict.fromkeys([*self.written, *(topic for each in own for topic in each)])
        read = dict.fromkeys(topic for plan in self.plans for topic in plan.topics)
        inner = dict.fromkeys(self.internal)
        rights = [Right("Read", "topic", topic) for topic in dict.fromkeys([*read, *inner])]
        return rights + [Right("Write", "topic", topic) for topic in dict.fromkeys([*written, *inner])]

    def check_names(self) -> None:
        """Make sure that Kafka takes the names of the internal topics.

        Raises:
            StreamsError: one is too long.
        """
        longest = max(self.internal, key=len, default="")
        if (excess := len(longest) - LONGEST_NAME) > 0:
            raise StreamsError(
                f"The internal topic '{longest}' would have a name of {len(longest)} characters, and Kafka takes "
                f"{LONGEST_NAME}: make application_id, or the names of steps and stores, shorter by {excess}."
            )

    def partitions(self, brokers: ExternalBroker) -> dict[str, int]:
        """Check that all topics exist, and return how many partitions each has or, for internal ones, will have.

        Raises:
            StreamsError: a topic is missing, or the topics of a join have different numbers of partitions.
        """
        partitions, between = self._checked(brokers)
        return partitions | between

    def prepare(self, brokers: ExternalBroker) -> dict[str, int]:
        """Make the internal topics, and return how many partitions each topic has.

        Raises:
            StreamsError: as for `partitions`; or an internal topic exists with a different number of partitions.
        """
        partitions, between = self._checked(brokers)
        for topic, count, config in self._to_make(partitions | between, between):
            if topic not in partitions:
                brokers.create_topics(
                    topic, partitions=count, config=config, replication_factor=self.replication_factor
                )
                partitions[topic] = count
            elif partitions[topic] != count:
                raise StreamsError(
                    f"The internal topic '{topic}' has {partitions[topic]} partitions and '{self.application_id}' "
                    f"needs {count}: its source topics have other partitions than before, or somebody has changed that "
                    "topic. Call clean_up() to begin anew."
                )
        return partitions

    def _to_make(
        self, partitions: Mapping[str, int], between: Iterable[str]
    ) -> Iterator[tuple[str, int, dict[str, str]]]:
        """Yield the internal topics, each with its number of partitions and its settings."""
        windowed = self.windowed
        for plan in self.plans:
            tasks = plan.tasks(partitions)
            yield from ((topic, tasks, REPARTITION) for topic in plan.handovers.values())
            for store in plan.stores:
                topic = plan.changelog(store)
                usual = WINDOWED_CHANGELOG if topic in windowed else CHANGELOG | _lag(store)
                yield topic, tasks, usual | dict(store.changelog)
            if self.exactly_once:
                yield plan.transactions_topic, 1, TRANSACTIONS
            yield plan.checkpoint_topic, 1, CHECKPOINTS
        yield from ((topic, partitions[topic], REPARTITION) for topic in between)
        yield from ((topic, 1, SIDE_EFFECTS) for topic in self.side_effects)

    def _checked(self, brokers: ExternalBroker) -> tuple[dict[str, int], dict[str, int]]:
        """Return the numbers of partitions of the existing topics, and of those between the queries."""
        partitions = list_topics(brokers.connection, internal=False)
        self._check_there(partitions, brokers)
        return partitions, self.counts_between(partitions)

    def counts_between(self, partitions: Mapping[str, int]) -> dict[str, int]:
        """Return how many partitions each topic between the queries has, given those of the other topics.

        Raises:
            StreamsError: the topics of a join have different numbers of partitions.
        """
        between = self._between(partitions)
        self._check_partners({**partitions, **between})
        return between

    def check_requested(self) -> None:
        """Raise a `TopologyError` where repartition topics that meet request different numbers of partitions."""
        requested = {topic: sink.partitions for topic, (_, sink) in self._sinks().items() if sink.partitions}
        self._check_partners(requested, TopologyError)

    def _check_there(self, partitions: Mapping[str, int], brokers: ExternalBroker) -> None:
        own = set(self.internal)
        needed = [topic for plan in self.plans for topic in plan.topics if topic not in own]
        needed += self.written
        needed += [topic for plan in self.plans for topic in plan.options.handlers.dead_letter_topics]
        if missing := [topic for topic in dict.fromkeys(needed) if topic not in partitions]:
            names = ", ".join(repr(topic) for topic in missing)
            raise StreamsError(
                f"'{self.application_id}' needs topics that do not exist: {names}. "
                f"Create them before start(): broker.create_topics({names}, partitions=4).{unseen(brokers.connection)}"
            )

    def _sinks(self) -> dict[str, tuple[Plan, Sink]]:
        """Return the internal topics that sinks write, each with its sink."""
        return {plan.topic(sink): (plan, sink) for plan in self.plans for sink in plan.sinks if sink.internal}

    def _between(self, partitions: Mapping[str, int]) -> dict[str, int]:
        """Return how many partitions each topic between queries has.

        A repartition topic has the requested number; by default, that of the topics it is joined with, or else that of
        the topics that feed it. A handover topic has as many as the query that writes it has tasks.
        """
        sinks, found = self._sinks(), dict[str, int]()
        handovers = {topic: plan for plan in self.plans for topic in plan.handovers.values()}

        def most(topics: Iterable[str], asking: frozenset[str]) -> int:
            return max((count(each, asking) for each in topics if each not in asking), default=1)

        def count(topic: str, asking: frozenset[str] = frozenset()) -> int:
            asking |= {topic}
            if topic in found:
                return found[topic]
            if topic in handovers:
                return most(handovers[topic].partitioned_topics, asking)
            if topic not in sinks:
                return partitions.get(topic, 1)
            _, sink = sinks[topic]
            if sink.partitions is not None:
                return sink.partitions
            partners = [other for group, _ in self._joined() if topic in group for other in group]
            outer = [other for other in partners if other not in sinks]
            feeding = [t for p in self.plans if sink.name in p.node_names for t in p.topics]
            return most(outer or feeding, asking)

        for topic in [*sinks, *handovers]:
            found[topic] = count(topic)
        return found

    def _joined(self) -> Iterator[tuple[list[str], Node]]:
        """Yield the topics that meet in each operator with several inputs, and its node."""
        for plan in self.plans:
            for slot in plan.operators:
                together = {
                    each.operator.name
                    for each in plan.operators
                    if each is slot or (slot.shared_table and each.shared_table == slot.shared_table)
                }
                meeting = [
                    node for node in plan.nodes if (where := operator_input(node, plan)) and where.operator in together
                ]
                topics = [topic for node in meeting for topic in self._feeding(plan, node)]
                if len(set(topics)) > 1:
                    yield list(dict.fromkeys(topics)), slot.node

    def _beside(self, node: Node) -> list[Node]:
        """Return the processors that run in the same operator as a processor, including itself."""
        groups = [plan.groups[node.name] for plan in self.plans if node.name in plan.groups]
        return [member for group in groups for member in group.members]

    def _feeding(self, plan: Plan, node: Node) -> list[str]:
        """Return the topics whose records reach a node within its query."""
        entries = {entry.node.name: entry for entry in plan.inputs}
        if node.name in entries:
            entry = entries[node.name]
            return [] if entry.is_broadcast else list(entry.topics)
        before = [plan.topology[name] for name in node.parents if name in plan.node_names | entries.keys()]
        before += [plan.topology[name] for name in plan.node_names if node.table_side(plan.topology[name]) is not None]
        return [topic for parent in before for topic in self._feeding(plan, parent)]

    @property
    def meetings(self) -> list[Meeting]:
        """The groups of topics whose records with the same key have to be in the same partition."""
        own = set(self.internal)
        return [
            Meeting(f"{node.name} (written at {node.call_site})", topics, [each for each in topics if each not in own])
            for topics, node in self._partners()
        ]

    def _partners(self) -> Iterator[tuple[list[str], Node]]:
        """Yield what `_joined` yields, except processors whose topics may have different numbers of partitions."""
        for topics, node in self._joined():
            # A processor has as many tasks as its topics have partitions, each with its stores, as in Kafka Streams.
            if not node.has_own_keys or any(store for each in self._beside(node) for store in each.reads):
                yield topics, node

    def _check_partners(self, partitions: Mapping[str, int], error: type[StreamsKitError] = StreamsError) -> None:
        for topics, node in self._partners():
            counts = {topic: partitions[topic] for topic in topics if topic in partitions}
            if len(set(counts.values())) > 1:
                spelled = " and ".join(f"'{topic}' ({count} partitions)" for topic, count in counts.items())
                raise error(
                    f"{node.name} (written at {node.call_site}) brings together {spelled}: records with the same key "
                    "would be in different tasks and never meet. Create the topics with the same number of "
                    "partitions, or put .repartition(partitions=...) before that step."
                )
