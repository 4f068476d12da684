"""Consumer groups on a real broker."""

import pytest
from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition

from streamskit.broker.base import Broker
from streamskit.common.errors import BrokerError
from streamskit.kafka import groups
from streamskit.testing import wait_until

pytestmark = pytest.mark.broker


def member(broker: Broker, group: str, topic: str) -> KafkaConsumer:
    """Return a consumer of a group that has its partitions."""
    consumer = KafkaConsumer(
        topic, group_id=group, bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
    )
    # A poll that ends in the middle of a join may forget it, if what began it was news of the topic; so each is long.
    wait_until(lambda: consumer.poll(timeout_ms=2000) is not None and consumer.assignment(), "its partitions")
    return consumer


def test_a_deleted_group_begins_anew_and_one_that_is_not_there_is_fine(broker: Broker, name: str) -> None:
    broker.create_topics(name)
    broker.produce(name, [("k", "v")])
    consumer, partition = member(broker, name, name), TopicPartition(name, 0)
    consumer.commit({partition: OffsetAndMetadata(1, "", -1)})
    assert consumer.committed(partition) == 1
    consumer.close()
    broker.delete_groups(name, f"{name}-none")
    consumer = member(broker, name, name)
    assert consumer.committed(partition) is None
    consumer.close()


def test_a_group_with_members_is_told_by_name(broker: Broker, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "SETTLE_SECONDS", 0.5)
    broker.create_topics(name)
    consumer = member(broker, name, name)
    with pytest.raises(BrokerError, match=rf"not deleted: '{name}' \(NonEmptyGroupError\)\. Close the consumers"):
        broker.delete_groups(name)
    consumer.close()
    broker.delete_groups(name)
