"""Looks at the topics of running queries: are they still the same, with as many partitions?"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from streamskit.kafka.topic_reader import client_log
from streamskit.kafka.topics import TopicIdentity, identities

logger = logging.getLogger("streamskit")

EVERY_SECONDS = 2.0
ANSWER_SECONDS = 5.0


class TopicWatch:
    """Asks the broker for the ids and partitions of topics every few seconds, in a thread of its own.

    A query that reads them finds out by itself before it plans a micro-batch; this is for one that has nothing to read,
    and for real-time mode, where Spark plans once for all.

    Args:
        bootstrap_servers: the broker's address.
        look: called with what was found of the topics that are there.
    """

    def __init__(self, bootstrap_servers: str, look: Callable[[Mapping[str, TopicIdentity]], None]) -> None:
        self._bootstrap_servers, self._look = bootstrap_servers, look
        self._topics: list[str] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="streamskit: topic watch", daemon=True)

    def start(self, topics: Iterable[str]) -> None:
        """Begin to look at some topics."""
        self._topics = list(topics)
        if self._topics:
            self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopping.set()

    @property
    def lives(self) -> bool:
        """Whether its thread does what it is for; also before it is started, and after it was told to stop."""
        return self._thread.ident is None or self._thread.is_alive() or self._stopping.is_set()

    def _run(self) -> None:
        admin = AdminClient({"bootstrap.servers": self._bootstrap_servers}, logger=client_log)
        while not self._stopping.wait(EVERY_SECONDS):
            try:
                found = identities(admin, self._topics, ANSWER_SECONDS)
            except KafkaException as failure:  # the broker watch tells of a broker that is away
                logger.debug("The topics could not be looked at: %s", failure)
                continue
            self._look(found)
