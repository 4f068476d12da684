"""Deletes records that are no longer needed from an application's internal topics.

A repartition topic keeps its records forever (`retention.ms=-1`), as an application must still find them after a long
absence; what a query has read and noted as done is deleted. The changelog of a windowed store is compacted, and each
window is a key of its own: records of expired windows are deleted by stream time, not by the age of their segments,
as records from a past year would be gone at once.
"""

import logging
from collections.abc import Callable, Iterable, Mapping

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import AuthorizationError, KafkaError

from streamskit.api.client_settings import BootstrapServers
from streamskit.common.errors import BrokerError
from streamskit.kafka.access import Right, needing
from streamskit.kafka.connection import admin_client
from streamskit.runtime.periodic import Periodic
from streamskit.runtime.progress import TopicOffsets

logger = logging.getLogger("streamskit")

EVERY_SECONDS = 10.0
"""How often to check for records to delete."""

CONNECT_SECONDS = 3.0

LAST_PURGE_SECONDS = 2 * CONNECT_SECONDS
"""How long a closing application waits until records that are no longer needed are deleted."""

MOST_LEFT = 1_000
"""How many unneeded records of a partition may stay: a few do no harm, and somebody may want to look at them."""


class Purging(Periodic):
    """Keeps an application's internal topics small, in a thread of its own.

    Args:
        bootstrap_servers: the broker's address.
        done: returns how far the application has read its own topics: by topic and partition, the offset to go on from.
        windowed: the changelogs of windowed stores, each with how many milliseconds of stream time it keeps.

    Mirrors `repartition.purge.interval.ms`, and `cleanup.policy=compact,delete` of windowed changelogs.
    """

    def __init__(
        self, bootstrap_servers: BootstrapServers, done: Callable[[], TopicOffsets], windowed: Mapping[str, int]
    ) -> None:
        super().__init__("purging", EVERY_SECONDS)
        self._bootstrap_servers, self._done, self._windowed = bootstrap_servers, done, windowed
        self._deleted: dict[TopicPartition, int] = {}
        self._is_denied = False

    def turn(self) -> None:
        """Delete what can be deleted now."""
        try:
            self._purge()
        except (KafkaError, BrokerError) as failure:  # the broker is away: the next turn tries again
            if isinstance(failure.__cause__, AuthorizationError) and not self._is_denied:
                logger.warning("Records that nobody reads again stay in internal topics: %s", failure)
                self._is_denied = True
            logger.debug("Internal topics could not be purged: %s", failure)

    def _purge(self) -> None:
        read = list(self._read())
        if not read and not self._windowed:
            return
        with admin_client(self._bootstrap_servers, CONNECT_SECONDS) as admin:
            ends = dict(read) | dict(self._expired(admin))
            if ends:
                with needing(self._bootstrap_servers, *_to_delete(ends)):
                    admin.delete_records(ends)
                self._deleted |= ends

    def _read(self) -> Iterable[tuple[TopicPartition, int]]:
        """Yield where the unread records of partitions begin, if there are many read ones before them."""
        for topic, partitions in self._done().items():
            for number, offset in partitions.items():
                where = TopicPartition(topic, number)
                if offset - self._deleted.get(where, 0) >= MOST_LEFT:
                    yield where, offset

    def _expired(self, admin: KafkaAdminClient) -> Iterable[tuple[TopicPartition, int]]:
        """Yield where the rows of unexpired windows begin; the time of a row is that of its latest record."""
        partitions = [
            TopicPartition(topic["name"], each["partition_index"])
            for topic in (admin.describe_topics(list(self._windowed)) if self._windowed else ())
            for each in topic["partitions"]
        ]
        if not partitions:
            return
        latest = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.MAX_TIMESTAMP))
        oldest = {
            where: latest[where].timestamp - self._windowed[where.topic]
            for where in partitions
            if latest[where].timestamp - self._windowed[where.topic] > 0
        }
        first = admin.list_partition_offsets(oldest) if oldest else {}
        for where, found in first.items():
            if found.offset - self._deleted.get(where, 0) >= MOST_LEFT:
                yield where, found.offset


def _to_delete(ends: Iterable[TopicPartition]) -> Iterable[Right]:
    """Return the rights to delete records of partitions."""
    return [Right("Delete", "topic", topic) for topic in dict.fromkeys(where.topic for where in ends)]
