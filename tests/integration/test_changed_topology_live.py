"""A stopped application is started with another topology, or without the folder it had."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from streamskit import KafkaStreams, Serdes, StreamsBuilder, Topology
from streamskit.broker.base import Broker
from streamskit.common.errors import StreamsError
from streamskit.kafka.connection import admin_client
from streamskit.planning.plan import Plan
from streamskit.runtime.recovery.fingerprint import Fingerprint
from streamskit.runtime.spark_io import KafkaTopics
from tests.integration.conftest import Run

pytestmark = [pytest.mark.broker, pytest.mark.spark]

LONG = Serdes.long()


@pytest.fixture
def run(run_on: Run, broker: Broker) -> Run:
    """Runs the application until all is processed, after the one before it is closed."""
    before: list[KafkaStreams] = []

    def start(topology: Topology, **options: Any) -> KafkaStreams:
        for streams in before:
            streams.close()
        before.append(run_on(broker, topology, **options))
        before[-1].await_processed()
        return before[-1]

    return start


def write(broker: Broker, name: str, numbers: range) -> None:
    broker.produce(f"{name}-in", [(f"k{n % 5}", n) for n in numbers])


def totals(name: str, more: bool = False, reducer: str | None = None) -> Topology:
    """A sum by key; with `more` a step before it, so that all numbers in names move by one, and a sink after it."""
    builder = StreamsBuilder()
    numbers = builder.stream(f"{name}-in", value=LONG)
    if more:
        numbers = numbers.map_values(lambda v: v + 0)
    table = numbers.group_by_key().reduce(lambda one, other: one + other, "totals", name=reducer)
    if more:
        table.to_stream().to(f"{name}-out", value=LONG)
    return builder.build()


def expected_totals(count: int) -> dict[str, int]:
    return {f"k{k}": sum(range(k, count, 5)) for k in range(5)}


def test_a_step_without_state_and_a_sink_more_go_on_with_the_state_that_the_advice_brings_back(
    broker: Broker, name: str, run: Run
) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out", partitions=2)
    write(broker, name, range(100))
    run(totals(name)).close()
    write(broker, name, range(100, 200))
    with pytest.raises(StreamsError, match=r"name='KSTREAM-REDUCE-0000000001' gives this one its state back"):
        run(totals(name, more=True))
    streams = run(totals(name, more=True, reducer="KSTREAM-REDUCE-0000000001"))
    assert dict(streams.store("totals").all()) == expected_totals(200)
    written = broker.consume(f"{name}-out", value=LONG)
    assert dict(zip(written["key"], written["value"], strict=True)) == expected_totals(200)


def test_what_does_not_fit_is_refused_with_the_change_and_runs_after_clean_up(
    broker: Broker, name: str, run: Run, state_dir: Path
) -> None:
    broker.create_topics(f"{name}-in", partitions=2)
    write(broker, name, range(100))
    run(totals(name)).close()
    builder = StreamsBuilder()
    builder.stream(f"{name}-in", value=LONG).group_by_key().count("totals")
    topology = builder.build()
    with pytest.raises(
        StreamsError,
        match=r"kept the state of KSTREAM-REDUCE-0000000001 \(Reduce\) and now keeps that of "
        r"KSTREAM-AGGREGATE-0000000001 \(Count by Spark\)\. .*clean_up",
    ):
        run(topology)
    KafkaStreams(topology, name, broker.bootstrap_servers, state_dir=state_dir).clean_up()
    streams = run(topology)
    assert dict(streams.store("totals").all()) == {f"k{k}": 20 for k in range(5)}


@pytest.mark.soak
def test_more_partitions_are_refused_where_keys_have_state(broker: Broker, name: str, run: Run) -> None:
    broker.create_topics(f"{name}-in", partitions=2)
    write(broker, name, range(10))
    run(totals(name)).close()
    with admin_client(broker.bootstrap_servers) as admin:
        admin.create_partitions({f"{name}-in": 4})
    with pytest.raises(StreamsError, match=r"have 4 partitions now, and it keeps state of 2: partitions were added"):
        run(totals(name))


@pytest.mark.soak
def test_a_topic_more_is_read_from_its_beginning_and_sub_topologies_are_added(
    broker: Broker, name: str, run: Run
) -> None:
    topics = [f"{name}-{each}" for each in ("in", "more", "other", "out", "else")]
    broker.create_topics(*topics)

    def copy(*sources: str) -> StreamsBuilder:
        builder = StreamsBuilder()
        builder.stream(*(f"{name}-{each}" for each in sources)).map_values(F.upper).to(f"{name}-out")
        return builder

    for topic in topics[:3]:
        broker.produce(topic, [("k", f"before {topic}")])
    run(copy("in").build()).close()
    builder = copy("in", "more")
    builder.stream(f"{name}-other").to(f"{name}-else")
    run(builder.build())
    for topic in topics[:3]:
        broker.produce(topic, [("k", f"after {topic}")])
    KafkaStreams.running[name].await_processed()
    wanted = [f"{when} {topic}".upper() for topic in topics[:2] for when in ("before", "after")]
    assert sorted(broker.consume(f"{name}-out")["value"]) == sorted(wanted)
    assert broker.consume(f"{name}-else")["value"].tolist() == [f"before {name}-other", f"after {name}-other"]


def test_a_start_that_breaks_off_between_two_queries_leaves_a_note_of_what_has_begun(
    broker: Broker, name: str, run: Run, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out")
    write(broker, name, range(10))
    begin = KafkaTopics.start

    def begin_the_first(
        topics: KafkaTopics, plan: Plan, checkpoint: Path, producers: str, goes_on: bool
    ) -> StreamingQuery:
        if plan.number == 1:
            raise StreamsError("the machine went down")
        query = begin(topics, plan, checkpoint, producers, goes_on)
        query.processAllAvailable()
        return query

    with monkeypatch.context() as patched:
        patched.setattr(KafkaTopics, "start", begin_the_first)
        with pytest.raises(StreamsError, match="the machine went down"):
            run(in_two_steps(name))
    assert set(Fingerprint.load(state_dir / name).queries) == {"0", "1"}
    assert dict(run(in_two_steps(name)).store("counts").all()) == dict.fromkeys(range(10), 1)


# Without the folder.


def in_two_steps(name: str) -> Topology:
    """A count of the numbers by their last digit, through a repartition topic."""
    builder = StreamsBuilder()
    numbers = builder.stream(f"{name}-in", value=LONG)
    numbers.group_by(lambda k, v: v % 10).count("counts").to_stream().to(f"{name}-out", value=LONG)
    return builder.build()


def lose_all(broker: Broker, name: str, state_dir: Path) -> None:
    """Delete an application's folder, and the copies that it would be rebuilt of."""
    shutil.rmtree(state_dir / name)
    broker.delete_topics(*(topic for topic in broker.topics() if re.fullmatch(rf"{name}-[\d.]+-checkpoint", topic)))


def test_without_its_folder_and_copies_of_it_an_application_begins_anew_and_is_exact(
    broker: Broker, name: str, run: Run, state_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out", partitions=2)
    write(broker, name, range(100))
    run(in_two_steps(name)).close()
    lose_all(broker, name, state_dir)
    write(broker, name, range(100, 120))
    streams = run(in_two_steps(name))
    # What the repartition topic held from before is not counted again.
    assert dict(streams.store("counts").all()) == dict.fromkeys(range(10), 12)
    assert "It begins anew: its internal topics are emptied" in caplog.text


def test_without_its_folder_and_copies_of_it_an_application_that_cannot_be_exact_is_refused(
    broker: Broker, name: str, run: Run, state_dir: Path
) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out", config={"cleanup.policy": "compact"})
    write(broker, name, range(10))
    run(in_two_steps(name), processing_guarantee="exactly_once").close()
    lose_all(broker, name, state_dir)
    with pytest.raises(StreamsError, match=f"topic '{name}-in' is compacted, so that records which it has read as a"):
        run(in_two_steps(name))
    broker.delete_topics(f"{name}-in")
    broker.create_topics(f"{name}-in")
    with pytest.raises(StreamsError, match=f"would write all its results to '{name}-out' a second time"):
        run(in_two_steps(name), processing_guarantee="exactly_once")


@pytest.mark.soak
def test_without_its_folder_and_without_all_its_records_an_application_is_refused(
    broker: Broker, name: str, run: Run, state_dir: Path
) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out")
    write(broker, name, range(100))
    run(in_two_steps(name)).close()
    lose_all(broker, name, state_dir)
    with admin_client(broker.bootstrap_servers) as admin:
        admin.delete_records({TopicPartition(f"{name}-in", 0): 40})
    with pytest.raises(StreamsError, match=rf"cannot be made anew: 40 records of topic '{name}-in', partition 0, are"):
        run(in_two_steps(name))
    KafkaStreams(in_two_steps(name), name, broker.bootstrap_servers, state_dir=state_dir).clean_up()
    assert dict(run(in_two_steps(name)).store("counts").all()) == dict.fromkeys(range(10), 6)


@pytest.mark.parametrize("part", ["0", "0/offsets"])
def test_without_a_part_of_its_folder_an_application_is_refused(
    part: str, broker: Broker, name: str, run: Run, state_dir: Path
) -> None:
    broker.create_topics(f"{name}-in", f"{name}-out")
    write(broker, name, range(100))
    run(in_two_steps(name)).close()
    shutil.rmtree(state_dir / name / part)
    with pytest.raises(StreamsError, match=r"The checkpoint of sub-topology 0 of .* is gone, or a part of it .*clean_"):
        run(in_two_steps(name))
