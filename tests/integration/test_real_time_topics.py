"""What happens to topics while a program without state reads them, which runs in real-time mode by default."""

import re
from functools import partial
from typing import Any

import pytest
from kafka import TopicPartition

from streamskit import KafkaStreams, Serdes, State, StreamsBuilder, StreamsError, Topology
from streamskit.broker import Broker
from streamskit.kafka.connection import admin_client
from streamskit.testing import wait_until
from tests.integration.conftest import Run

pytestmark = [pytest.mark.broker, pytest.mark.spark]

LONG = Serdes.long()


@pytest.fixture
def copies(broker: Broker, name: str) -> Topology:
    """A copy of a topic, which has the numbers 0 to 9, by turns in its two partitions."""
    broker.create_topics(f"{name}-in", f"{name}-out", partitions=2)
    write(broker, name, range(10))
    builder = StreamsBuilder()
    builder.stream(f"{name}-in", value=LONG).map_values(lambda v: v + 0).to(f"{name}-out", value=LONG)
    return builder.build()


def write(broker: Broker, name: str, numbers: range, partitions: int = 2) -> None:
    broker.produce(
        f"{name}-in", [{"key": f"p{n % partitions}", "value": n, "partition": n % partitions} for n in numbers]
    )


def copied(broker: Broker, name: str) -> list[int]:
    return sorted(broker.consume(f"{name}-out", value=LONG)["value"])


def started(run_on: Run, broker: Broker, topology: Topology, **options: Any) -> KafkaStreams:
    streams = run_on(broker, topology, **options)
    assert "runs in real-time mode" in streams.explain()
    return streams


def with_a_gap(run_on: Run, broker: Broker, name: str, copies: Topology) -> None:
    """Have the application read 0 to 9; of 10 to 29 the first three of partition 0 are deleted then: 10, 12 and 14."""
    streams = started(run_on, broker, copies)
    streams.await_processed()
    streams.close()
    write_with_a_gap(broker, name)


def write_with_a_gap(broker: Broker, name: str) -> None:
    """Write 10 to 29, and delete what is in partition 0 before 16, as retention does in its time."""
    write(broker, name, range(10, 30))
    with admin_client(broker.bootstrap_servers) as admin:
        admin.delete_records({TopicPartition(f"{name}-in", 0): 8})


def test_records_that_expired_before_the_start_refuse_it_or_are_counted(
    broker: Broker, name: str, run_on: Run, copies: Topology
) -> None:
    with_a_gap(run_on, broker, name, copies)
    with pytest.raises(StreamsError, match=r"^3 records were deleted before sub-topology 0 of .* offsets 5 to 7"):
        run_on(broker, copies)
    streams = started(run_on, broker, copies, on_data_loss="continue")
    streams.await_processed()
    assert copied(broker, name) == [n for n in range(30) if n not in (10, 12, 14)]
    assert streams.metrics()["lost"].tolist() == [3]


@pytest.mark.parametrize("policy", ["stop", "continue"])
def test_records_that_expire_while_it_is_paused_stop_it_or_are_counted(
    policy: str, broker: Broker, name: str, run_on: Run, copies: Topology
) -> None:
    streams = started(run_on, broker, copies, on_data_loss=policy)
    streams.await_processed()
    streams.pause()
    write_with_a_gap(broker, name)
    streams.resume()
    if policy == "stop":
        with pytest.raises(StreamsError, match=r"^3 records were deleted before sub-topology 0 of .* offsets 5 to 7"):
            streams.await_processed()
        return
    streams.await_processed()
    # The other partition's records of the batch that failed may be there twice: at least once.
    assert set(copied(broker, name)) == {*range(30)} - {10, 12, 14}
    assert streams.metrics()["lost"].tolist() == [3]


def make_anew(broker: Broker, name: str, numbers: range) -> None:
    broker.delete_topics(f"{name}-in")
    broker.create_topics(f"{name}-in", partitions=2)
    write(broker, name, numbers)


def test_a_topic_that_is_made_anew_stops_the_application(
    broker: Broker, name: str, run_on: Run, copies: Topology
) -> None:
    streams = started(run_on, broker, copies)
    streams.await_processed()
    make_anew(broker, name, range(100, 200))
    wait_until(lambda: streams.state is State.ERROR, "the state ERROR", 60)
    # It may look just when the old topic is gone, and the new one not there yet.
    assert re.match(rf"Topic '{name}-in'.* is not (the one that|there any more)", str(streams.failure))


@pytest.mark.parametrize("options", [{}, {"real_time": "off"}], ids=["real time", "micro-batches"])
def test_a_topic_that_is_deleted_stops_the_application_with_its_name(
    broker: Broker, name: str, run_on: Run, copies: Topology, options: dict[str, str]
) -> None:
    streams = run_on(broker, copies, **options)
    streams.await_processed()
    broker.delete_topics(f"{name}-in")
    wait_until(lambda: streams.state is State.ERROR, "the state ERROR", 60)
    assert re.match(
        rf"Topic '{name}-in', which sub-topology 0 of '{name}' reads, is not there any more: .* Create it again",
        str(streams.failure),
    )


@pytest.mark.parametrize("options", [{}, {"real_time": "off"}], ids=["real time", "micro-batches"])
def test_with_the_policy_continue_it_waits_for_a_topic_that_is_made_anew(
    broker: Broker, name: str, run_on: Run, copies: Topology, options: dict[str, str]
) -> None:
    streams = run_on(broker, copies, on_data_loss="continue", **options)
    streams.await_processed()
    broker.delete_topics(f"{name}-in")
    wait_until(lambda: streams.state is State.REBALANCING, "the state REBALANCING", 60)
    broker.create_topics(f"{name}-in", partitions=2)
    write(broker, name, range(100, 200))
    wait_until(partial(_has_all, broker, name, {*range(10), *range(100, 200)}), "the records of both topics", 60)
    assert streams.state is State.RUNNING


def test_with_the_policy_continue_a_topic_that_is_made_anew_is_read_from_its_first_record(
    broker: Broker, name: str, run_on: Run, copies: Topology
) -> None:
    streams = started(run_on, broker, copies, on_data_loss="continue")
    streams.await_processed()
    make_anew(broker, name, range(100, 200))
    wait_until(partial(_has_all, broker, name, {*range(10), *range(100, 200)}), "the records of both topics", 60)
    streams.await_processed()
    assert streams.state is State.RUNNING


@pytest.mark.parametrize("partitions", [3, 40], ids=["few", "more than slots"])
def test_partitions_that_are_added_are_read_too(
    partitions: int, broker: Broker, name: str, run_on: Run, copies: Topology
) -> None:
    streams = started(run_on, broker, copies)
    streams.await_processed()
    with admin_client(broker.bootstrap_servers) as admin:
        admin.create_partitions({f"{name}-in": partitions})
    write(broker, name, range(10, 90), partitions=partitions)
    # await_processed() would end the batch, and the tasks that wait for a slot would have their turn.
    wait_until(partial(_has_all, broker, name, set(range(90))), "the records of all partitions", 60)
    streams.await_processed()
    assert copied(broker, name) == list(range(90))


def _has_all(broker: Broker, name: str, numbers: set[int]) -> bool:
    return set(copied(broker, name)) == numbers
