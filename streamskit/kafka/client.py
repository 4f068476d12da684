"""Topics, producing and consuming: the same for every broker, through kafka-python."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from streamskit.api.client_settings import ClientSettings
from streamskit.common.names import KAFKAS_OWN, own_name, own_prefix, plain_name
from streamskit.kafka import consumer, groups, producer, topics
from streamskit.kafka.consumer import ConsumedRecord, FromOffsets
from streamskit.kafka.encoding import SerdeLike
from streamskit.kafka.records import Records
from streamskit.kafka.topic_reader import Isolation
from streamskit.kafka.topics import Topic


class KafkaClient(ABC):
    """What can be asked of a running Kafka broker, given its address."""

    @property
    @abstractmethod
    def bootstrap_servers(self) -> str:
        """Where clients connect to: "host:port"."""

    @property
    def connection(self) -> ClientSettings:
        """Where clients connect to, and what they show to be let in."""
        return ClientSettings.of(self.bootstrap_servers)

    def create_topics(
        self,
        *names: str,
        partitions: int | None = None,
        config: Mapping[str, Any] | None = None,
        replication_factor: int = -1,
    ) -> None:
        """Create topics and wait until they can be used; one that exists already as asked for is left alone.

        `partitions` is the number for each topic (None: 1 for a new topic, any for an existing one);
        `config` holds topic settings by Kafka's names; `replication_factor` is how many brokers keep each partition
        of a new topic, -1 for as many as the cluster's settings say. Raises BrokerError if a topic exists with other
        partitions or settings.

        >>> broker.create_topics("trades", "stats", partitions=4)  # doctest: +SKIP
        >>> broker.create_topics("prices", config={"cleanup.policy": "compact"})  # doctest: +SKIP

        Mirrors Kafka's `Admin.createTopics`.
        """
        topics.create_topics(self.connection, tuple(map(own_name, names)), partitions, config, replication_factor)

    def delete_topics(self, *names: str, missing_ok: bool = False) -> None:
        """Delete topics with all their records and wait until they are gone.

        Raises BrokerError for a topic that does not exist, unless `missing_ok`.

        >>> broker.delete_topics("trades", "stats")  # doctest: +SKIP

        Mirrors Kafka's `Admin.deleteTopics`.
        """
        topics.delete_topics(self.connection, tuple(map(own_name, names)), missing_ok)

    def delete_groups(self, *names: str) -> None:
        """Delete consumer groups with the offsets that they have committed; missing ones are ignored.

        A group that is created again begins where `auto.offset.reset` says. Deleting a topic is not always enough: a
        broker that has just started may keep what groups have committed in it.

        Raises BrokerError for a group that still has members after 20 seconds.

        >>> broker.delete_groups("billing", "shipping")  # doctest: +SKIP

        Mirrors Kafka's `Admin.deleteConsumerGroups`.
        """
        groups.delete_groups(self.connection, tuple(map(own_name, names)))

    def topics(self, internal: bool = False) -> dict[str, int]:
        """The number of partitions of each topic, by name; Kafka's own topics only with `internal`.

        With a prefix (STREAMSKIT_PREFIX) these are the topics that have it, by their names without it.

        >>> broker.topics()  # doctest: +SKIP
        {'trades': 4}

        Mirrors Kafka's `Admin.listTopics`.
        """
        found = topics.list_topics(self.connection, internal)
        own = {plain_name(name): count for name, count in found.items() if name.startswith(own_prefix())}
        return own | {name: count for name, count in found.items() if name.startswith(KAFKAS_OWN)}

    def describe_topic(self, name: str) -> Topic:
        """One topic's number of partitions and the settings it was given.

        Raises BrokerError if there is no such topic.

        >>> broker.describe_topic("prices").config  # doctest: +SKIP
        {'cleanup.policy': 'compact'}

        Mirrors Kafka's `Admin.describeTopics` and `Admin.describeConfigs`.
        """
        return topics.describe_topic(self.connection, own_name(name))

    def full_name(self, name: str) -> str:
        """The name of a topic, a group or an application on the broker, for tools other than streamskit.

        With a prefix (STREAMSKIT_PREFIX) it begins with that; without one it is the name itself. The methods here, and
        applications, take plain names. An application's folder also has its full name.

        >>> broker.full_name("trades")  # doctest: +SKIP
        'ann-trades'
        """
        return own_name(name)

    def end_offsets(self, topic: str, isolation: Isolation = "read_uncommitted") -> dict[int, int]:
        """The offset after the last record of each partition; `consume(…, from_offsets=…)` continues from there.

        >>> broker.end_offsets("trades")  # doctest: +SKIP
        {0: 25, 1: 31}

        Mirrors Kafka's `Consumer.endOffsets`.
        """
        return topics.offsets(self.connection, own_name(topic), isolation)[1]

    def produce(
        self, topic: str, records: Records, key: SerdeLike | None = None, value: SerdeLike | None = None
    ) -> int:
        """Send records to a topic; returns their number once the broker has acknowledged all of them.

        `records` is an iterable (a generator is never held whole) of dicts with "value" and optionally "key",
        "timestamp" (int milliseconds since 1970, or a datetime, UTC if naive), "headers" (list of (str, bytes)) and
        "partition"; or of tuples (key, value) or (key, value, timestamp); or a DataFrame with such columns, where a
        missing entry is None. A None value is a tombstone. `key` and `value` are serdes; without one, text becomes
        UTF-8, a dict or list JSON, an int a big-endian long and a float a big-endian double. A record with a key goes
        to the partition that Kafka's default partitioner (murmur2) gives it.

        Where ints are missing from a DataFrame's column, pandas makes floats of the others. Such a column is refused if
        it has no serde, as nobody knows what it was: write `df.astype({"value": "Int64"})` for whole numbers with gaps.

        Raises BrokerError with the index of the record that is wrong or was refused, and Kafka's reason; and for such a
        column.

        >>> broker.produce("trades", [("KO", {"price": 41.5}), ("PEP", {"price": 99.0})])  # doctest: +SKIP
        2

        Mirrors Kafka's `Producer.send` with acks=all and idempotence.
        """
        return producer.produce(self.connection, own_name(topic), records, key, value)

    def consume(
        self,
        topic: str,
        key: SerdeLike | None = None,
        value: SerdeLike | None = None,
        from_offsets: FromOffsets = "earliest",
        isolation: Isolation = "read_uncommitted",
    ) -> pd.DataFrame:
        """Every record of a topic up to its end at the time of the call, ordered by partition and offset.

        The columns are partition, offset, timestamp (int milliseconds since 1970), key, value and headers.
        Without serdes, `key` and `value` are text where the bytes are UTF-8 (and hold no NUL), else bytes.
        `from_offsets` is "earliest", "latest", or a dict of partition to offset, such as an earlier
        `end_offsets(topic)`. `isolation="read_committed"` leaves out the records of aborted and open
        transactions.

        Raises BrokerError if there is no such topic, or with the offset of a record that a serde cannot read.

        >>> broker.consume("trades", value=Serdes.json("price double"))  # doctest: +SKIP

        Mirrors a Kafka `Consumer` with assigned partitions and no group.
        """
        return consumer.to_frame(consumer.read(self.connection, own_name(topic), from_offsets, isolation), key, value)

    def records(
        self,
        topic: str,
        key: SerdeLike | None = None,
        value: SerdeLike | None = None,
        from_offsets: FromOffsets = "earliest",
        isolation: Isolation = "read_uncommitted",
    ) -> Iterator[ConsumedRecord]:
        """The records of `consume` one by one, for topics that do not fit in memory.

        Inside a partition they come in order; partitions are mixed.

        >>> sum(record.value["price"] for record in broker.records("trades", value=prices))  # doctest: +SKIP
        """
        return consumer.decoded(consumer.read(self.connection, own_name(topic), from_offsets, isolation), key, value)
