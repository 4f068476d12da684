"""Records that were deleted before they were read, and topics that were made anew: noticed, told of, and counted."""

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition

from streamskit import KafkaStreams, Serdes, State, StreamsBuilder, Topology
from streamskit.broker.base import Broker
from streamskit.common.errors import StreamsError
from streamskit.environment.processes import wait_until
from streamskit.kafka.connection import admin_client
from tests.integration.conftest import Run

pytestmark = [pytest.mark.broker, pytest.mark.spark]

LONG = Serdes.long()


@pytest.fixture
def run(run_on: Run, broker: Broker) -> Run:
    """Starts the application, after the one before it is closed."""
    before: list[KafkaStreams] = []

    def start(topology: Topology, **options: Any) -> KafkaStreams:
        for streams in before:
            streams.close()
        before.append(run_on(broker, topology, **options))
        return before[-1]

    return start


@pytest.fixture
def totals(broker: Broker, name: str) -> Topology:
    """A sum by key; its topic has the numbers 0 to 9 with the key of their partition."""
    broker.create_topics(f"{name}-in", partitions=2)
    write(broker, name, range(10))
    builder = StreamsBuilder()
    builder.stream(f"{name}-in", value=LONG).group_by_key().reduce(lambda one, other: one + other, "totals")
    return builder.build()


def run_once(run: Run, topology: Topology) -> None:
    streams = run(topology)
    streams.await_processed()
    streams.close()


def write(broker: Broker, name: str, numbers: range, padding: int = 0) -> None:
    headers = [("padding", bytes(padding))]
    records = [{"key": f"p{n % 2}", "value": n, "partition": n % 2, "headers": headers} for n in numbers]
    broker.produce(f"{name}-in", records)


def delete(broker: Broker, topic: str, before: dict[int, int]) -> None:
    """Delete the records before an offset of each partition, as retention does in its time."""
    with admin_client(broker.bootstrap_servers) as admin:
        admin.delete_records({TopicPartition(topic, number): offset for number, offset in before.items()})


def totals_of(streams: KafkaStreams) -> dict[str, int]:
    return dict(streams.store("totals").all())


@pytest.fixture
def with_a_gap(totals: Topology, broker: Broker, name: str, run: Run) -> Topology:
    """The application has read 0 to 9; of 10 to 29 the three first of partition 0 are gone: 10, 12 and 14."""
    run_once(run, totals)
    write(broker, name, range(10, 30))
    delete(broker, f"{name}-in", {0: 8})
    return totals


def test_expired_records_stop_the_application_before_anything_starts(with_a_gap: Topology, run: Run) -> None:
    with pytest.raises(
        StreamsError,
        match=r"^3 records were deleted before sub-topology 0 of .* partition 0, offsets 5 to 7 \(3 records\)",
    ):
        run(with_a_gap)


def test_with_the_policy_continue_the_lost_records_are_counted_and_all_others_are_there(
    with_a_gap: Topology, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "streamskit"):
        streams = run(with_a_gap, on_data_loss="continue")
    streams.await_processed()
    assert totals_of(streams) == {"p0": sum(range(0, 30, 2)) - 10 - 12 - 14, "p1": sum(range(1, 30, 2))}
    assert streams.metrics()["lost"].tolist() == [3]
    assert "partition 0, offsets 5 to 7 (3 records)" in caplog.text
    streams = run(with_a_gap)
    streams.await_processed()
    assert streams.metrics()["lost"].tolist() == [0]


@pytest.fixture
def behind(totals: Topology, broker: Broker, name: str, run: Run, tmp_path: Path) -> Callable[[str], KafkaStreams]:
    """Starts the application, and has the records before offset 280 of partition 0 deleted when it has read a few."""
    arrived, gate = tmp_path / "arrived", tmp_path / "gate"

    def add(one: int, other: int) -> int:
        arrived.touch()
        wait_until(gate.exists, "the end of the records' deletion", 120)
        return one + other

    def start(policy: str) -> KafkaStreams:
        # A consumer fetches a megabyte ahead, and what it has is not lost: these are six.
        write(broker, name, range(10, 600), padding=20_000)
        builder = StreamsBuilder()
        builder.stream(f"{name}-in", value=LONG).group_by_key().reduce(add, "totals")
        streams = run(builder.build(), on_data_loss=policy, max_records_per_batch=100)
        wait_until(arrived.exists, "the first record in the slow function", 120)
        delete(broker, f"{name}-in", {0: 280})
        gate.touch()
        return streams

    return start


def test_records_that_expire_while_the_application_lags_stop_it(behind: Callable[[str], KafkaStreams]) -> None:
    streams = behind("stop")
    with pytest.raises(StreamsError, match=r"records were deleted before sub-topology 0 .* to 279 \(\d+ records\)"):
        streams.await_processed("120 seconds")
    assert streams.state is State.ERROR


@pytest.mark.soak
def test_with_the_policy_continue_it_goes_on_and_the_count_is_exact(behind: Callable[[str], KafkaStreams]) -> None:
    streams = behind("continue")
    streams.await_processed("120 seconds")
    lost = int(streams.metrics()["lost"].iloc[0])
    assert 0 < lost < 280
    read = 280 - lost  # the records before these were read, each of them, and those after the gap
    assert totals_of(streams) == {
        "p0": sum(range(0, 2 * read, 2)) + sum(range(560, 600, 2)),
        "p1": sum(range(1, 600, 2)),
    }


# Topics that were made anew.


def make_anew(broker: Broker, name: str, numbers: range) -> None:
    broker.delete_topics(f"{name}-in")
    broker.create_topics(f"{name}-in", partitions=2)
    write(broker, name, numbers)


@pytest.mark.parametrize(
    "numbers", [pytest.param(range(4), marks=pytest.mark.soak), range(100)], ids=["shorter", "longer"]
)
def test_a_source_topic_that_was_made_anew_is_refused(
    numbers: range, totals: Topology, broker: Broker, name: str, run: Run
) -> None:
    run_once(run, totals)
    make_anew(broker, name, numbers)
    with pytest.raises(StreamsError, match=rf"Topic '{name}-in' is not the one that .* has read: it was deleted and"):
        run(totals)


def test_with_the_policy_continue_a_topic_that_was_made_anew_is_read_from_its_first_record(
    totals: Topology, broker: Broker, name: str, run: Run
) -> None:
    run_once(run, totals)
    make_anew(broker, name, range(100))
    streams = run(totals, on_data_loss="continue")
    streams.await_processed()
    assert totals_of(streams) == {
        "p0": sum(range(0, 10, 2)) + sum(range(0, 100, 2)),
        "p1": sum(range(1, 10, 2)) + sum(range(1, 100, 2)),
    }


def test_a_changelog_that_was_deleted_is_refused_as_the_store_would_have_holes(
    totals: Topology, broker: Broker, name: str, run: Run
) -> None:
    run_once(run, totals)
    broker.delete_topics(f"{name}-totals-changelog")
    with pytest.raises(StreamsError, match=r"The changelog of store 'totals', topic .* was deleted since .* clean_up"):
        run(totals)


# Topics that a running application writes; Kafka's producer would take two minutes to find out.


@pytest.fixture
def told_totals(totals: Topology, broker: Broker, name: str) -> Topology:
    """The sum by key, also written to a topic."""
    broker.create_topics(f"{name}-out")
    builder = StreamsBuilder()
    table = builder.stream(f"{name}-in", value=LONG).group_by_key().reduce(lambda one, other: one + other, "totals")
    table.to_stream().to(f"{name}-out")
    return builder.build()


@pytest.mark.parametrize("guarantee", ["at_least_once", pytest.param("exactly_once", marks=pytest.mark.soak)])
def test_an_output_topic_that_is_deleted_stops_the_application_within_seconds_and_a_new_one_gets_all_that_comes(
    told_totals: Topology, broker: Broker, name: str, run: Run, guarantee: str
) -> None:
    streams = run(told_totals, processing_guarantee=guarantee)
    streams.await_processed()
    broker.delete_topics(f"{name}-out")
    write(broker, name, range(10, 12))
    wait_until(lambda: streams.state is State.ERROR, "the state ERROR", 30)
    assert str(streams.failure).startswith(
        f"Topic '{name}-out', which sub-topology 0 of '{name}' writes, is not there any more: it was deleted while"
    )
    broker.create_topics(f"{name}-out")
    streams = run(told_totals, processing_guarantee=guarantee)
    streams.await_processed()
    out = broker.consume(f"{name}-out", value=LONG, isolation="read_committed")
    assert dict(zip(out["key"], out["value"], strict=True)) == totals_of(streams) == {"p0": 30, "p1": 36}


def test_a_changelog_that_is_deleted_stops_the_application_within_seconds_even_if_nothing_comes(
    totals: Topology, broker: Broker, name: str, run: Run
) -> None:
    streams = run(totals)
    streams.await_processed()
    broker.delete_topics(f"{name}-totals-changelog")
    wait_until(lambda: streams.state is State.ERROR, "the state ERROR", 30)
    assert str(streams.failure).startswith(
        f"The changelog of store 'totals', topic '{name}-totals-changelog', was deleted while '{name}' ran"
    )


def test_an_output_topic_that_is_made_anew_at_once_is_written_on(
    told_totals: Topology, broker: Broker, name: str, run: Run
) -> None:
    streams = run(told_totals)
    streams.await_processed()
    broker.delete_topics(f"{name}-out")
    broker.create_topics(f"{name}-out")
    write(broker, name, range(10, 12))
    streams.await_processed()
    assert set(broker.consume(f"{name}-out", value=LONG)["value"]) == {30, 36}


def test_a_topic_that_is_made_anew_while_the_application_runs_stops_it_before_a_record_is_skipped(
    totals: Topology, broker: Broker, name: str, run: Run
) -> None:
    streams = run(totals, commit_interval="4 seconds")
    streams.await_processed()
    make_anew(broker, name, range(100))
    with pytest.raises(StreamsError, match=rf"Topic '{name}-in' is not the one that .* has read: it was deleted and"):
        streams.await_processed()
    assert totals_of(streams) == {"p0": sum(range(0, 10, 2)), "p1": sum(range(1, 10, 2))}


def test_with_the_policy_continue_a_running_application_reads_a_topic_made_anew_once_and_from_its_first_record(
    totals: Topology, broker: Broker, name: str, run: Run
) -> None:
    streams = run(totals, on_data_loss="continue", commit_interval="4 seconds")
    streams.await_processed()
    make_anew(broker, name, range(100))
    twice = {
        "p0": sum(range(0, 10, 2)) + sum(range(0, 100, 2)),
        "p1": sum(range(1, 10, 2)) + sum(range(1, 100, 2)),
    }
    wait_until(lambda: totals_of(streams) == twice, "the totals of both topics", 60)
    streams = run(totals)
    streams.await_processed()
    assert totals_of(streams) == twice


def test_partitions_that_are_added_while_an_application_with_state_runs_are_refused_there_and_at_the_next_start(
    totals: Topology, broker: Broker, name: str, run: Run
) -> None:
    streams = run(totals)
    streams.await_processed()
    with admin_client(broker.bootstrap_servers) as admin:
        admin.create_partitions({f"{name}-in": 3})
    broker.produce(f"{name}-in", [{"key": "p2", "value": 1, "partition": 2}])
    refused = (
        rf"^The topics of sub-topology 0 of '{name}' \('{name}-in'\) have 3 partitions now, and it keeps state of 2"
    )
    wait_until(lambda: streams.state is State.ERROR, "the state ERROR", 60)
    assert re.search(refused, str(streams.failure))
    with pytest.raises(StreamsError, match=refused):
        run(totals)
