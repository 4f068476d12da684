"""Checks the topics of running queries: whether they are the same, with as many partitions, or there are new ones."""

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
    for real-time mode, where Spark plans once for all, and for topics that are written.

    Args:
        bootstrap_servers: the broker's address.
        look: called with the topics that exist, and what was found about each.

    Mirrors what a consumer with a pattern does every `metadata.max.age.ms`, five minutes by default.
    """

    def __init__(
        self, bootstrap_servers: BootstrapServers, look: Callable[[Mapping[str, TopicIdentity]], None]
    ) -> None:
        super().__init__("topic watch", EVERY_SECONDS)
        self._bootstrap_servers, self._look = bootstrap_servers, look
        self._topics: list[str] = []
        self._wanted: Callable[[str], bool] | None = None

    def watch(self, topics: Iterable[str], wanted: Callable[[str], bool] | None = None) -> None:
        """Begin to look at some topics.

        Args:
            topics: their names.
            wanted: returns for the name of any other topic whether to watch it as well; None for no others.
        """
        self._topics, self._wanted = list(topics), wanted
        if self._topics:
            self.start()

    def turn(self) -> None:
        """Look once."""
        try:
            if self._wanted is not None:
                there = self._admin.list_topics(timeout=ANSWER_SECONDS).topics
                self._topics += [name for name in there if name not in self._topics and self._wanted(name)]
            found = identities(self._admin, self._topics, ANSWER_SECONDS)
        except KafkaException as failure:  # the broker watch reports a broker that is away
            logger.debug("The topics could not be looked at: %s", failure)
        else:
            self._look(found)

    def close(self) -> None:
        """Drop the client: it closes when nothing refers to it any more."""
        self.__dict__.pop("_admin", None)

    @cached_property
    def _admin(self) -> AdminClient:
        return AdminClient(for_librdkafka(self._bootstrap_servers, "admin"), logger=client_log)
