"""Copies of global stores that processors fill, for queries: outside of the tasks, as Kafka Streams' global thread."""

from collections.abc import Sequence

from streamskit.common.errors import StreamsError
from streamskit.kafka.topic_reader import TopicRecord
from streamskit.operators.global_store import GlobalStoreFiller
from streamskit.state.local import LocalStore
from streamskit.topology import Topology
from streamskit.topology.nodes import GlobalProcess, of_kind


class FilledStore:
    """What fills the copy of a global store: it gives the copy what the processor makes of the topic's records.

    It stands in for the copy where that is filled from its changelog.
    """

    def __init__(self, node: GlobalProcess, application_id: str, copy: LocalStore) -> None:
        if node.store is None:
            raise StreamsError(f"{node.name}: a global store's processor without its store.")
        self._copy, self.name = copy, copy.name
        place = f"{node.name} ({node.call_site})"
        self._filler = GlobalStoreFiller(
            node.name, place, application_id, node.supplier, node.store, node.key, node.value
        )  # fmt: skip

    def take(self, partition: int, records: Sequence[TopicRecord], position: int = 0) -> None:
        """Take records of the topic in.

        Args:
            partition: the partition they came from.
            records: what lies there, in order.
            position: the offset after the last of them.

        Raises:
            StreamsError: one of them cannot be read.
        """
        self._copy.take(partition, self._filler.changes(records), position)

    def clear(self, partition: int) -> None:
        """Empty a partition of the copy: its topic begins anew."""
        self._copy.clear(partition)

    @property
    def stopped(self) -> str:
        """Why no more updates come; empty while they do."""
        return self._copy.stopped

    @stopped.setter
    def stopped(self, why: str) -> None:
        self._copy.stopped = why


def filled_by_processors(topology: Topology) -> dict[str, list[GlobalProcess]]:
    """Return the topics whose records processors make global stores of, each with the nodes that do."""
    found: dict[str, list[GlobalProcess]] = {}
    for node in of_kind(GlobalProcess, topology.nodes.values()):
        for topic in topology[node.parents[0]].topic_names:
            found.setdefault(topic, []).append(node)
    return found
