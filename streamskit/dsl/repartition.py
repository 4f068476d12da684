"""Repartitioning: through a topic of the application's own, so that records with the same new key meet in one task."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from streamskit.api.stream_partitioner import Partition, Partitioner
from streamskit.columns import type_inference
from streamskit.common.errors import TopologyError
from streamskit.common.names import check_name
from streamskit.dsl.abstract_stream import AbstractStream
from streamskit.dsl.graph_builder import GraphBuilder
from streamskit.serdes import Serde
from streamskit.topology import nodes
from streamskit.topology.nodes import Node


@dataclass(frozen=True)
class RepartitionNames:
    """What the parts of a repartition are called: its topic (without the application's id) and its three nodes."""

    topic: str
    filter: str
    sink: str
    source: str

    @classmethod
    def of(cls, graph: GraphBuilder, prefix: str) -> "RepartitionNames":
        """Return the names that Kafka Streams gives; only those made from a user's own name are readable."""
        topic = prefix if prefix.endswith("-repartition") else f"{prefix}-repartition"
        sink = graph.name_for("KSTREAM-SINK")
        null_filter = graph.name_for("KSTREAM-FILTER")
        source = graph.name_for("KSTREAM-SOURCE")
        if re.fullmatch(r"KSTREAM.*-[0-9]{10}", prefix):
            return cls(topic, null_filter, sink, source)
        check_name(prefix)
        return cls(topic, f"{topic}-filter", f"{topic}-sink", f"{topic}-source")


def repartition(
    graph: GraphBuilder,
    node: Node,
    names: RepartitionNames,
    key: Serde | None = None,
    value: Serde | None = None,
    partitions: int | None = None,
    partitioner: Partition | None = None,
) -> nodes.Source:
    """Send what `node` passes on through a topic of the application's own, and return the node that reads it back.

    Args:
        graph: the program.
        node: the node whose records are repartitioned.
        names: the names of the topic and the nodes.
        key: the serde of the keys in the topic; by default the node's.
        value: the serde of the values in the topic; by default the node's.
        partitions: how many partitions the topic has; None makes as many as the topics that feed it have.
        partitioner: chooses the partitions of each record; None leaves that to its key.
    """
    key, value = key or node.key, value or node.value
    graph.add(nodes.RepartitionFilter, names.filter, (node.name,), node.key, node.value)
    fields = {"partitions": partitions, "partitioner": partitioner}
    return graph.add_topic(names.topic, names.sink, names.source, (names.filter,), key, value, **fields)


def keep_null_keys(graph: Mapping[str, Node]) -> list[Node]:
    """Return the nodes, with those before a left or outer join letting null keys pass: such a join keeps them."""
    writers = {sink.topic: sink.name for sink in nodes.of_kind(nodes.Sink, graph.values()) if sink.internal}
    readers = {source.name: source for source in nodes.of_kind(nodes.Source, graph.values()) if source.internal}
    to_visit = [join.name for join in nodes.of_kind(nodes.StreamTableJoin, graph.values()) if join.left]
    to_visit += [side.name for side in nodes.of_kind(nodes.StreamJoinSide, graph.values()) if any(side.outer)]
    before: set[str] = set()
    while to_visit:
        name = to_visit.pop()
        if name not in before:
            before.add(name)
            topics = readers[name].topics if name in readers else ()
            to_visit += [*graph[name].parents, *(writers[topic] for topic in topics)]
    filters = [node for node in nodes.of_kind(nodes.RepartitionFilter, graph.values()) if node.name in before]
    return list({**graph, **{node.name: replace(node, null_keys=True) for node in filters}}.values())


class RepartitionableStream(AbstractStream):
    """A stream that knows whether its key may have changed, so that equal keys may be in different tasks."""

    def __init__(self, graph: GraphBuilder, node: Node, rekeyed: bool = False) -> None:
        super().__init__(graph, node)
        self._rekeyed = rekeyed
        self._repartitioned: Node | None = None

    def _at(self, node: Node, rekeyed: bool | None = None) -> Self:
        return type(self)(self._graph, node, self._rekeyed if rekeyed is None else rekeyed)

    def repartition(
        self,
        name: str | None = None,
        key: Serde | None = None,
        value: Serde | None = None,
        partitions: int | None = None,
        partitioner: Partitioner | None = None,
    ) -> Self:
        """Send the records through a topic of the application's own, so that equal keys meet in one task.

        With a partitioner, they meet where it sends them. A query then cannot tell from a key where its row is, and
        reads all partitions; or pass the partitioner to `KafkaStreams.query_metadata_for_key`.

        Args:
            name: the topic is `<application id>-<name>-repartition`.
            key: the serde of the keys in that topic; by default that of this stream.
            value: the serde of the values in that topic, likewise.
            partitions: how many partitions it has; by default as many as the topics that feed it.
            partitioner: a `StreamPartitioner`, or a plain Python function of topic, key, value and number of
                partitions, that chooses each record's partitions; by default Kafka's own, which goes by the key.

        Raises:
            TopologyError: another step has a topic of this name, `partitions` is not 1 or more, a serde is for another
                type than the records have, or the partitioner takes other arguments.

        >>> trades.select_key(lambda v: v.symbol).repartition("by-symbol", partitions=4).to("trades-by-symbol")
        >>> trades.repartition("spread", partitions=4, partitioner=lambda topic, key, value, n: value["size"] % n)

        Mirrors `KStream#repartition(Repartitioned)`, the partitioner `Repartitioned#withStreamPartitioner`; Spark's
        `repartition`.
        """
        prefix = self._graph.name_for("KSTREAM-REPARTITION") if name is None else check_name(name)
        step = self._step("repartition", prefix)
        if partitions is not None and (type(partitions) is not int or partitions < 1):
            raise TopologyError(f"{step}: partitions= has to be a whole number, 1 or more, and is {partitions!r}.")
        key, value = self._serdes(key, value, step)
        partition = type_inference.check_partitioner(partitioner, step)
        names = RepartitionNames.of(self._graph, prefix)
        return self._at(repartition(self._graph, self._node, names, key, value, partitions, partition), rekeyed=False)

    def _partitioned_by_key(self, topic_name: str | None) -> Self:
        """Return this stream, through a repartition topic if its key may have changed.

        Without a name of the user's, all joins of this stream share one topic.
        """
        if not self._rekeyed:
            return self
        names = RepartitionNames.of(self._graph, topic_name or self._name)
        if self._repartitioned is None or topic_name not in (None, self._name):
            self._repartitioned = repartition(self._graph, self._node, names)
        return self._at(self._repartitioned, rekeyed=False)
