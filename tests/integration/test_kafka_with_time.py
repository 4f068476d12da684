"""The sink writes each row as the record that it stands for: to its topic and partition, with its time and headers."""

from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from pyspark.sql import SparkSession

from streamskit.broker.base import Broker
from streamskit.execution.row_format import HEADER_TYPE
from streamskit.kafka.topic_partition import partition_for
from streamskit.runtime.spark_io import WITH_TIME

pytestmark = [pytest.mark.broker, pytest.mark.spark]

COLUMNS = f"topic string, key binary, value binary, timestamp bigint, headers {HEADER_TYPE}, partition int"
PARTITIONS = 3
WINDOW = bytes(8)

Written = tuple[str, bytes | None, bytes | None, int, list[tuple[str, bytes | None]], int | None]


def written(spark: SparkSession, broker: Broker, rows: list[Any], **options: str) -> list[Written]:
    """Return the records that rows become, by partition, as a consumer gets them."""
    spark.createDataFrame(rows, COLUMNS).coalesce(1).write.format(WITH_TIME).mode("append").option(
        "kafka.bootstrap.servers", broker.bootstrap_servers
    ).options(**options).save()
    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
        places = [TopicPartition(topic, each) for topic in {row[0] for row in rows} for each in range(PARTITIONS)]
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        found: list[Written] = []
        for _ in range(100):
            for records in consumer.poll(timeout_ms=100).values():
                found += [(r.topic, r.key, r.value, r.timestamp, list(r.headers), r.partition) for r in records]
            if len(found) >= len(rows):
                return sorted(found, key=lambda record: record[3])
    raise AssertionError(f"Only {len(found)} of {len(rows)} records came within ten seconds: {found}")


def test_time_headers_and_partition_are_those_of_the_row(spark: SparkSession, broker: Broker, name: str) -> None:
    broker.create_topics(name, partitions=PARTITIONS)
    rows: list[Any] = [
        (name, b"k", b"v", 0, None, None),
        (name, None, b"v", 1, [], 2),
        (name, b"k", None, 2, [("a", b"1"), ("a", None), ("é", b"")], 0),
        (name, b"", b"", 253402300799999, [("streamskit-timestamp", b"not a time")], None),
    ]
    chosen = [partition_for(b"k", PARTITIONS), 2, 0, partition_for(b"", PARTITIONS)]
    assert written(spark, broker, rows) == [
        (*row[:4], row[4] or [], to) for row, to in zip(rows, chosen, strict=True)
    ]  # fmt: skip


def test_any_number_of_topics_may_take_turns(spark: SparkSession, broker: Broker, name: str) -> None:
    topics = [f"{name}-{number}" for number in range(20)]
    broker.create_topics(*topics, partitions=PARTITIONS)
    rows = [(topics[time * 7 % 20 if time % 3 else 0], b"k", b"%d" % time, time, None, 1) for time in range(200)]
    assert [(topic, value) for topic, _, value, *_ in written(spark, broker, rows)] == [(r[0], r[2]) for r in rows]


def test_a_windowed_key_goes_to_the_partition_of_its_bare_key(spark: SparkSession, broker: Broker, name: str) -> None:
    broker.create_topics(name, f"{name}-other", partitions=PARTITIONS)
    keys = [b"a", b"b", b"c", b"abc"]
    rows: list[Any] = [(name, key + WINDOW, b"", time, None, None) for time, key in enumerate(keys)]
    rows += [(name, b"a" + WINDOW, b"", 4, None, 2), (f"{name}-other", b"a" + WINDOW, b"", 5, None, None)]
    found = written(spark, broker, rows, windowed=f"{name}:8:{PARTITIONS}")
    bare = [partition_for(key, PARTITIONS) for key in keys]
    assert [record[5] for record in found] == [*bare, 2, partition_for(b"a" + WINDOW, PARTITIONS)]
