"""Records of global tables and stores on their way into copies: which of them are dropped, and how many."""

from collections import Counter
from collections.abc import Sequence

from streamskit.api.error_handlers import Handlers, fails
from streamskit.operators.global_store import can_be_read
from streamskit.planning.plan import Plan
from streamskit.runtime.global_stores import filled_by_processors
from streamskit.runtime.topics import global_tables
from streamskit.topology import Topology
from streamskit.topology.nodes import GlobalProcess, GlobalTableSource


class GlobalRecords:
    """Drops the records that have no place in a global table or store, and counts them by node.

    A record that cannot be read is dropped if the deserialization handler continues, and so is one without a key, which
    only a store's processor accepts. Records of topics that queries read as well are counted by the queries.

    Args:
        topology: what runs.
        plans: its queries.
        handlers: decide about records that fail.

    Mirrors `org.apache.kafka.streams.processor.internals.GlobalStateUpdateTask`.
    """

    def __init__(self, topology: Topology, plans: Sequence[Plan], handlers: Handlers) -> None:
        self._nodes: dict[str, GlobalTableSource | GlobalProcess] = {
            **{topic: nodes[0] for topic, nodes in filled_by_processors(topology).items()},
            **{topic: nodes[0] for topic, nodes in global_tables(topology).items()},
        }
        self._counted_elsewhere = {topic for plan in plans for topic in plan.broadcast_topics}
        self._goes_on = not fails(handlers.deserialization)
        self.dropped: Counter[str] = Counter()
        """How many records each node has dropped, since the application was started."""

    def keep(self, topic: str, key: bytes | None, value: bytes | None) -> bool:
        """Return whether a record is to be taken into the stores of its topic; count it if not."""
        node = self._nodes.get(topic)
        if node is None or self._is_readable(topic, key, value):
            return True
        if topic not in self._counted_elsewhere:
            self.dropped[node.name] += 1
        return False

    def _is_readable(self, topic: str, key: bytes | None, value: bytes | None) -> bool:
        node = self._nodes[topic]
        if key is None and node.is_table:
            return False
        return not self._goes_on or can_be_read(key, value, node.key, node.value)
