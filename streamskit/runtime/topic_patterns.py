"""Topics that match the patterns of a program, among those that a broker has."""

import re
from collections.abc import Iterable, Sequence

from streamskit.planning.plan import Plan
from streamskit.runtime.topics import ApplicationTopics
from streamskit.topology import Topology
from streamskit.topology.wiring import check_read_once

KAFKAS_OWN = ("__consumer_offsets", "__transaction_state", "__share_group_state")


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
