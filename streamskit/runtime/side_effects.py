"""Brings records to a user's `peek`, `foreach` and `print` functions, in the process that started the application.

Spark's operators run elsewhere, where a notebook's variables are copies and nobody sees what is printed. So the records
of such a step travel on a topic, and a thread here calls the function for each.
"""

import threading
from collections.abc import Callable, Mapping

from streamskit.common.errors import StreamsError
from streamskit.kafka.topic_partition import TopicPartition
from streamskit.kafka.topic_reader import Offsets, TopicReader, TopicRecord, topic_record
from streamskit.topology.nodes import SideEffect


class SideEffects:
    """Calls functions for the records of their topics, in a thread of its own, from now on.

    Args:
        bootstrap_servers: the broker's address.
        nodes: for each topic the step whose function to call.
        failed: called with the step and its exception; returns whether to call the function again for that record.
        lost: called with the reason when the topics cannot be read any more.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        nodes: Mapping[str, SideEffect],
        failed: Callable[[SideEffect, Exception], bool],
        lost: Callable[[StreamsError], None],
    ) -> None:
        self._nodes, self._failed = nodes, failed
        self._stopping = threading.Event()
        self._reader = TopicReader(bootstrap_servers, self._take, "The calls of functions", topic_record, failed=lost)

    def start(self) -> None:
        """Begin with the records that come from now on.

        Raises:
            StreamsError: the broker does not say where the topics end.
        """
        if self._nodes:
            self._reader.start(self._nodes, from_now=True)

    def stop(self) -> None:
        """Stop calling."""
        self._stopping.set()
        self._reader.stop()

    def wait_for(self, offsets: Offsets, deadline: float, check: Callable[[], None] = lambda: None) -> None:
        """Wait until the functions were called for all records before the given offsets.

        Raises:
            StreamsError: they were not by the deadline, or reading has failed.
        """
        self._reader.wait_for(offsets, deadline, check)

    def _take(self, where: TopicPartition, records: list[TopicRecord], offsets: list[int], position: int) -> None:
        for record in records:
            while not self._stopping.is_set() and not self._call(self._nodes[where.topic], record):
                pass

    def _call(self, node: SideEffect, record: TopicRecord) -> bool:
        """Call the function for a record, and return whether that is done."""
        try:
            node.action(node.key.deserialize(record.key), node.value.deserialize(record.value))
        except Exception as failure:
            if not self._failed(node, failure):
                self.stop()
            return False
        return True
