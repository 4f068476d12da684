"""From a sub-topology to one streaming DataFrame whose rows are Kafka records to write."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamskit.errors import TopologyError
from streamskit.lowering.aggregation import aggregate
from streamskit.lowering.records import Record, changelog_key, columns_of, decode, output, to_frame
from streamskit.lowering.stateless import transform
from streamskit.serdes import TimeWindowedSerde
from streamskit.topology import Aggregate, Node, Sink, Source, Store, Topology

Read = Callable[[Source], DataFrame]
"""How a plan gets its input: a function from a source to its raw records, as Spark's Kafka source gives them."""


@dataclass(frozen=True)
class Plan:
    """How one sub-topology runs: a single Spark streaming query."""

    topology: Topology
    nodes: tuple[Node, ...]
    number: int
    application_id: str

    @property
    def sources(self) -> list[Source]:
        """The nodes that read topics."""
        return [node for node in self.nodes if isinstance(node, Source)]

    @property
    def sinks(self) -> list[Sink]:
        """The nodes that write topics."""
        return [node for node in self.nodes if isinstance(node, Sink)]

    @property
    def stores(self) -> list[Store]:
        """The stores whose updates this query writes to a changelog."""
        return [store for node in self.nodes for store in node.stores]

    @property
    def output_mode(self) -> str:
        """Spark's output mode: a table's updates as they happen, a stream's records once."""
        return "update" if self.stores else "append"

    def changelog(self, store: Store) -> str:
        """Return the name of the topic that holds a store's updates, as Kafka Streams names it."""
        return f"{self.application_id}-{store.name}-changelog"

    def tasks(self, partitions: Mapping[str, int]) -> int:
        """Return how many tasks the query has, given the partitions of each topic: one for each it reads."""
        return max(partitions[topic] for source in self.sources for topic in source.topics)

    def windowed_topics(self) -> dict[str, int]:
        """Return the topics whose keys end in bytes that are not the key, and how many those are.

        Records with the same inner key have to meet in one partition, whatever their window.
        """
        sinks = {sink.topic: 8 for sink in self.sinks if isinstance(sink.key, TimeWindowedSerde)}
        return sinks | {self.changelog(store): 12 for store in self.stores if store.windows}

    def outputs(self, read: Read) -> DataFrame:
        """Return the streaming DataFrame of this query: one row for each record to write.

        Args:
            read: gives the raw records of a source.

        Raises:
            TopologyError: Spark cannot run this shape of program in one query.
        """
        source, *others = self.sources
        if others:
            raise TopologyError(
                f"{others[0].name} ({others[0].written_at}): two sources that meet cannot run on Spark yet."
            )
        node, frame = self._follow(source, decode(read(source), source))
        rows = self._rows(node, columns_of(frame))
        if not rows:
            raise TopologyError(
                f"{node.name} ({node.written_at}): nothing is made of its records. End it in .to('a-topic')."
            )
        if len(rows) == 1:
            return frame.select(rows[0].alias("row")).where("row is not null").select("row.*")
        # All outputs of a record leave in one pass over it, whatever their number.
        return frame.select(F.explode(F.array(*rows)).alias("row")).where("row is not null").select("row.*")

    def _follow(self, node: Node, frame: DataFrame) -> tuple[Node, DataFrame]:
        """Walk down to the last node with state, applying each step to the whole frame."""
        while (child := self._towards_state(node)) is not None:
            if isinstance(child, Aggregate):
                frame = aggregate(child, frame, node)
            else:
                frame = to_frame(frame, transform(child, columns_of(frame), node))
            node = child
        return node, frame

    def _towards_state(self, node: Node) -> Node | None:
        """Return the child that leads to a node with state, if any."""
        children = self.topology.children(node)
        leading = [child for child in children if self._keeps_state(child)]
        if leading and len(children) > 1:
            wrong = leading[1] if len(leading) > 1 else leading[0]
            raise TopologyError(
                f"{wrong.name} ({wrong.written_at}): {node.name} feeds both this and "
                f"{', '.join(child.name for child in children if child is not wrong)}, and one Spark query cannot keep "
                "state on one branch only yet. Read the topic in an application of its own for each."
            )
        return leading[0] if leading else None

    def _keeps_state(self, node: Node) -> bool:
        return bool(node.stores) or any(self._keeps_state(child) for child in self.topology.children(node))

    def _rows(self, node: Node, record: Record) -> list[Column]:
        """Return the rows that a record at `node` becomes: its store's update, and what its children write."""
        rows = [
            output(record, self.changelog(store), changelog_key(record, store), store.value.to_bytes(record.value))
            for store in node.stores
        ]
        for child in self.topology.children(node):
            if isinstance(child, Sink):
                rows.append(
                    output(record, child.topic, child.key.to_bytes(record.key), child.value.to_bytes(record.value))
                )
            else:
                rows += self._rows(child, transform(child, record, node))
        return rows


def plan(topology: Topology, application_id: str) -> list[Plan]:
    """Return one plan for each sub-topology, in order."""
    return [
        Plan(topology, tuple(nodes), number, application_id) for number, nodes in enumerate(topology.sub_topologies())
    ]
