"""What an application has processed, committed to its consumer group: Kafka's own tools see how far it has come.

Spark's checkpoint says where to go on; what the group says is never read.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from streamskit.api.client_settings import BootstrapServers
from streamskit.kafka.access import Right, no_right
from streamskit.kafka.client_libraries import client_log, for_librdkafka
from streamskit.runtime.periodic import Periodic

logger = logging.getLogger("streamskit")

EVERY_SECONDS = 1.0
"""How often is committed what was processed since."""

ANSWER_SECONDS = 5.0
"""How long the broker may take to answer."""

LAST_COMMIT_SECONDS = 2 * ANSWER_SECONDS
"""How long the end of an application waits until its last offsets are committed."""

HAS_MEMBERS = (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS)
"""What the coordinator says to a commit by somebody who is no member of a group that has some."""

DENIED = (KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

Offsets = Mapping[str, Mapping[int, int]]


class GroupOffsets(Periodic):
    """Commits what the queries have processed to the group `<application id>`, in a thread of its own.

    Instances of the application may be members of that group. They share its stores and commit nothing, so that the
    group takes offsets from others in a transaction only.

    Args:
        bootstrap_servers: the broker's address.
        application_id: the name of the group.
        processed: asks how far the queries are: by topic and partition, the offset to go on from.

    Mirrors what Kafka Streams commits for each of its tasks, and the metric `records-lag`.
    """

    def __init__(
        self, bootstrap_servers: BootstrapServers, application_id: str, processed: Callable[[], Offsets]
    ) -> None:
        super().__init__("group offsets", EVERY_SECONDS)
        self._servers, self._group, self._processed = bootstrap_servers, application_id, processed
        self._committed: dict[tuple[str, int], int] = {}
        self._is_denied = False

    def turn(self) -> None:
        """Commit what was processed since the last time."""
        try:
            self.commit()
        except KafkaException as failure:
            if failure.args[0].code() in DENIED and not self._is_denied:
                self._is_denied = True
                needed = Right("Read", "group", self._group), Right("Write", "transactional id", self._transactional_id)
                said = no_right(self._servers, *needed)
                logger.warning("'%s': its group does not show how far it has come. %s", self._group, said)
            logger.debug("'%s': offsets could not be committed: %s", self._group, failure)

    def commit(self) -> None:
        """Commit what was processed since the last time.

        Raises:
            KafkaException: the broker does not take it.
        """
        now = {
            (topic, number): offset
            for topic, partitions in self._processed().items()
            for number, offset in partitions.items()
        }
        news = [TopicPartition(*where, offset) for where, offset in now.items() if self._committed.get(where) != offset]
        if not news:
            return
        try:
            self._member_of_none.commit(offsets=news, asynchronous=False)
        except KafkaException as failure:
            if failure.args[0].code() not in HAS_MEMBERS:
                raise
            self._commit_past_members(news)
        self._committed = now

    def lag(self, offsets: Offsets) -> dict[tuple[str, int], int] | None:
        """Return how many records lie between offsets and the ends of their partitions; None if no broker answers.

        Args:
            offsets: by topic and partition, the offset to go on from.
        """
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = {TopicPartition(topic, number): latest for topic, found in offsets.items() for number in found}
        if not asked:
            return {}
        lags = {}
        for where, future in self._admin.list_offsets(asked, request_timeout=ANSWER_SECONDS).items():
            try:
                end = future.result(ANSWER_SECONDS).offset
            except (KafkaException, TimeoutError):
                return None
            lags[where.topic, where.partition] = max(0, end - offsets[where.topic][where.partition])
        return lags

    def _commit_past_members(self, offsets: list[TopicPartition]) -> None:
        producer = self._producer
        producer.begin_transaction()
        try:
            producer.send_offsets_to_transaction(
                offsets, self._member_of_none.consumer_group_metadata(), ANSWER_SECONDS
            )
            producer.commit_transaction(ANSWER_SECONDS)
        except KafkaException:
            del self._producer  # whatever state it is in, the next one fences it off
            raise

    @cached_property
    def _member_of_none(self) -> Consumer:
        settings = {
            "group.id": self._group,
            "enable.auto.commit": False,
            "socket.timeout.ms": int(ANSWER_SECONDS * 1000),
        }
        return Consumer(for_librdkafka(self._servers, "consumer") | settings, logger=client_log)

    @cached_property
    def _producer(self) -> Producer:
        settings = {
            "transactional.id": self._transactional_id,
            "transaction.timeout.ms": int(2 * ANSWER_SECONDS * 1000),
        }
        producer = Producer(for_librdkafka(self._servers, "producer") | settings, logger=client_log)
        producer.init_transactions(ANSWER_SECONDS)
        return producer

    @cached_property
    def _admin(self) -> AdminClient:
        return AdminClient(for_librdkafka(self._servers, "admin"), logger=client_log)

    @property
    def _transactional_id(self) -> str:
        return f"{self._group}-group-offsets"


def forget(servers: BootstrapServers, application_id: str) -> None:
    """Delete what a group says, unless it has members: then it goes on saying it until the next commit."""
    admin = AdminClient(for_librdkafka(servers, "admin"), logger=client_log)
    for future in admin.delete_consumer_groups([application_id], request_timeout=ANSWER_SECONDS).values():
        try:
            future.result(ANSWER_SECONDS)
        except (KafkaException, TimeoutError) as failure:
            logger.debug("The group '%s' was not deleted: %s", application_id, failure)


def total_lag(lags: Mapping[tuple[str, int], int] | None, topics: Iterable[str]) -> int | None:
    """Return the lag of topics together; None where that of none of their partitions is known.

    >>> total_lag({("trades", 0): 2, ("trades", 1): 3, ("quotes", 0): 9}, ["trades"])
    5
    """
    wanted = set(topics)
    found = [lag for (topic, _), lag in (lags or {}).items() if topic in wanted]
    return sum(found) if found else None
