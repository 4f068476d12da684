"""Spark's real-time mode: a record does not wait for the end of a batch."""

import time
from functools import partial
from pathlib import Path

import pytest
from kafka import KafkaProducer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamskit import (
    KafkaStreams,
    MaxFailures,
    Serdes,
    State,
    StateRestoreListener,
    StreamsBuilder,
    StreamsError,
    Topology,
)
from streamskit.broker import Broker
from streamskit.broker.settings import free_port
from streamskit.runtime import mode, slots
from streamskit.testing import wait_until
from tests.integration.own_process import seen_by

pytestmark = [pytest.mark.spark, pytest.mark.broker]


def shouting(name: str) -> Topology:
    builder = StreamsBuilder()
    words = builder.stream(f"{name}-words").filter(lambda v: v != "hush").map_values(F.upper)
    words.to(f"{name}-shouts")
    words.filter(lambda v: v.endswith("!")).to(f"{name}-cries")
    return builder.build()


def test_a_record_comes_out_long_before_its_batch_ends(
    broker: Broker, spark: SparkSession, name: str, state_dir: Path
) -> None:
    broker.create_topics(f"{name}-words", f"{name}-shouts", f"{name}-cries", partitions=2)
    streams = KafkaStreams(
        shouting(name), name, broker.bootstrap_servers, spark=spark, state_dir=state_dir, real_time="10 minutes"
    )
    with streams:
        broker.produce(f"{name}-words", [("a", "hello"), ("b", "hush"), ("c", "help!"), ("d", "bye")])
        deadline = time.monotonic() + 60
        while len(broker.consume(f"{name}-shouts")) < 3 or broker.consume(f"{name}-cries").empty:
            assert time.monotonic() < deadline, "no record came out within a minute of a batch of ten"
        assert sorted(broker.consume(f"{name}-shouts")["value"]) == ["BYE", "HELLO", "HELP!"]
        assert list(broker.consume(f"{name}-cries")["value"]) == ["HELP!"]
        assert streams.metrics()["batches"].sum() == 0


def test_what_takes_several_topics_or_a_partitioner_runs_in_micro_batches_beside_it(
    broker: Broker, spark: SparkSession, name: str, state_dir: Path
) -> None:
    broker.create_topics(f"{name}-words", f"{name}-more-words", f"{name}-letters", partitions=1)
    broker.create_topics(f"{name}-names", f"{name}-copies", partitions=1)
    broker.create_topics(f"{name}-out", partitions=2)
    builder = StreamsBuilder()
    builder.stream(f"{name}-names").to(f"{name}-copies")
    words = builder.stream(f"{name}-words", f"{name}-more-words")
    words.group_by_key().reduce(lambda one, other: one + other, "joined")
    builder.stream(f"{name}-letters").to(f"{name}-out", partitioner=lambda topic, key, value, num_partitions: [0, 1])
    streams = KafkaStreams(
        builder.build(), name, broker.bootstrap_servers, spark=spark, state_dir=state_dir, real_time="5 seconds"
    )
    with streams:
        broker.produce(f"{name}-words", [("a", "x"), ("a", "y")])
        broker.produce(f"{name}-letters", [("a", "x")])
        broker.produce(f"{name}-names", [("a", "x")])
        streams.await_processed("120 seconds")
        assert streams.store("joined").get("a") == "xy"
        assert sorted(record.partition for record in broker.records(f"{name}-out")) == [0, 1]
        assert list(broker.consume(f"{name}-copies")["value"]) == ["x"]


def test_partitions_beyond_the_slots_of_spark_are_all_read(
    broker: Broker, spark: SparkSession, name: str, state_dir: Path
) -> None:
    partitions = 2 * spark.sparkContext.defaultParallelism + 1
    broker.create_topics(f"{name}-words", f"{name}-shouts", f"{name}-cries", partitions=partitions)
    streams = KafkaStreams(
        shouting(name), name, broker.bootstrap_servers, spark=spark, state_dir=state_dir, real_time="10 minutes"
    )
    with streams:
        broker.produce(f"{name}-words", [(f"k{number}", "hello") for number in range(20 * partitions)])
        streams.await_processed("60 seconds")
        assert len(broker.consume(f"{name}-shouts")) == 20 * partitions
        assert len(set(broker.consume(f"{name}-words")["partition"])) == partitions
        assert spark.range(100).repartition(4).count() == 100  # other jobs have the slots that they had


def counting(name: str) -> Topology:
    builder = StreamsBuilder()
    words = builder.stream(f"{name}-words").group_by(lambda v: v)
    words.count("counts").to_stream().to(f"{name}-counts", value=Serdes.long())
    totals = builder.stream(f"{name}-words").group_by_key()
    totals.reduce(lambda one, other: one + other, "joined").to_stream().to(f"{name}-joined")
    return builder.build()


def test_who_waits_for_what_is_processed_need_not_wait_for_the_end_of_a_batch(
    broker: Broker, spark: SparkSession, name: str, state_dir: Path
) -> None:
    broker.create_topics(f"{name}-words", f"{name}-counts", f"{name}-joined", partitions=2)
    streams = KafkaStreams(
        counting(name), name, broker.bootstrap_servers, spark=spark, state_dir=state_dir, real_time="10 minutes"
    )
    with streams:
        for number in range(1, 4):
            broker.produce(f"{name}-words", [("a", "x"), ("b", "x"), ("c", "y")])
            streams.await_processed("60 seconds")
            assert dict(streams.store("counts").all()) == {"x": 2 * number, "y": number}
            assert streams.store("joined").get("c") == "y" * number
            assert streams.metrics()["lag"].sum() == 0


def test_records_of_a_transaction_are_waited_for_although_its_end_is_no_record(
    broker: Broker, spark: SparkSession, name: str, state_dir: Path
) -> None:
    broker.create_topics(f"{name}-words", f"{name}-loud")
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id=f"{name}-producer")
    producer.init_transactions()
    streams = KafkaStreams(
        loud(name), name, broker.bootstrap_servers, spark=spark, state_dir=state_dir, real_time="10 minutes"
    )
    with streams:
        for number in (1, 2):
            producer.begin_transaction()
            producer.send(f"{name}-words", b"hello")
            producer.commit_transaction()
            streams.await_processed("60 seconds")
            assert list(broker.consume(f"{name}-loud")["value"]) == ["HELLO"] * number
    producer.close()


@pytest.mark.parametrize("in_between", ["closed", "paused"])
def test_what_is_stopped_in_the_middle_of_a_batch_does_nothing_twice(
    in_between: str, broker: Broker, spark: SparkSession, name: str, state_dir: Path
) -> None:
    broker.create_topics(f"{name}-words", f"{name}-counts", f"{name}-joined", partitions=2)

    def new() -> KafkaStreams:
        return KafkaStreams(
            counting(name), name, broker.bootstrap_servers, spark=spark, state_dir=state_dir, real_time="10 minutes"
        )

    streams = new()
    try:
        streams.start()
        broker.produce(f"{name}-words", [("a", "x"), ("b", "x"), ("c", "y")])
        wait_until(lambda: _counts(broker, name) == [1, 1, 2], "the first three updates", 60)
        wait_until(lambda: len(broker.consume(f"{name}-joined")) == 3, "what is joined", 60)
        if in_between == "closed":
            streams.close()
            streams = new()
            streams.start()
        else:
            streams.pause()
            streams.resume()
        broker.produce(f"{name}-words", [("a", "x")])
        streams.await_processed("60 seconds")
        assert _counts(broker, name) == [1, 1, 2, 3]
        assert sorted(broker.consume(f"{name}-joined")["value"]) == ["x", "x", "xx", "y"]
    finally:
        streams.close()


def _counts(broker: Broker, name: str) -> list[int]:
    return sorted(broker.consume(f"{name}-counts", value=Serdes.long())["value"])


def loud(name: str) -> Topology:
    builder = StreamsBuilder()
    builder.stream(f"{name}-words").map_values(F.upper).to(f"{name}-loud")
    return builder.build()


def has_come(broker: Broker, topic: str) -> bool:
    return list(broker.consume(topic)["value"]) == ["HELLO"]


def test_the_start_chooses_real_time_unless_that_takes_too_many_slots(
    broker: Broker, spark: SparkSession, name: str, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mode, "MOST_EXTRA", 3)
    for each, partitions in ((f"{name}-1", 3), (f"{name}-2", 4)):
        broker.create_topics(f"{each}-words", f"{each}-loud", partitions=partitions)
    states: list[State] = []

    def given(each: str) -> KafkaStreams:
        return KafkaStreams(
            loud(each), each, broker.bootstrap_servers, spark=spark, state_dir=state_dir, commit_interval="7 seconds"
        )

    first = given(f"{name}-1")
    first.set_state_listener(lambda new, old: states.append(new))
    with first, given(f"{name}-2") as second:
        assert first.explain().startswith(f"'{name}-1' runs in real-time mode, and keeps 3 of Spark's slots busy.\n")
        why = "because real-time mode would keep 4 of Spark's slots busy, and adds 3 at most"
        assert second.explain().startswith(f"'{name}-2' runs in micro-batches, {why}.\n")
        assert [each.config.real_time for each in (first, second)] == [7_000, "off"]
        for each in (f"{name}-1", f"{name}-2"):
            broker.produce(f"{each}-words", [("a", "hello")])
            wait_until(partial(has_come, broker, f"{each}-loud"), "the record in capitals", 60)
    assert State.RUNNING in states


def test_with_auto_an_instance_keeps_its_address_and_its_listeners(
    broker: Broker, spark: SparkSession, name: str, state_dir: Path
) -> None:
    broker.create_topics(f"{name}-words")
    builder = StreamsBuilder()
    builder.stream(f"{name}-words").group_by_key().count("counts")

    class Telling(StateRestoreListener):
        def on_restore_start(self, *what: object) -> None: ...

        def on_batch_restored(self, *what: object) -> None: ...

        def on_restore_end(self, *what: object) -> None: ...

    streams = KafkaStreams(
        builder.build(), name, broker.bootstrap_servers, spark=spark, state_dir=state_dir, statestore_cache_max_bytes=0,
        application_server=f"127.0.0.1:{free_port()}", uncaught_exception_handler=MaxFailures(3, "1 minute"),
    )  # fmt: skip
    handler = streams._application.supervisor.handler
    listener = Telling()
    streams.set_global_state_restore_listener(listener)
    with streams:
        explained = streams.explain()  # at once, before the first batch is planned
        assert " runs in real-time mode, and keeps 2 of Spark's slots busy.\n" in explained
        assert "RealTimeStreamScan" in explained
        assert streams._application.supervisor.handler is handler
        assert streams._application.global_copies.restorations.listener is listener
        broker.produce(f"{name}-words", [("a", "x"), ("a", "y")])
        wait_until(lambda: streams.store("counts").get("a") == 2, "the count", 60)


def test_with_auto_what_real_time_mode_has_no_place_for_runs_in_micro_batches(
    broker: Broker, spark: SparkSession, name: str, state_dir: Path
) -> None:
    broker.create_topics(f"{name}-words", f"{name}-loud")
    streams = KafkaStreams(
        loud(name), name, broker.bootstrap_servers, spark=spark, state_dir=state_dir,
        processing_guarantee="exactly_once",
    )  # fmt: skip
    with streams:
        assert streams.explain().startswith(f"'{name}' runs in micro-batches, because exactly-once output shows no")


def test_where_no_slots_can_be_added_those_of_another_application_are_not_promised_again(
    broker: Broker, spark: SparkSession, name: str, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "can_add_slots", lambda session: False)  # as on a cluster
    there = spark.sparkContext.defaultParallelism
    broker.create_topics(f"{name}-1-words", f"{name}-1-loud", f"{name}-2-loud", f"{name}-3-loud")
    broker.create_topics(f"{name}-2-words", partitions=there)
    broker.create_topics(f"{name}-3-words", partitions=there + 1)
    one, two, three = (
        KafkaStreams(
            loud(f"{name}-{number}"), f"{name}-{number}", broker.bootstrap_servers, spark=spark, state_dir=state_dir,
            real_time="5 seconds",
        )
        for number in (1, 2, 3)
    )  # fmt: skip
    with one, pytest.raises(StreamsError, match=f"has {there}, of which other applications keep 1 busy"):
        two.start()
    with pytest.raises(StreamsError, match=f"needs {there + 1}, and the session has {there}"):
        three.start()


def test_the_time_of_day_goes_on_during_a_batch(
    broker: Broker, spark: SparkSession, name: str, state_dir: Path
) -> None:
    broker.create_topics(f"{name}-words", f"{name}-times")
    builder = StreamsBuilder()
    builder.stream(f"{name}-words").map_values(lambda word: F.unix_millis(F.now())).to(f"{name}-times")
    streams = KafkaStreams(
        builder.build(), name, broker.bootstrap_servers, spark=spark, state_dir=state_dir, real_time="10 minutes"
    )
    with streams:
        for number in (1, 2):
            before = int(time.time() * 1000)
            broker.produce(f"{name}-words", [("a", "x")])
            wait_until(partial(_holds, broker, f"{name}-times", number), f"{number} records", 60)
            times = list(broker.consume(f"{name}-times", value=Serdes.long())["value"])
            assert before <= times[-1] <= int(time.time() * 1000)


def _holds(broker: Broker, topic: str, number: int) -> bool:
    return len(broker.consume(topic)) == number


def test_a_udf_is_refused_when_the_application_starts(
    broker: Broker, spark: SparkSession, name: str, state_dir: Path
) -> None:
    broker.create_topics(f"{name}-words", f"{name}-loud")
    loud = F.udf(lambda text: text.upper(), "string")
    builder = StreamsBuilder()
    builder.stream(f"{name}-words").map_values(lambda word: loud(word), name="loud").to(f"{name}-loud")
    streams = KafkaStreams(
        builder.build(), name, broker.bootstrap_servers, spark=spark, state_dir=state_dir, real_time="5 seconds"
    )
    with pytest.raises(StreamsError, match=r"sub-topology 0 .*\(loud\) calls F.udf .* leave real_time out"):
        streams.start()


def test_a_batch_shorter_than_spark_allows_is_refused(name: str) -> None:
    with pytest.raises(StreamsError, match=r"wants them to take 5 s"):
        KafkaStreams(shouting(name), name, "127.0.0.1:1", real_time="1 second")


def test_a_test_driver_beside_an_application_that_needs_all_slots_lets_its_batches_end_and_begin(
    broker: Broker, name: str, state_dir: Path
) -> None:
    seen = seen_by("driver_beside_real_time_program", broker.bootstrap_servers, name, str(state_dir))
    assert seen["state"] == "RUNNING", seen
    assert seen["sent"] == seen["added"] == seen["counted"] > 5, seen
