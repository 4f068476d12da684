"""The rows that a source makes of Kafka's records, which are those of Spark's own source."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from streamskit.jvm import java_class

pytestmark = pytest.mark.spark

KAFKA = "org.apache.spark.sql.kafka010"
DATA = st.none() | st.binary(max_size=40)
HEADERS = st.lists(st.tuples(st.text(max_size=5), DATA), max_size=2)
TIMES = st.integers(-1, 2**43) | st.integers(253_402_300_799_000, 253_402_300_801_000)


def consumer_record(place: tuple[int, int], timestamp: int, key: Any, value: Any, headers: Any) -> Any:
    """Return a record of the topic `töpic` as Kafka's consumer has it."""
    types = java_class("org.apache.kafka.common.record.TimestampType")
    made = java_class("org.apache.kafka.common.header.internals.RecordHeaders")()
    for name, data in headers:
        made.add(name, None if data is None else bytearray(data))
    parts = (None if data is None else bytearray(data) for data in (key, value))
    nothing = java_class("java.util.Optional").empty()
    record = java_class("org.apache.kafka.clients.consumer.ConsumerRecord")
    return record("töpic", *place, timestamp, types.LOG_APPEND_TIME, -1, -1, *parts, made, nothing)


@pytest.mark.parametrize("include_headers", [True, False])
def test_a_record_becomes_the_row_of_sparks_own_source(spark: SparkSession, include_headers: bool) -> None:
    ours = java_class(f"{KAFKA}.RecordRows")("töpic", include_headers)
    sparks = java_class(f"{KAFKA}.KafkaRecordToRowConverter")().toUnsafeRowProjector(include_headers)

    @settings(max_examples=60)
    @given(st.tuples(st.integers(0, 9), st.integers(0, 2**50)), TIMES, DATA, DATA, HEADERS)
    def check(place: tuple[int, int], timestamp: int, key: Any, value: Any, headers: Any) -> None:
        record = consumer_record(place, timestamp, key, value, headers)
        assert ours.of(record).equals(sparks.apply(record))  # byte for byte

    check()
