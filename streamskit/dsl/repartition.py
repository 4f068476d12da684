"""Repartitioning: through a topic, so that records with the same new key meet in one task."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from streamskit.common.names import check_name
from streamskit.dsl.graph_builder import GraphBuilder
from streamskit.serdes import Serde
from streamskit.topology import Node, RepartitionFilter, Sink, Source, StreamJoinSide, StreamTableJoin


@dataclass(frozen=True)
class Names:
    """What the parts of a repartition are called: its topic (without the application's id) and its three nodes."""

    topic: str
    filter: str
    sink: str
    source: str

    @classmethod
    def of(cls, builder: GraphBuilder, prefix: str) -> "Names":
        """Return the names that Kafka Streams gives; only those made from a learner's own name are readable."""
        topic = prefix if prefix.endswith("-repartition") else f"{prefix}-repartition"
        sink = builder._name_for("KSTREAM-SINK")
        null_filter = builder._name_for("KSTREAM-FILTER")
        source = builder._name_for("KSTREAM-SOURCE")
        if re.fullmatch(r"KSTREAM.*-[0-9]{10}", prefix):
            return cls(topic, null_filter, sink, source)
        check_name(prefix)
        return cls(topic, f"{topic}-filter", f"{topic}-sink", f"{topic}-source")


def repartition(
    builder: GraphBuilder,
    node: Node,
    names: Names,
    key: Serde | None = None,
    value: Serde | None = None,
    partitions: int | None = None,
) -> Source:
    """Send what `node` passes on through a topic of the application's own, and return the node that reads it back."""
    key, value = key or node.key, value or node.value
    builder._add(RepartitionFilter, names.filter, (node.name,), node.key, node.value)
    builder._add(Sink, names.sink, (names.filter,), key, value, topic=names.topic, internal=True, partitions=partitions)
    source: Source = builder._add(Source, names.source, (), key, value, topics=(names.topic,), internal=True)
    return source


def kept_null_keys(nodes: Mapping[str, Node]) -> list[Node]:
    """Return the nodes, where those before a left or outer join let null keys pass: such a join keeps these records."""
    writers = {node.topic: name for name, node in nodes.items() if isinstance(node, Sink) and node.internal}
    before: set[str] = set()
    to_visit = [name for name, node in nodes.items() if _keeps_null_keys(node)]
    while to_visit:
        node = nodes[to_visit.pop()]
        if node.name not in before:
            before.add(node.name)
            topics = node.topics if isinstance(node, Source) and node.internal else ()
            to_visit += [*node.parents, *(writers[topic] for topic in topics)]
    return [
        replace(node, null_keys=True) if isinstance(node, RepartitionFilter) and node.name in before else node
        for node in nodes.values()
    ]


def _keeps_null_keys(node: Node) -> bool:
    return (isinstance(node, StreamTableJoin) and node.left) or (isinstance(node, StreamJoinSide) and any(node.outer))
