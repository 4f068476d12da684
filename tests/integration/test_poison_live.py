"""Poison records on a live broker: under each handler nothing is lost and everything is counted, judged by ids."""

import json
import time
from typing import Any

import pytest
from pyspark.sql import functions as F

from streamskit import (
    DeadLetter,
    ErrorHandlerContext,
    KafkaStreams,
    LogAndContinue,
    Processor,
    Record,
    Response,
    Serde,
    Serdes,
    State,
    StreamsBuilder,
    StreamsError,
    Topology,
)
from streamskit.broker.base import Broker
from tests.integration.conftest import Run

pytestmark = [pytest.mark.spark, pytest.mark.broker]

ORDER = Serdes.json("id int, amount double")
BYTES = Serdes.byte_array()
KAFKA = "org.apache.kafka.common.errors."
PARTITIONS = 3


@pytest.fixture
def topics(broker: Broker, name: str) -> tuple[str, str, str]:
    """The names of topics to read, to write and for dead letters."""
    names = f"{name}-in", f"{name}-out", f"{name}-letters"
    broker.create_topics(*names, partitions=PARTITIONS)
    return names


def dropped(streams: KafkaStreams) -> dict[str, int]:
    """Return how many records each node went without."""
    rows = streams.metrics()
    return {row["node"]: row["dropped"] for row in rows.to_dict("records") if row["dropped"]}


def halved(source: str, sink: str) -> Topology:
    builder = StreamsBuilder()
    builder.stream(source, value=ORDER).map_values(lambda v: v.id).to(sink, value=Serdes.integer())
    return builder.build()


def orders(ids: range, poison: set[int]) -> list[tuple[str, bytes]]:
    """Return an order for each id, keyed by it; those of the poison are no JSON, but still say which they are."""
    return [
        (f"order-{number}", f"{{{number}".encode() if number in poison else json.dumps({"id": number}).encode())
        for number in ids
    ]


IDS, POISON = range(300), {7, 100, 251}


def read(broker: Broker, topic: str, value: Serde | None = None) -> list[dict[Any, Any]]:
    """Return the records of a topic."""
    return broker.consume(topic, value=value).to_dict("records")


def by_place(broker: Broker, topic: str, value: Serde | None = None) -> dict[tuple[str, str], dict[Any, Any]]:
    """Return the records of a topic by partition and offset, as headers spell them."""
    return {(str(record["partition"]), str(record["offset"])): record for record in read(broker, topic, value)}


def headers_of(letter: dict[Any, Any]) -> dict[str, str]:
    """Return the headers of a dead letter, without what their names have in common."""
    return {name.removeprefix("__streams.errors."): value.decode() for name, value in letter["headers"]}


def test_log_and_fail_fails_at_every_start_until_the_handler_is_another_and_then_nothing_is_lost(
    topics: tuple[str, str, str], broker: Broker, run: Run
) -> None:
    source, sink, dead = topics
    broker.produce(source, orders(IDS, POISON), value=BYTES)
    for _ in range(2):
        streams = run(halved(source, sink))
        with pytest.raises(StreamsError, match=rf"a record of topic '{source}' is not what its serde reads"):
            streams.await_processed()
        assert streams.state is State.ERROR
        streams.close()
    streams = run(halved(source, sink), deserialization_handler=LogAndContinue(dead))
    streams.await_processed()
    # A task that was quicker than the one that failed may have written before: at least once.
    assert set(broker.consume(sink, value=Serdes.integer())["value"]) == set(IDS) - POISON
    letters = [int(letter["value"].removeprefix(b"{")) for letter in read(broker, dead, BYTES)]
    assert sorted(letters) == sorted(POISON)
    assert dropped(streams) == {"KSTREAM-SOURCE-0000000000": len(POISON)}


def test_log_and_continue_goes_on_without_the_poison_in_every_partition(
    topics: tuple[str, str, str], broker: Broker, run: Run
) -> None:
    source, sink, _ = topics
    broker.produce(source, orders(IDS, POISON), value=BYTES)
    streams = run(halved(source, sink), deserialization_handler=LogAndContinue())
    streams.await_processed()
    assert sorted(broker.consume(sink, value=Serdes.integer())["value"]) == sorted(set(IDS) - POISON)
    broker.produce(source, orders(range(300, 310), {305}), value=BYTES)
    streams.await_processed()
    assert len(broker.consume(sink)) == 310 - 4
    assert dropped(streams) == {"KSTREAM-SOURCE-0000000000": 4}


def test_the_headers_of_a_dead_letter_name_the_place_where_its_record_lies(
    topics: tuple[str, str, str], broker: Broker, run: Run
) -> None:
    source, sink, dead = topics
    broker.produce(source, orders(IDS, POISON), value=BYTES)
    run(halved(source, sink), deserialization_handler=LogAndContinue(dead)).await_processed()
    records, letters = by_place(broker, source, BYTES), read(broker, dead, BYTES)
    for letter in letters:
        headers = headers_of(letter)
        origin = records[headers["partition"], headers["offset"]]
        assert [origin[part] for part in ("key", "value", "timestamp")] == [
            letter[part] for part in ("key", "value", "timestamp")
        ]
        assert headers["topic"] == source
        assert headers["exception"] == f"{KAFKA}SerializationException"
        assert "it is not JSON" in headers["message"]
    assert len(letters) == len(POISON)


class Moody(Processor):
    """Passes numbers on, and fails on every 1,000th."""

    def process(self, record: Record) -> None:
        if record.value % 1_000 == 999:
            raise RuntimeError(f"not number {record.value}")
        self.context.forward(record)


def moody(source: str, sink: str) -> Topology:
    builder = StreamsBuilder()
    numbers = builder.stream(source, value=Serdes.long()).process(Moody, name="moody")
    # What follows fails in Columns, on others.
    numbers.map_values(lambda v: v + 0 * (1 / (v % 1_000 - 500)).cast("long")).to(sink, value=Serdes.long())
    return builder.build()


def test_a_processor_that_raises_on_every_thousandth_record_loses_only_those(
    topics: tuple[str, str, str], broker: Broker, run: Run
) -> None:
    source, sink, dead = topics
    count = 20_000
    broker.produce(source, [(f"key-{number % 97}", number) for number in range(count)])
    streams = run(moody(source, sink), processing_handler=LogAndContinue(dead))
    streams.await_processed("120 seconds")
    out = [record["value"] for record in read(broker, sink, Serdes.long())]
    letters = read(broker, dead, Serdes.long())
    failed = [letter["value"] for letter in letters]
    assert sorted([*out, *failed]) == list(range(count))  # in = out + dead letters, each once
    assert set(failed) == set(range(999, count, 1_000)) | set(range(500, count, 1_000))
    assert dropped(streams) == {"moody": 20, "KSTREAM-MAPVALUES-0000000001": 20}
    records = by_place(broker, source, Serdes.long())
    for letter in letters:
        headers = headers_of(letter)
        assert records[headers["partition"], headers["offset"]]["value"] == letter["value"]
        raised = "RuntimeError" if letter["value"] % 1_000 == 999 else "org.apache.spark.SparkArithmeticException"
        assert headers["exception"] == raised


LARGE = 2 * 1024 * 1024


@pytest.fixture
def large(broker: Broker, name: str) -> tuple[str, str, str]:
    """A topic whose records may be larger than those of the topic to write; it holds one of 2 MB."""
    source, sink, dead = names = f"{name}-in", f"{name}-out", f"{name}-letters"
    broker.create_topics(source, partitions=PARTITIONS, config={"max.message.bytes": str(2 * LARGE)})
    broker.create_topics(sink, dead, partitions=PARTITIONS)
    broker.produce(source, [("small", "a"), ("large", "b" * LARGE), ("small", "c")])
    return names


def copied(source: str, sink: str) -> Topology:
    builder = StreamsBuilder()
    builder.stream(source).to(sink)
    return builder.build()


def test_a_record_that_is_too_large_fails_with_its_topic_and_what_is_allowed(
    large: tuple[str, str, str], run: Run
) -> None:
    source, sink, _ = large
    streams = run(copied(source, sink))
    with pytest.raises(StreamsError, match=rf"KSTREAM-SINK-0000000001 .* to topic '{sink}'.*RecordTooLargeException"):
        streams.await_processed()


def test_a_record_that_is_too_large_leaves_a_dead_letter_that_says_where_it_lies(
    large: tuple[str, str, str], broker: Broker, run: Run
) -> None:
    source, sink, dead = large
    streams = run(copied(source, sink), production_handler=LogAndContinue(dead))
    streams.await_processed()
    assert sorted(broker.consume(sink)["value"]) == ["a", "c"]
    (letter,) = read(broker, dead, BYTES)
    headers = headers_of(letter)
    assert (letter["key"], letter["value"]) == ("large", None)
    assert headers["__streamskit.value.left.out"] == f"{LARGE} bytes"
    assert headers["exception"] == f"{KAFKA}RecordTooLargeException"
    assert by_place(broker, source)[headers["partition"], headers["offset"]]["key"] == "large"
    assert dropped(streams) == {"KSTREAM-SINK-0000000001": 1}


def test_a_limit_that_is_raised_lets_the_large_record_pass(
    large: tuple[str, str, str], broker: Broker, name: str, run: Run
) -> None:
    source, _, dead = large
    broker.create_topics(f"{name}-wide", config={"max.message.bytes": str(2 * LARGE)})
    run(
        copied(source, f"{name}-wide"), production_handler=LogAndContinue(dead), max_request_size=2 * LARGE
    ).await_processed()
    assert sorted(map(len, broker.consume(f"{name}-wide")["value"])) == [1, 1, LARGE]
    assert broker.consume(dead).empty


def test_a_function_is_called_for_a_record_that_is_too_large_for_a_sink(
    large: tuple[str, str, str], broker: Broker, name: str, run: Run
) -> None:
    source, sink, _ = large
    seen = list[int]()
    builder = StreamsBuilder()
    texts = builder.stream(source).peek(lambda key, value: seen.append(len(value)))
    texts.map_values(lambda value: F.length(value).cast("string")).to(sink)
    run(builder.build()).await_processed()
    assert sorted(seen) == [1, 1, LARGE]
    assert sorted(broker.consume(sink)["value"]) == ["1", "1", str(LARGE)]
    # A sink keeps to max_request_size, though its topic would take more.
    broker.create_topics(f"{name}-wide", config={"max.message.bytes": str(2 * LARGE)})
    copying = StreamsBuilder()
    copying.stream(source).peek(print).to(f"{name}-wide")
    streams = run(copying.build(), application_id=f"{name}-copying")
    with pytest.raises(StreamsError, match=rf"cannot be written to topic '{name}-wide'.*RecordTooLargeException"):
        streams.await_processed()


def fanned(source: str) -> Topology:
    builder = StreamsBuilder()
    builder.stream(source).to(lambda k, v: v)  # the value names the topic
    return builder.build()


def test_a_topic_that_is_not_there_costs_its_records_and_holds_nobody_up(
    topics: tuple[str, str, str], broker: Broker, run: Run
) -> None:
    source, sink, dead = topics
    chosen = [sink, f"{sink}-missing", "no topic/at all", sink, f"{sink}-missing", sink]
    broker.produce(source, [(f"record-{number}", topic) for number, topic in enumerate(chosen)])
    streams = run(fanned(source), production_handler=LogAndContinue(dead))
    began = time.monotonic()
    streams.await_processed()
    assert time.monotonic() - began < 30  # Spark's producer alone would wait for a minute
    assert sorted(broker.consume(sink)["key"]) == ["record-0", "record-3", "record-5"]
    letters = read(broker, dead)
    assert sorted(letter["key"] for letter in letters) == ["record-1", "record-2", "record-4"]
    assert {headers_of(letter)["exception"] for letter in letters} == {f"{KAFKA}UnknownTopicOrPartitionException"}
    assert dropped(streams) == {"KSTREAM-SINK-0000000001": 3}


def test_a_dead_letter_topic_that_is_not_there_is_asked_for_before_the_first_record(
    topics: tuple[str, str, str], run: Run
) -> None:
    source, sink, dead = topics
    with pytest.raises(StreamsError, match=rf"needs topics that do not exist: '{dead}-2'\. Create them before start"):
        run(copied(source, sink), processing_handler=LogAndContinue(f"{dead}-2"))


def test_a_handler_of_ones_own_mends_what_it_can_and_keeps_the_rest(
    topics: tuple[str, str, str], broker: Broker, run: Run
) -> None:
    source, sink, dead = topics

    def mend(context: ErrorHandlerContext, record: Any, exception: Exception) -> Response:
        text = (record.value or b"") + b"}"
        topic = dead if text.startswith(b"{2") else sink
        return Response.resume(DeadLetter(topic, record.key, text, (("offset", str(context.offset).encode()),)))

    broker.produce(source, orders(IDS, POISON), value=BYTES)
    streams = run(halved(source, sink), deserialization_handler=mend)
    streams.await_processed()
    assert broker.consume(dead, value=BYTES)["value"].tolist() == [b"{251}"]
    written = broker.consume(sink, value=BYTES)["value"].tolist()
    assert {b"{7}", b"{100}"} < set(written)
    assert len(written) == len(IDS) - 1
    assert dropped(streams) == {"KSTREAM-SOURCE-0000000000": 3}
