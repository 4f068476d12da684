"""Topics that match the patterns of a program, among those that a broker has."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from streamskit.broker import ExternalBroker
from streamskit.common.errors import StreamsError
from streamskit.kafka.topics import TopicIdentity, list_topics
from streamskit.planning.plan import Plan
from streamskit.runtime.topics import ApplicationTopics
from streamskit.topology import Topology
from streamskit.topology.source_topics import check_read_once

KAFKAS_OWN = ("__consumer_offsets", "__transaction_state", "__share_group_state")


def matched(plans: list[Plan], brokers: ExternalBroker, topics: ApplicationTopics, topology: Topology) -> list[Plan]:
    """Return the plans with the topics that match the program's patterns; the same list if there are no patterns.

    Raises:
        StreamsError: a pattern matches no topic.
        TopologyError: a topic matches several.
    """
    if not any(plan.waits_for_topics for plan in plans):
        return plans
    there = of_others(list_topics(brokers.connection, internal=False), topics, topology)
    found = [plan.with_topics(there) for plan in plans]
    for source in (each for plan in found for each in plan.inputs):
        if not source.topics:
            raise StreamsError(
                f"{source.node.name} ({source.node.call_site}): no topic matches the pattern "
                f"'{source.node.topic_names[0]}'. Create one before start()."
            )
    return found


def widened(
    plans: list[Plan], found: Mapping[str, TopicIdentity], topics: ApplicationTopics, topology: Topology
) -> Iterator[tuple[int, Plan, dict[str, TopicIdentity]]]:
    """Yield each running plan that should read more topics: its number, the plan with them, and the new topics.

    Args:
        plans: those that run.
        found: the topics that there are now.
        topics: the application's own.
        topology: what it runs.

    Raises:
        TopologyError: a topic matches several patterns.
    """
    there = of_others({*found, *(topic for plan in plans for topic in plan.topics)}, topics, topology)
    for number, plan in enumerate(plans):
        wider = plan.with_topics(there)
        if new := [topic for topic in wider.topics if topic not in plan.topics]:
            yield number, wider, {topic: found[topic] for topic in new}


def of_others(names: Iterable[str], topics: ApplicationTopics, topology: Topology) -> list[str]:
    """Return the topics among some that are not the application's own, nor Kafka's.

    Raises:
        TopologyError: one matches several sources.
    """
    own = (*topics.internal, *KAFKAS_OWN)
    there = [name for name in names if name not in own]
    for name in there:
        check_read_once(name, [source for source in topology.sources if source.reads_topic(name)])
    return there


def is_wanted(name: str, topics: ApplicationTopics, plans: Sequence[Plan]) -> bool:
    """Return whether a topic matches a pattern of the program, and is not the application's own, nor Kafka's."""
    own = (*topics.internal, *KAFKAS_OWN)
    return name not in own and any(re.fullmatch(pattern, name) for plan in plans for pattern in plan.patterns)
