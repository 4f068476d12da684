"""`Grouping`: how records were grouped, and the repartition topic they go through if their key may have changed."""

from dataclasses import dataclass

from streamskit.dsl.graph_builder import GraphBuilder
from streamskit.dsl.repartition import Names, repartition
from streamskit.serdes import Serde
from streamskit.topology import Node


@dataclass
class Grouping:
    """What all aggregations of one grouped stream have in common.

    `rekeyed` says whether records have to be repartitioned first; `name` is the learner's, for that topic.
    """

    builder: GraphBuilder
    node: Node
    rekeyed: bool
    name: str | None
    key: Serde
    value: Serde
    _shared: tuple[Names, Node] | None = None

    def parent(self, store_name: str) -> Node:
        """Return the node that passes the records to an aggregation, after a repartition where one is needed.

        A topic that the learner named is shared by all aggregations; else each has one named after its store.
        """
        if not self.rekeyed:
            return self.node
        names = Names.of(self.builder, self.name or store_name)
        if self.name is None:
            return repartition(self.builder, self.node, names, self.key, self.value)
        if self._shared is None:
            self._shared = names, repartition(self.builder, self.node, names, self.key, self.value)
        else:
            shared, _ = self._shared
            self.builder._move_to_end([shared.filter, shared.sink])
        return self._shared[1]
