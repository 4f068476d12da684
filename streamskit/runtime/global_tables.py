"""The records of global tables' topics on their way into stores: which of them are dropped, and how many."""

from collections import Counter
from collections.abc import Sequence

from streamskit.api.error_handlers import Handlers, fails
from streamskit.planning.plan import Plan
from streamskit.runtime.topics import global_tables
from streamskit.topology import Topology


class GlobalTableRecords:
    """Drops the records that have no place in a global table, and counts them by node.

    A record without a key is dropped, and one that cannot be read, if the deserialization handler goes on. Those of
    topics that queries read, too, are counted there.

    Args:
        topology: what runs.
        plans: its queries.
        handlers: decide about records that fail.

    Mirrors `org.apache.kafka.streams.processor.internals.GlobalStateUpdateTask`.
    """

    def __init__(self, topology: Topology, plans: Sequence[Plan], handlers: Handlers) -> None:
        self._nodes = {topic: nodes[0] for topic, nodes in global_tables(topology).items()}
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
        if key is None or not self._goes_on:
            return key is not None
        node = self._nodes[topic]
        try:
            node.key.deserialize(key)
            node.value.deserialize(value)
        except Exception:  # a serde may be a user's own
            return False
        return True
