"""The topics of an application: those it needs, those it makes, and how many partitions each has."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from streamskit.broker import ExternalBroker
from streamskit.common.errors import StreamsError
from streamskit.planning.plan import Plan
from streamskit.planning.planned_operators import operator_input
from streamskit.topology import Node, Sink, StreamTableJoin

CHANGELOG = {"cleanup.policy": "compact", "segment.bytes": str(16 * 1024 * 1024)}
BETWEEN = {"cleanup.policy": "delete", "retention.ms": "-1"}
MARKS = {"cleanup.policy": "compact", "segment.bytes": str(1024 * 1024)}
CALLS = {"cleanup.policy": "delete", "retention.ms": str(60 * 60 * 1000)}


@dataclass(frozen=True)
class ApplicationTopics:
    """The topics of an application with the given plans."""

    application_id: str
    plans: list[Plan]
    exactly_once: bool = False

    @property
    def internal(self) -> list[str]:
        """Every topic that belongs to the application: between its queries, changelogs, calls, and marks."""
        between = [*self._sinks(), *(topic for plan in self.plans for topic in plan.handovers.values())]
        changelogs = [plan.changelog(store) for plan in self.plans for store in plan.stores]
        marks = [plan.transactions_topic for plan in self.plans]
        return list(dict.fromkeys([*between, *changelogs, *self.calls, *marks]))

    @property
    def calls(self) -> list[str]:
        """The topics on which records travel to a learner's functions."""
        return [plan.calls_topic(node) for plan in self.plans for node in plan.side_effects]

    def partitions(self, brokers: ExternalBroker) -> dict[str, int]:
        """Check that all topics are there, and return how many partitions each has, and the internal ones will have.

        Raises:
            StreamsError: a topic is missing, or the topics of a join have different numbers of partitions.
        """
        there, wanted = self._checked(brokers)
        return there | wanted

    def prepare(self, brokers: ExternalBroker) -> dict[str, int]:
        """Make the internal topics, and return how many partitions each topic has.

        Raises:
            StreamsError: as `partitions`; or an internal topic is there with another number of partitions.
        """
        partitions, wanted = self._checked(brokers)
        for plan in self.plans:
            tasks = plan.tasks(partitions | wanted)
            for topic in plan.handovers.values():
                self._make(brokers, partitions, topic, tasks, BETWEEN)
            for store in plan.stores:
                self._make(brokers, partitions, plan.changelog(store), tasks, CHANGELOG)
        for topic, count in wanted.items():
            self._make(brokers, partitions, topic, count, BETWEEN)
        for topic in self.calls:
            self._make(brokers, partitions, topic, 1, CALLS)
        for plan in self.plans if self.exactly_once else ():
            self._make(brokers, partitions, plan.transactions_topic, 1, MARKS)
        return partitions

    def _checked(self, brokers: ExternalBroker) -> tuple[dict[str, int], dict[str, int]]:
        """Return the partitions of the topics that are there, and of those between the queries."""
        partitions = dict(brokers.topics())
        self._check_there(partitions)
        wanted = self._between(partitions)
        self._check_partners(partitions | wanted)
        return partitions, wanted

    def _make(
        self, brokers: ExternalBroker, partitions: dict[str, int], topic: str, count: int, config: dict[str, str]
    ) -> None:
        if topic not in partitions:
            brokers.create_topics(topic, partitions=count, config=config)
            partitions[topic] = count
        elif partitions[topic] != count:
            raise StreamsError(
                f"The internal topic '{topic}' has {partitions[topic]} partitions and '{self.application_id}' needs "
                f"{count}: its source topics have changed. Call clean_up() to begin anew."
            )

    def _check_there(self, partitions: Mapping[str, int]) -> None:
        own = set(self.internal)
        needed = [topic for plan in self.plans for topic in plan.topics if topic not in own]
        needed += [sink.topic for plan in self.plans for sink in plan.sinks
                   if isinstance(sink.topic, str) and not sink.internal]  # fmt: skip
        needed += [topic for plan in self.plans for topic in plan.options.handlers.dead_letter_topics]
        if missing := [topic for topic in dict.fromkeys(needed) if topic not in partitions]:
            names = ", ".join(repr(topic) for topic in missing)
            raise StreamsError(
                f"'{self.application_id}' needs topics that are not there: {names}. "
                f"Create them before start(): broker.create_topics({names}, partitions=4)."
            )

    def _sinks(self) -> dict[str, tuple[Plan, Sink]]:
        """Return the internal topics that sinks write, each with its sink."""
        return {plan.topic(sink): (plan, sink) for plan in self.plans for sink in plan.sinks if sink.internal}

    def _between(self, partitions: Mapping[str, int]) -> dict[str, int]:
        """Return how many partitions each topic between queries has.

        A repartition topic has as many as it was asked to have; else as the topics it is joined with; else as those
        that feed it. A handover topic has as many as the query that writes it has tasks.
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

    def _feeding(self, plan: Plan, node: Node) -> list[str]:
        """Return the topics whose records reach a node within its query."""
        entries = {entry.node.name: entry for entry in plan.inputs}
        if node.name in entries:
            entry = entries[node.name]
            return [] if entry.is_broadcast else list(entry.topics)
        before = [plan.topology[name] for name in node.parents if name in plan.node_names | entries.keys()]
        if isinstance(node, StreamTableJoin) and node.table in plan.node_names:
            before.append(plan.topology[node.table])
        return [topic for parent in before for topic in self._feeding(plan, parent)]

    def _check_partners(self, partitions: Mapping[str, int]) -> None:
        for topics, node in self._joined():
            if len({partitions[topic] for topic in topics}) > 1:
                spelled = " and ".join(f"'{topic}' ({partitions[topic]} partitions)" for topic in topics)
                raise StreamsError(
                    f"{node.name} (written at {node.call_site}) brings together {spelled}: records with the same key "
                    "would be in different tasks and never meet. Create the topics with the same number of "
                    "partitions, or put .repartition(partitions=...) before the join."
                )
