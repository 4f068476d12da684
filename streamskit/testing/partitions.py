"""The partitions of a test driver's topics: how many each has, and which of them a record goes to."""

import re
from collections import Counter
from collections.abc import Mapping

from streamskit.common.errors import StreamsError, TopologyError
from streamskit.kafka.topic_partition import partition_for
from streamskit.planning.plan import Plan
from streamskit.runtime.topics import ApplicationTopics, changelogs
from streamskit.testing.memory import Raw
from streamskit.topology import Topology

Declared = int | Mapping[str, int] | None
"""How many partitions topics not the application's own have: a number for all, some by name, or None for one each."""


class TopicPartitions:
    """How many partitions each topic of a test driver has, and which of them a record goes to.

    Args:
        topology: what runs.
        plans: its plans.
        declared: how many partitions topics that are not the application's own have. Its own get theirs from these, as
            when it runs live. A topic that only records name has one partition, unless a mapping says
            otherwise. With None, all topics have one, whatever `repartition` asks for.

    Raises:
        TopologyError: a number is not a number of partitions, a name is not a topic that is read or written, or the
            topics of a join request different numbers.
        StreamsError: the topics of a join would have different numbers of partitions.
    """

    def __init__(self, topology: Topology, plans: list[Plan], declared: Declared = None) -> None:
        self.counts: dict[str, int] = {}
        """How many partitions topics have, as far as their names are known before any record."""
        self._windowed: dict[str, int] = {}
        self._without_key: Counter[str] = Counter()
        if not plans:
            return
        topics = ApplicationTopics(plans[0].application_id, plans)
        if declared is None:
            topics.check_requested()
            return
        self._check_numbers(declared)
        outer = {topic for plan in plans for topic in plan.topics} - set(topics.between) | set(topics.written)
        outer |= {topic for source in topology.sources if not source.internal for topic in source.topics}
        outer |= {topic for plan in plans for topic in plan.options.handlers.dead_letter_topics}
        patterns = {pattern for plan in plans for pattern in plan.patterns}
        if not isinstance(declared, int):
            self._check_names(topology, declared, outer, patterns)
        counts = dict.fromkeys(outer, declared if isinstance(declared, int) else 1)
        counts |= {} if isinstance(declared, int) else declared
        counts |= {pattern: _most(declared, pattern) for pattern in patterns}
        counts |= topics.counts_between(counts)
        counts |= {topic: plan.tasks(counts) for plan in plans for topic in changelogs([plan])}
        self.counts = counts | dict.fromkeys(topics.side_effects, 1)
        partitioned = {plan.topic(sink) for plan in plans for sink in plan.partitioned_sinks}
        self._windowed = {topic: suffix for plan in plans for topic, suffix in plan.windowed_topics().items()
                          if topic not in partitioned}  # fmt: skip

    def count(self, topic: str) -> int:
        """Return how many partitions a topic has."""
        return self.counts.get(topic, 1)

    def tasks(self, plan: Plan) -> int:
        """Return how many tasks a plan has."""
        return plan.tasks(self.counts) if self.counts else 1

    def of(self, record: Raw) -> int:
        """Return the partition that Kafka's default partitioner gives a record, by its key without the window.

        Records without a key take turns, so that a test has the same result each time.
        """
        count = self.count(record.topic)
        if count == 1:
            return 0
        if record.key is None:
            self._without_key[record.topic] += 1
            return (self._without_key[record.topic] - 1) % count
        return partition_for(record.key[: len(record.key) - self._windowed.get(record.topic, 0)], count)

    def check(self, topic: str, partition: int) -> None:
        """Make sure that a topic has a partition.

        Raises:
            StreamsError: it does not have it.
        """
        count = self.count(topic)
        if partition not in range(count):
            numbers = "only partition is number 0" if count == 1 else f"partitions are numbered from 0 to {count - 1}"
            raise StreamsError(
                f"Topic '{topic}' has no partition {partition}: its {numbers}. TopologyTestDriver(partitions=...) says "
                "how many there are."
            )

    @staticmethod
    def _check_numbers(declared: int | Mapping[str, int]) -> None:
        numbers: list[object] = [*declared.values()] if isinstance(declared, Mapping) else [declared]
        for each in numbers:
            if isinstance(each, bool) or not isinstance(each, int) or each < 1:
                raise TopologyError(f"partitions={declared!r}: a topic has 1 partition or more, not {each!r}.")

    @staticmethod
    def _check_names(topology: Topology, declared: Mapping[str, int], known: set[str], patterns: set[str]) -> None:
        if any(not isinstance(sink.topic, str) for sink in topology.sinks):
            return  # records name their topics themselves
        for topic in declared:
            if topic not in known and not any(re.fullmatch(pattern, topic) for pattern in patterns):
                raise TopologyError(
                    f"partitions= names the topic '{topic}', which the topology neither reads nor writes; those that "
                    f"it does: {', '.join(sorted(known))}. Topics of its own get their partitions from these."
                )


def _most(declared: int | Mapping[str, int], pattern: str) -> int:
    """Return the most partitions that a topic matching a pattern has."""
    if isinstance(declared, int):
        return declared
    return max((count for topic, count in declared.items() if re.fullmatch(pattern, topic)), default=1)
