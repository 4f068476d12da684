"""Stream partitioners on a broker with three partitions: where records go, and what is kept of them."""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import functions as F

from streamskit import (
    CloseOptions,
    LogAndContinue,
    Materialized,
    Processor,
    QueryClient,
    Record,
    Serdes,
    StreamPartitioner,
    StreamsBuilder,
    StreamsError,
    TimeWindows,
    TopologyError,
)
from streamskit.broker.base import Broker
from streamskit.kafka.partitioning_check import look_at
from streamskit.kafka.topic_partition import partition_for
from streamskit.queries import Catalogue
from streamskit.queries.group.discovery import ask_group
from streamskit.testing import wait_until
from tests.integration.conftest import Run

pytestmark = [pytest.mark.broker, pytest.mark.spark]

LONG, TUMBLING = Serdes.long(), TimeWindows.of_size_with_no_grace("1 minute")


def as_told(topic: str, key: str, value: str, num_partitions: int) -> int | Iterable[int] | None:
    """Return the partitions that a record's value names."""
    told: dict[str, Iterable[int] | None] = {"all": range(num_partitions), "none": [], "as usual": None}
    return told[value] if value in told else int(value)


def odd_or_even(topic: str, key: str, value: str, num_partitions: int) -> int:
    return int(value) % 2


class Where(Processor):
    """Tells in which partition a count is."""

    def process(self, record: Record) -> None:
        partition = self.context.record_metadata().partition
        self.context.forward(record.with_value(f"{record.value} in partition {partition}"))


class ByLastLetter(StreamPartitioner):
    def partitions(self, topic: str, key: str, value: str | None, num_partitions: int) -> int:
        return int(key[-1]) % num_partitions


def placed(broker: Broker, topic: str, **serdes: Any) -> list[tuple[Any, Any, int]]:
    return sorted((record.key, record.value, record.partition) for record in broker.records(topic, **serdes))


def test_records_go_where_their_partitioner_sends_them(broker: Broker, run: Run, name: str) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out", f"{name}-chosen", f"{name}-letters", partitions=3)
    values = ["2", "0", "all", "none", "as usual", "7"]
    broker.produce(f"{name}-in", [{"key": "k", "value": value, "timestamp": 0} for value in values])
    builder = StreamsBuilder()
    records = builder.stream(f"{name}-in")
    records.to(f"{name}-out", name="named", partitioner=as_told)
    records.to(lambda v: F.lit(f"{name}-chosen"), name="by-record", partitioner=as_told)
    streams = run(builder.build(), production_handler=LogAndContinue(f"{name}-letters"))
    streams.await_processed("120 seconds")
    everywhere = [("k", "all", partition) for partition in range(3)]
    expected = sorted([("k", "2", 2), ("k", "0", 0), ("k", "as usual", partition_for(b"k", 3)), *everywhere])
    assert placed(broker, f"{name}-out") == expected
    assert placed(broker, f"{name}-chosen") == expected
    assert [value for _, value, _ in placed(broker, f"{name}-letters")] == ["7", "7"]
    dropped = streams.metrics()
    assert dict(zip(dropped["node"], dropped["dropped"], strict=True)) == {"named": 2, "by-record": 2}
    assert "named: a partitioner in Python chooses the partitions of each record" in streams.explain()


def test_what_is_kept_behind_a_partitioner_stays_in_its_partitions(
    broker: Broker, run: Run, name: str, state_dir: Path
) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out", partitions=3)
    keys_in_order = ["a1", "b1", "c2", "a1", "d0", "c2", "a1"]
    records = [(key, str(second), second * 1000) for second, key in enumerate(keys_in_order)]
    broker.produce(f"{name}-in", records)
    builder = StreamsBuilder()
    by_letter = builder.stream(f"{name}-in").repartition("by-letter", partitions=3, partitioner=ByLastLetter())
    grouped = by_letter.group_by_key()
    grouped.count("counts")
    grouped.windowed_by(TUMBLING).count("windows")
    grouped.reduce(lambda one, other: other, Materialized("last", changelog={"segment.bytes": 1024 * 1024}))
    spread = builder.stream(f"{name}-in").repartition("spread", partitions=3, partitioner=odd_or_even)
    apart = spread.group_by_key().aggregate(lambda v: F.count("*"), "apart")
    apart.to_stream().process(Where, value=Serdes.string()).to(f"{name}-out")
    streams = run(builder.build(), application_server="127.0.0.1:0")
    streams.await_processed("120 seconds")
    keys = {"a1": 1, "b1": 1, "c2": 2, "d0": 0}
    for store in ("counts", "windows", "last"):
        written = broker.records(f"{name}-{store}-changelog", key=Serdes.byte_array(), value=Serdes.byte_array())
        assert {record.key[:2].decode(): record.partition for record in written} == keys, store
    counts = streams.store("counts")
    assert {key: counts.get(key) for key in keys} == {"a1": 3, "b1": 1, "c2": 2, "d0": 1}
    client = QueryClient(f"http://{streams.application_server}")
    assert {key: client.store("counts").get(key) for key in keys} == {"a1": 3, "b1": 1, "c2": 2, "d0": 1}
    # The records of a key that went to several partitions are counted apart, by Spark's own operators too.
    there = {(key, partition): value for key, value, partition in placed(broker, f"{name}-apart-changelog", value=LONG)}
    assert there == {("a1", 0): 2, ("a1", 1): 1, ("b1", 1): 1, ("c2", 0): 1, ("c2", 1): 1, ("d0", 0): 1}
    said = {(key, value) for key, value, _ in placed(broker, f"{name}-out")}
    assert {(key, f"{count} in partition {partition}") for (key, partition), count in there.items()} <= said
    found = {key: streams.query_metadata_for_key("counts", key, ByLastLetter()) for key in keys}
    assert {key: metadata.partition for key, metadata in found.items()} == keys
    assert {str(metadata.active_host) for metadata in found.values()} == {streams.application_server}
    with pytest.raises(StreamsError, match="Name the partitioner"):
        streams.query_metadata_for_key("counts", "a1")
    with pytest.raises(StreamsError, match="partitions 0, 1 for the key 'a1', and has to choose exactly one here"):
        streams.query_metadata_for_key("counts", "a1", lambda topic, key, value, num_partitions: [0, 1])
    with pytest.raises(TopologyError, match="the partitioner is called with 4 arguments"):
        streams.query_metadata_for_key("counts", "a1", lambda key: 1)  # type: ignore[arg-type]
    assert broker.describe_topic(f"{name}-last-changelog").config["segment.bytes"] == str(1024 * 1024)
    assert broker.describe_topic(f"{name}-counts-changelog").config["segment.bytes"] != str(1024 * 1024)
    assert streams.close(CloseOptions("20 seconds", leave_group=False))
    # Until its session ends, the group keeps its share for it.
    catalogue = Catalogue.load(state_dir / name)
    assert len(ask_group(broker.bootstrap_servers, catalogue).members) == 1


@pytest.mark.soak
def test_tables_that_partitioners_have_shared_out_are_joined_by_a_foreign_key(
    broker: Broker, run: Run, name: str
) -> None:
    broker.create_topics(f"{name}-orders", f"{name}-customers", f"{name}-out", partitions=3)
    orders = {"o1": "c2", "o2": "c1", "o0": "c2", "o5": "c9"}
    customers = {"c2": "Ann", "c1": "Bob"}
    for topic, rows in (("orders", orders), ("customers", customers)):
        placed_by_letter = [{"key": key, "value": value, "partition": int(key[1]) % 3} for key, value in rows.items()]
        broker.produce(f"{name}-{topic}", placed_by_letter)
    builder = StreamsBuilder()
    joined = builder.table(f"{name}-orders").left_join(
        builder.table(f"{name}-customers"),
        lambda order, customer: F.coalesce(customer, F.lit("nobody")),
        foreign_key=lambda v: v,
        materialized="joined",
        partitioner=ByLastLetter(),
        other_partitioner=ByLastLetter(),
    )
    joined.to_stream().to(f"{name}-out")
    streams = run(builder.build())
    streams.await_processed("120 seconds")
    store = streams.store("joined")
    assert {key: store.get(key) for key in orders} == {"o1": "Ann", "o2": "Bob", "o0": "Ann", "o5": "nobody"}
    changelog = {(key, partition) for key, _, partition in placed(broker, f"{name}-joined-changelog")}
    assert changelog == {("o1", 1), ("o2", 2), ("o0", 0), ("o5", 2)}


def test_topics_that_librdkafka_has_partitioned_its_own_way_are_told_where_they_are_joined(
    broker: Broker, run: Run, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    orders, customers = f"{name}-orders", f"{name}-customers"
    broker.create_topics(orders, customers, partitions=3)
    keys = [f"customer {number}" for number in range(300)]
    broker.produce(customers, [(key, "x") for key in keys])
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for key in keys:
        producer.produce(orders, "y", key)
    producer.flush(30)
    found, own = look_at(broker.connection, orders), look_at(broker.connection, customers)
    assert (found.partitions, found.keys, found.crc32, found.is_librdkafkas) == (3, 300, 1.0, True)
    assert (own.partitions, own.keys, own.murmur2, own.is_librdkafkas) == (3, 300, 1.0, False)
    builder = StreamsBuilder()
    builder.stream(orders).join(builder.table(customers), lambda order, customer: order).foreach(print)
    with caplog.at_level(logging.WARNING, "streamskit"):
        run(builder.build())
        wait_until(lambda: "librdkafka" in caplog.text, "the warning", 60)
    (said,) = [record.getMessage() for record in caplog.records if "librdkafka" in record.getMessage()]
    assert "test_partitioners_live.py" in said
    assert f"seems to have written '{orders}' (3 partitions): of 300 keys" in said
    assert f"'{customers}' (3" not in said
