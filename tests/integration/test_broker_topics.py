"""Topics on a real broker."""

import pytest
from kafka import KafkaConsumer

from streamskit.broker.base import Broker
from streamskit.common.errors import BrokerError

pytestmark = pytest.mark.broker


def test_created_topics_can_be_used_at_once(broker: Broker, name: str) -> None:
    broker.create_topics(f"{name}-a", f"{name}-b", partitions=3)
    assert broker.produce(f"{name}-a", [("k", "v")]) == 1
    assert broker.topics()[f"{name}-a"] == broker.topics()[f"{name}-b"] == 3


def test_a_new_topic_has_one_partition_unless_told_otherwise(broker: Broker, name: str) -> None:
    broker.create_topics(name)
    assert broker.describe_topic(name).partitions == 1


def test_the_settings_of_a_topic_are_kept_and_told(broker: Broker, name: str) -> None:
    broker.create_topics(name, config={"cleanup.policy": "compact", "retention.ms": 60_000, "preallocate": True})
    expected = {"cleanup.policy": "compact", "retention.ms": "60000", "preallocate": "true"}
    assert broker.describe_topic(name).config == expected


def test_a_topic_that_is_already_as_asked_for_is_left_alone(broker: Broker, name: str) -> None:
    broker.create_topics(name, partitions=2, config={"retention.ms": 60_000})
    broker.produce(name, [("k", "v")])
    broker.create_topics(name, partitions=2, config={"retention.ms": 60_000})
    broker.create_topics(name)
    assert len(broker.consume(name)) == 1


def test_an_existing_topic_with_other_partitions_is_refused_with_both_counts(broker: Broker, name: str) -> None:
    broker.create_topics(name, partitions=2)
    with pytest.raises(BrokerError, match=r"exists with 2 partition\(s\), and 4 were asked for"):
        broker.create_topics(name, partitions=4)


@pytest.mark.parametrize("existing", [True, False])
def test_topics_whose_names_differ_by_a_period_alone_are_refused_with_both_names(
    broker: Broker, name: str, existing: bool
) -> None:
    if existing:
        broker.create_topics(f"{name}-a.b")
    with pytest.raises(BrokerError, match=rf"'{name}-a_b' cannot be created beside '{name}-a\.b': .*another name"):
        broker.create_topics(f"{name}-a.b", f"{name}-a_b")
    assert (f"{name}-a.b" in broker.topics()) == existing


def test_an_existing_topic_with_other_settings_is_refused(broker: Broker, name: str) -> None:
    broker.create_topics(name)
    with pytest.raises(BrokerError, match=r"exists with cleanup\.policy=delete, and compact was asked for"):
        broker.create_topics(name, config={"cleanup.policy": "compact"})


def test_an_existing_topic_is_not_asked_for_with_a_setting_that_no_topic_has(broker: Broker, name: str) -> None:
    broker.create_topics(name, config={"cleanup.policy": "compact,delete"})
    with pytest.raises(BrokerError, match=r"exists\. There is no setting of a topic 'clenup\.policy': did you mean"):
        broker.create_topics(name, config={"clenup.policy": "compact"})
    broker.create_topics(name, config={"cleanup.policy": "delete,compact"})


@pytest.mark.parametrize(
    ("topic", "config", "words"),
    [
        ("no spaces", {}, "no spaces"),
        ("t", {"cleanup.policy": "sometimes"}, "sometimes"),
        ("t", {"no.such": 1}, "no.such"),
    ],
)
def test_what_kafka_refuses_is_told_in_its_own_words(
    broker: Broker, name: str, topic: str, config: dict[str, str], words: str
) -> None:
    with pytest.raises(BrokerError, match="Kafka did not create topic") as refused:
        broker.create_topics(f"{name}-{topic}", config=config)
    assert words in str(refused.value)


@pytest.mark.parametrize("partitions", [0, -1, "4", 1.5, True])
def test_a_number_of_partitions_is_a_positive_int(broker: Broker, name: str, partitions: int) -> None:
    with pytest.raises(BrokerError, match="must be 1 or more"):
        broker.create_topics(name, partitions=partitions)


def test_a_list_instead_of_names_is_refused(broker: Broker) -> None:
    with pytest.raises(BrokerError, match="each name by itself"):
        broker.create_topics(["a", "b"])  # type: ignore[arg-type]


def test_a_deleted_topic_is_gone_and_can_be_made_anew(broker: Broker, name: str) -> None:
    broker.create_topics(name, partitions=2)
    broker.produce(name, [("k", "v")])
    broker.delete_topics(name)
    assert name not in broker.topics()
    broker.create_topics(name, partitions=3)
    assert broker.consume(name).empty


def test_deleting_an_unknown_topic_is_refused_unless_told_otherwise(broker: Broker, name: str) -> None:
    with pytest.raises(BrokerError, match=f"has no topic '{name}'"):
        broker.delete_topics(name)
    broker.delete_topics(name, missing_ok=True)


def test_kafkas_own_topics_are_listed_only_on_request(broker: Broker, name: str) -> None:
    broker.create_topics(name)
    broker.produce(name, [("k", "v")])
    address = broker.bootstrap_servers
    with KafkaConsumer(name, bootstrap_servers=address, group_id=name, auto_offset_reset="earliest") as consumer:
        next(consumer)
        consumer.commit()
    assert "__consumer_offsets" not in broker.topics()
    assert broker.topics(internal=True)["__consumer_offsets"] == 4


def test_topics_are_never_created_by_accident(broker: Broker, name: str) -> None:
    with pytest.raises(BrokerError, match="Create it first"):
        broker.consume(name)
    assert name not in broker.topics()
