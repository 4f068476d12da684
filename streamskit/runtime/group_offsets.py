"""What an application has processed, committed to its consumer group: Kafka's own tools see how far it has come.

Spark's checkpoint says where to go on; what the group says is never read.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from streamskit.api.client_settings import BootstrapServers
from streamskit.common.errors import StreamsError
from streamskit.kafka.access import Right, no_right
from streamskit.kafka.client_libraries import client_log, for_librdkafka
from streamskit.kafka.topic_reader import LEADERLESS
from streamskit.runtime.periodic import Periodic
from streamskit.runtime.progress import TopicOffsets

logger = logging.getLogger("streamskit")

EVERY_SECONDS = 1.0
"""How often the progress since the last commit is committed."""

ANSWER_SECONDS = 5.0
"""How long the broker may take to answer."""

LAST_COMMIT_SECONDS = 2 * ANSWER_SECONDS
"""How long a closing application waits for its last offsets to be committed."""

HAS_MEMBERS = (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS)
"""How the coordinator rejects a commit from outside a group that has members."""

DENIED = (KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

Lags = dict[tuple[str, int], int]


class GroupOffsets(Periodic):
    """Commits what the queries have processed to the group `<application id>`, in a thread of its own.

    Instances of the application may be members of that group. They share its stores and commit nothing; while the group
    has members, it accepts offsets from outside only in a transaction.

    Args:
        bootstrap_servers: the broker's address.
        application_id: the name of the group.
        processed: returns how far the queries are: by topic and partition, the offset to continue from.

    Mirrors what Kafka Streams commits for each of its tasks, and the metric `records-lag`.
    """

    def __init__(
        self, bootstrap_servers: BootstrapServers, application_id: str, processed: Callable[[], TopicOffsets]
    ) -> None:
        super().__init__("group offsets", EVERY_SECONDS)
        self._servers, self._group, self._processed = bootstrap_servers, application_id, processed
        self._committed: dict[tuple[str, int], int] = {}
        self._is_denied = False

    def turn(self) -> None:
        """Commit what was processed since the last time."""
        try:
            self.commit()
        except StreamsError as failure:
            logger.debug("'%s': how far it has come is not known: %s", self._group, failure)
        except KafkaException as failure:
            if failure.args[0].code() in DENIED and not self._is_denied:
                self._is_denied = True
                needed = Right("Read", "group", self._group), Right("Write", "transactional id", self._transactional_id)
                said = no_right(self._servers, *needed)
                logger.warning("'%s': its group does not show how far it has come. %s", self._group, said)
            logger.debug("'%s': offsets could not be committed: %s", self._group, failure)

    def close(self) -> None:
        """Close the clients that were created; one that is needed later is created again."""
        for name in ("_member_of_none", "_producer", "_admin"):
            client = self.__dict__.pop(name, None)
            # An admin client closes when it is garbage-collected, and so does a producer in an older confluent-kafka.
            if hasattr(client, "close"):
                try:
                    client.close()
                except KafkaException as failure:
                    logger.debug("'%s': a client did not close: %s", self._group, failure)

    def commit(self) -> None:
        """Commit what was processed since the last time.

        Raises:
            KafkaException: the broker does not take it.
        """
        now = dict(_by_partition(self._processed()))
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

    def ends(self, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int] | None:
        """Return the offset behind the last record of each partition; None if no broker answers.

        Args:
            partitions: the topic and the number of each.
        """
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = {TopicPartition(*each): latest for each in partitions}
        if not asked:
            return {}
        for _ in range(2):
            found = self._admin.list_offsets(asked, request_timeout=ANSWER_SECONDS)
            try:
                return {(each.topic, each.partition): end.result(ANSWER_SECONDS).offset for each, end in found.items()}
            except (KafkaException, TimeoutError) as failure:
                logger.debug("'%s': where its topics end is not known: %s", self._group, failure)
                self.__dict__.pop("_admin", None)  # an admin client does not look up a partition's leader again
                if not isinstance(failure, KafkaException) or failure.args[0].code() not in LEADERLESS:
                    return None
        return None

    def lags(self, positions: Iterable[TopicOffsets]) -> list[Lags] | None:
        """Return how many records lie between each position and the ends of its topics; None if no broker answers.

        Args:
            positions: of several queries, each by topic and partition the offset to go on from.
        """
        flat = [dict(_by_partition(position)) for position in positions]
        ends = self.ends({each for position in flat for each in position})
        if ends is None:
            return None
        return [{each: max(0, ends[each] - offset) for each, offset in position.items()} for position in flat]

    def _commit_past_members(self, offsets: list[TopicPartition]) -> None:
        producer = self._producer
        producer.begin_transaction()
        try:
            producer.send_offsets_to_transaction(
                offsets, self._member_of_none.consumer_group_metadata(), ANSWER_SECONDS
            )
            producer.commit_transaction(ANSWER_SECONDS)
        except KafkaException:
            del self._producer  # whatever its state, the next producer fences it off
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
    """Delete a group with its offsets; one that has members stays, and shows its old offsets until the next commit."""
    admin = AdminClient(for_librdkafka(servers, "admin"), logger=client_log)
    for future in admin.delete_consumer_groups([application_id], request_timeout=ANSWER_SECONDS).values():
        try:
            future.result(ANSWER_SECONDS)
        except (KafkaException, TimeoutError) as failure:
            logger.debug("The group '%s' was not deleted: %s", application_id, failure)


def least(positions: Iterable[tuple[Iterable[str], TopicOffsets]]) -> dict[str, dict[int, int]]:
    """Return how far all queries that read a topic have come; topics of which one query is unknown are left out.

    Args:
        positions: of each query, its topics, and by topic and partition the offset to go on from, as far as known.

    >>> least([(["trades"], {"trades": {0: 7, 1: 5}}), (["trades", "quotes"], {"trades": {0: 6, 1: 9}})])
    {'trades': {0: 6, 1: 5}}
    """
    found: dict[str, dict[int, int]] = {}
    unknown: set[str] = set()
    for topics, position in positions:
        unknown |= set(topics) - position.keys()
        for topic, offsets in position.items():
            others = found.setdefault(topic, dict(offsets))
            others |= {number: min(offset, others.get(number, offset)) for number, offset in offsets.items()}
    return {topic: offsets for topic, offsets in found.items() if topic not in unknown}


def _by_partition(offsets: TopicOffsets) -> Iterator[tuple[tuple[str, int], int]]:
    for topic, found in offsets.items():
        for number, offset in found.items():
            yield (topic, number), offset
