"""Looks at the topics of running queries: are they still the same, with as many partitions?"""

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from streamskit.api.client_settings import BootstrapServers
from streamskit.kafka.client_libraries import client_log, for_librdkafka
from streamskit.kafka.topics import TopicIdentity, identities
from streamskit.runtime.periodic import Periodic

logger = logging.getLogger("streamskit")

EVERY_SECONDS = 2.0
ANSWER_SECONDS = 5.0


class TopicWatch(Periodic):
    """Asks the broker for the ids and partitions of topics every few seconds, in a thread of its own.

    A query that reads them finds out by itself before it plans a micro-batch; this is for one that has nothing to read,
    and for real-time mode, where Spark plans once for all.

    Args:
        bootstrap_servers: the broker's address.
        look: called with what was found of the topics that are there.
    """

    def __init__(
        self, bootstrap_servers: BootstrapServers, look: Callable[[Mapping[str, TopicIdentity]], None]
    ) -> None:
        super().__init__("topic watch", EVERY_SECONDS)
        self._bootstrap_servers, self._look = bootstrap_servers, look
        self._topics: list[str] = []

    def watch(self, topics: Iterable[str]) -> None:
        """Begin to look at some topics."""
        self._topics = list(topics)
        if self._topics:
            self.start()

    def turn(self) -> None:
        """Look once."""
        try:
            found = identities(self._admin, self._topics, ANSWER_SECONDS)
        except KafkaException as failure:  # the broker watch tells of a broker that is away
            logger.debug("The topics could not be looked at: %s", failure)
        else:
            self._look(found)

    @cached_property
    def _admin(self) -> AdminClient:
        return AdminClient(for_librdkafka(self._bootstrap_servers, "admin"), logger=client_log)
