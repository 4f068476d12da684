"""Consuming from a real broker."""

import time

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType

from streamskit import Serdes
from streamskit.broker.base import Broker
from streamskit.common.errors import BrokerError
from streamskit.environment.processes import wait_until

pytestmark = pytest.mark.broker

DTYPES = ["int32", "int64", "int64", "object", "object", "object"]


def test_rows_are_ordered_by_partition_and_offset(broker: Broker, name: str) -> None:
    broker.create_topics(name, partitions=3)
    broker.produce(name, [{"value": f"{i}", "partition": i % 3} for i in range(9)])
    frame = broker.consume(name)
    assert list(zip(frame["partition"], frame["offset"], frame["value"], strict=True)) == [
        (partition, offset, f"{partition + 3 * offset}") for partition in range(3) for offset in range(3)
    ]


def test_an_empty_topic_has_the_same_columns_and_types(broker: Broker, name: str) -> None:
    broker.create_topics(name)
    empty = broker.consume(name)
    broker.produce(name, [("k", "v")])
    assert empty.empty
    assert [str(kind) for kind in empty.dtypes] == DTYPES
    assert [str(kind) for kind in broker.consume(name).dtypes] == DTYPES


def test_bytes_that_are_not_text_stay_bytes(broker: Broker, name: str) -> None:
    broker.create_topics(name)
    broker.produce(name, [("text", "é"), (b"\xff", 42)])
    frame = broker.consume(name)
    assert frame["key"].tolist() == ["text", b"\xff"]
    assert frame["value"].tolist() == ["é", (42).to_bytes(8, "big")]


def test_a_record_that_a_serde_cannot_read_is_named_by_its_place(broker: Broker, name: str) -> None:
    broker.create_topics(name)
    broker.produce(name, [("k", 1.5), ("k", "not a number")])
    with pytest.raises(BrokerError, match=rf"value of the record at offset 1 of topic '{name}', partition 0"):
        broker.consume(name, value=Serdes.double())


def test_consuming_goes_on_from_an_earlier_end(broker: Broker, name: str) -> None:
    broker.create_topics(name, partitions=2)
    broker.produce(name, [{"value": "old", "partition": 0}, {"value": "old", "partition": 1}])
    before = broker.end_offsets(name)
    broker.produce(name, [{"value": "new", "partition": 1}])
    assert before == {0: 1, 1: 1}
    assert broker.consume(name, from_offsets=before)["value"].tolist() == ["new"]


def test_partitions_that_from_offsets_does_not_name_are_read_whole(broker: Broker, name: str) -> None:
    broker.create_topics(name, partitions=2)
    broker.produce(name, [{"value": f"{i}", "partition": i % 2} for i in range(4)])
    assert broker.consume(name, from_offsets={1: 1})["value"].tolist() == ["0", "2", "3"]
    assert broker.consume(name, from_offsets="latest").empty


@pytest.mark.parametrize("from_offsets", ["first", {2: 0}, {0: -1}, {0: 2}, {0: "0"}, 3])
def test_offsets_that_are_not_in_the_topic_are_refused(broker: Broker, name: str, from_offsets: object) -> None:
    broker.create_topics(name)
    broker.produce(name, [("k", "v")])
    with pytest.raises(BrokerError):
        broker.consume(name, from_offsets=from_offsets)  # type: ignore[arg-type]


def test_an_unknown_isolation_is_refused(broker: Broker, name: str) -> None:
    broker.create_topics(name)
    with pytest.raises(BrokerError, match="read_committed"):
        broker.consume(name, isolation="serializable")  # type: ignore[arg-type]


def test_records_come_one_by_one(broker: Broker, name: str) -> None:
    broker.create_topics(name)
    broker.produce(name, [("k", i) for i in range(100)])
    records = broker.records(name, value=Serdes.long())
    assert next(records).value == 0
    assert sum(1 for _ in records) == 99


def test_read_committed_leaves_out_aborted_and_open_transactions(broker: Broker, name: str) -> None:
    broker.create_topics(name)
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id=name) as producer:
        producer.init_transactions()
        for value, end in [
            (b"committed", producer.commit_transaction),
            (b"aborted", producer.abort_transaction),
            (b"open", None),
        ]:
            producer.begin_transaction()
            producer.send(name, value).get(timeout=60)
            if end is not None:
                end()
        committed = broker.consume(name, isolation="read_committed")["value"].tolist()
        everything = broker.consume(name)["value"].tolist()
        producer.abort_transaction()
    assert committed == ["committed"]
    assert everything == ["committed", "aborted", "open"]


def test_a_topic_that_ends_in_a_transaction_marker_is_read_to_its_end(broker: Broker, name: str) -> None:
    broker.create_topics(name)
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id=name) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(name, b"one")
        producer.commit_transaction()
    # a broker writes the marker after it has answered
    wait_until(lambda: broker.end_offsets(name) == {0: 2}, "the transaction's marker", 60)
    assert broker.consume(name)["value"].tolist() == ["one"]


def test_compaction_keeps_the_latest_value_of_each_key(broker: Broker, name: str) -> None:
    broker.create_topics(name, config={"cleanup.policy": "compact", "segment.ms": 50})
    broker.produce(name, [(f"k{i % 3}", f"{i}", i) for i in range(30)])

    def only_the_latest_is_left() -> bool:
        # a new segment begins with a record that is newer than the last by segment.ms; the last one is never
        # compacted
        broker.produce(name, [("end", "x", int(time.time() * 1000))])
        kept = broker.consume(name)
        return sorted(kept.loc[kept["key"] != "end", "value"]) == ["27", "28", "29"]

    wait_until(only_the_latest_is_left, "the end of the compaction", 60)
    assert broker.end_offsets(name)[0] > 30
    assert broker.consume(name)["offset"].iloc[0] == 27


def test_topics_keep_their_records_however_old_their_timestamps_are(broker: Broker, name: str) -> None:
    broker.create_topics(name)
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    try:
        resource = ConfigResource(ConfigResourceType.TOPIC, name)
        config = admin.describe_configs([resource], config_filter="all")["topic"][name]
    finally:
        admin.close()
    assert config["retention.ms"]["value"] == "-1"
