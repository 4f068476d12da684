"""Copies, for queries, of global stores that processors fill: outside the tasks, like Kafka Streams' global thread."""

from collections.abc import Sequence

from streamskit.common.errors import StreamsError
from streamskit.kafka.topic_reader import TopicRecord
from streamskit.operators.global_store import GlobalStoreFiller
from streamskit.state.local import LocalStore
from streamskit.topology import Topology
from streamskit.topology.nodes import GlobalProcess, of_kind


class FilledStore:
    """Fills the copy of a global store with what the processor makes of the topic's records.

    It takes the place that the copy itself has where a changelog fills it.
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
        """Take in records of the topic.

        Args:
            partition: the partition they came from.
            records: its records, in order.
            position: the offset after the last of them.

        Raises:
            StreamsError: one of them cannot be read.
        """
        self._copy.take(partition, self._filler.changes(records), position)

    def clear(self, partition: int) -> None:
        """Empty a partition of the copy, as its topic starts over."""
        self._copy.clear(partition)

    @property
    def stopped(self) -> str:
        """Why no more updates come; empty while they do."""
        return self._copy.stopped

    @stopped.setter
    def stopped(self, why: str) -> None:
        self._copy.stopped = why


def filled_by_processors(topology: Topology) -> dict[str, list[GlobalProcess]]:
    """Return the topics from whose records processors fill global stores, each with the nodes that do so."""
    found: dict[str, list[GlobalProcess]] = {}
    for node in of_kind(GlobalProcess, topology.nodes.values()):
        for topic in topology[node.parents[0]].topic_names:
            found.setdefault(topic, []).append(node)
    return found
