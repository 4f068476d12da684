"""Records that a broker refuses: they go to the production handler, or stop the application with a sentence."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamskit import KafkaStreams, LogAndContinue, Serdes, StreamsBuilder, Topology
from streamskit.broker import EmbeddedBroker
from streamskit.broker.base import Broker
from streamskit.common.errors import StreamsError
from streamskit.environment.processes import wait_until
from tests.integration.conftest import Run

pytestmark = [pytest.mark.broker, pytest.mark.spark]

RECORD = Serdes.json("name string, ts bigint, size int")
YEAR_3000, NANOSECONDS, LONG_AGO = 32_503_680_000_000, 1_700_000_000_000_000_000, 1_700_000_000_000


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that takes timestamps an hour ahead, as Kafka 4 does where nobody has set it otherwise."""
    settings = {"log.message.timestamp.after.max.ms": "3600000"}
    with EmbeddedBroker(data_dir=tmp_path_factory.mktemp("strict"), settings=settings) as running:
        yield running


@pytest.fixture
def three_sinks(strict: Broker, name: str) -> Topology:
    """Copies records to a topic as the broker makes it, to a compacted one by a key, and to one for small records.

    And to one that is all of that, which each record chooses for itself.
    """
    strict.create_topics(f"{name}-in", f"{name}-out", f"{name}-dead")
    strict.create_topics(f"{name}-compacted", config={"cleanup.policy": "compact"})
    strict.create_topics(f"{name}-small", config={"max.message.bytes": "2000"})
    both = {"cleanup.policy": "compact", "max.message.bytes": "2000"}
    strict.create_topics(f"{name}-chosen", config=both)
    rows = [("good", LONG_AGO, 1), ("ahead", YEAR_3000, 1), ("nanos", NANOSECONDS, 1), (None, LONG_AGO, 1)]
    rows.append(("large", LONG_AGO, 5000))
    records = [{"key": "k", "value": {"name": word, "ts": time, "size": size}} for word, time, size in rows]
    strict.produce(f"{name}-in", records, value=RECORD)
    builder = StreamsBuilder()
    source = builder.stream(f"{name}-in", value=RECORD, timestamps=lambda v: v.ts)
    texts = source.select_key(lambda k, v: v.name).map_values(lambda v: F.repeat(F.lit("x"), v.size))
    for sink in ("out", "compacted", "small"):
        texts.to(f"{name}-{sink}", key=Serdes.string(), value=Serdes.string())
    texts.to(lambda k, v: F.lit(f"{name}-chosen"), key=Serdes.string(), value=Serdes.string())
    return builder.build()


@pytest.mark.parametrize("guarantee", ["at_least_once", pytest.param("exactly_once", marks=pytest.mark.soak)])
def test_what_a_broker_refuses_goes_to_the_production_handler_and_all_else_is_written(
    three_sinks: Topology, strict: Broker, name: str, run_on: Run, guarantee: str
) -> None:
    handler = LogAndContinue(f"{name}-dead")
    streams = run_on(strict, three_sinks, production_handler=handler, processing_guarantee=guarantee)
    streams.await_processed()
    seen = {sink: list(strict.consume(f"{name}-{sink}")["key"]) for sink in ("out", "compacted", "small", "chosen")}
    assert seen == {
        "out": ["good", None, "large"],
        "compacted": ["good", "large"],
        "small": ["good", None],
        "chosen": ["good"],
    }
    letters = [dict(headers) for headers in strict.consume(f"{name}-dead")["headers"]]
    parts = ("exception", "message", "stacktrace", "topic", "partition", "offset")
    assert all(letter[f"__streams.errors.{part}"] for letter in letters for part in parts)
    said = [letter["__streams.errors.exception"].decode() for letter in letters]
    assert sorted(said) == [
        *["org.apache.kafka.common.InvalidRecordException"] * 2,
        *["org.apache.kafka.common.errors.InvalidTimestampException"] * 8,
        *["org.apache.kafka.common.errors.RecordTooLargeException"] * 2,
    ]


def test_without_a_handler_the_sentence_names_topic_reason_and_offset(
    three_sinks: Topology, strict: Broker, name: str, run_on: Run
) -> None:
    streams = run_on(strict, three_sinks)
    with pytest.raises(StreamsError) as failed:
        streams.await_processed()
    said = str(failed.value)
    assert "a record made of offset 1 of topic" in said
    assert f"'{name}-in', partition 0, cannot be written to topic '{name}-" in said
    assert "InvalidTimestampException: the timestamp 32503680000000 is too far from the broker's clock" in said


@pytest.mark.parametrize("guarantee", ["at_least_once", pytest.param("exactly_once", marks=pytest.mark.soak)])
def test_a_value_that_has_grown_too_large_is_told_with_its_topic_and_key(
    strict: Broker, name: str, run_on: Run, guarantee: str
) -> None:
    strict.create_topics(f"{name}-in", f"{name}-out")
    strict.produce(f"{name}-in", [("growing", "x" * 600_000)] * 2)
    builder = StreamsBuilder()
    texts = builder.stream(f"{name}-in").group_by_key().reduce(lambda one, other: one + other, "texts")
    texts.to_stream().to(f"{name}-out")
    streams = run_on(strict, builder.build(), processing_guarantee=guarantee)
    with pytest.raises(StreamsError) as failed:
        streams.await_processed()
    topic = rf"'{name}-(?:out|texts-changelog)'"
    assert re.search(
        rf"a record could not be written to topic ({topic}): \S*RecordTooLargeException: The message is 12000\d\d bytes"
        r".*max.request.size configuration\. It is for topic \1, with the key 'growing'\.",
        str(failed.value),
    )


@pytest.mark.parametrize("guarantee", ["at_least_once", pytest.param("exactly_once", marks=pytest.mark.soak)])
def test_a_topic_that_a_record_chooses_and_that_is_not_there_is_told_within_seconds(
    strict: Broker, name: str, run_on: Run, guarantee: str
) -> None:
    strict.create_topics(f"{name}-in", f"{name}-first")
    builder = StreamsBuilder()
    builder.stream(f"{name}-in").to(lambda v: F.concat(F.lit(f"{name}-"), v))
    streams = run_on(strict, builder.build(), processing_guarantee=guarantee)
    strict.produce(f"{name}-in", [("k", "first")])
    streams.await_processed()
    strict.produce(f"{name}-in", [("k", "first"), ("k", "nowhere")])
    wait_until(lambda: streams.failure is not None, "the error about the topic that is not there", 30)
    said = str(streams.failure)
    assert said.startswith("KSTREAM-SINK-0000000001 (written at ")
    assert f"has chosen '{name}-nowhere', and there is no topic of that name" in said
    assert "Create the topic, and start the application again" in said


def test_a_topic_that_a_record_chooses_and_that_comes_a_moment_later_is_written(
    strict: Broker, name: str, run_on: Run
) -> None:
    strict.create_topics(f"{name}-in")
    builder = StreamsBuilder()
    builder.stream(f"{name}-in").to(lambda v: v)
    streams = run_on(strict, builder.build())
    strict.produce(f"{name}-in", [("k", f"{name}-late")])
    time.sleep(2)
    strict.create_topics(f"{name}-late")
    streams.await_processed()
    assert list(strict.consume(f"{name}-late")["key"]) == ["k"]


def test_a_timestamp_that_spark_cannot_read_is_told_with_its_offset(
    strict: Broker, name: str, state_dir: Path, run_on: Run
) -> None:
    strict.create_topics(f"{name}-in", config={"message.timestamp.after.max.ms": str(2**63 - 1)})
    strict.create_topics(f"{name}-out")
    producer = Producer({"bootstrap.servers": strict.bootstrap_servers})
    producer.produce(f"{name}-in", b"v", timestamp=NANOSECONDS)
    producer.flush()
    builder = StreamsBuilder()
    builder.stream(f"{name}-in").to(f"{name}-out")
    streams: KafkaStreams = run_on(strict, builder.build())
    with pytest.raises(
        StreamsError, match=rf"the record at offset 0 of topic '{name}-in', partition 0, has the timest"
    ):
        streams.await_processed()


def test_a_topic_that_is_deleted_is_missed_within_seconds(strict: Broker, name: str, spark: SparkSession) -> None:
    strict.create_topics(name)
    missing: Any = spark._jvm.streamskit.MissingTopic  # type: ignore[union-attr]
    assert missing.isThere(strict.bootstrap_servers, name)
    strict.delete_topics(name)
    wait_until(lambda: not missing.isThere(strict.bootstrap_servers, name), "the end of the trust in a topic", 60)
