"""An application on three brokers, with three replicas of each topic: any one of them may die while it runs."""

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from streamskit.broker import EmbeddedCluster
from streamskit.common.errors import BrokerError
from streamskit.kafka import producer
from streamskit.kafka.connection import answers
from streamskit.testing import wait_until
from tests.integration.conftest import Run
from tests.integration.counting_program import counting, expected_counts, produce, written

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(nodes=3, settings={"num.partitions": "2"}) as running:
        yield running


def are_in_sync(cluster: EmbeddedCluster, name: str) -> bool:
    """Return whether each topic of an application has its three replicas."""
    topics = [topic for topic in cluster.topics() if topic.startswith((name, "__"))]
    return all(len(nodes) == 3 for topic in topics for nodes in cluster.in_sync_replicas(topic).values())


@pytest.mark.parametrize(
    ("guarantee", "dying"),
    [
        ("exactly_once", 1),
        pytest.param("exactly_once", 3, marks=pytest.mark.soak),
        pytest.param("at_least_once", 3, marks=pytest.mark.soak),
    ],
)
def test_brokers_of_three_die_one_after_another_while_an_application_runs_and_nothing_is_lost(
    guarantee: str, dying: int, cluster: EmbeddedCluster, name: str, run_on: Run
) -> None:
    cluster.create_topics(*(f"{name}-{suffix}" for suffix in ("in", "out", "counted")), partitions=2)
    with pytest.raises(BrokerError, match=f"There is no topic '{name}-coutned': did you mean '{name}-counted'"):
        cluster.in_sync_replicas(f"{name}-coutned")
    streams = run_on(cluster, counting(name), processing_guarantee=guarantee)
    for turn in range(dying):
        produce(cluster, name, range(turn * 100, turn * 100 + 50))
        cluster.kill_node(turn + 1)
        produce(cluster, name, range(turn * 100 + 50, turn * 100 + 100))
        streams.await_processed("120 seconds")
        cluster.start_node(turn + 1)
        wait_until(lambda: are_in_sync(cluster, name), "three replicas of each topic", 60)
    ids = range(dying * 100)
    assert {row.key: row.value for row in streams.store("counts").all()} == expected_counts(ids)
    times = written(cluster, name)
    assert set(times) == set(ids)
    if guarantee == "exactly_once":
        assert times == Counter(ids)


def test_a_broker_of_three_that_stands_still_keeps_nobody_from_asking_the_others(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_the_first_in_front(nodes: list[int]) -> None:
        nodes.sort()

    monkeypatch.setattr(random, "shuffle", with_the_first_in_front)  # as chance has it that a client asks that one
    cluster.nodes[1].pause()
    try:
        assert [answers(cluster.bootstrap_servers, 5) for _ in range(6)] == [True] * 6
    finally:
        cluster.nodes[1].resume()
    wait_until(lambda: are_in_sync(cluster, "__"), "three replicas of each topic", 60)


def test_replicas_are_asked_for_by_plain_names_where_topics_have_a_prefix(
    cluster: EmbeddedCluster, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMSKIT_PREFIX", "ann")
    cluster.create_topics(name, partitions=2)
    wait_until(lambda: cluster.in_sync_replicas(name) == {0: [1, 2, 3], 1: [1, 2, 3]}, "three replicas of each", 60)


def test_two_brokers_of_three_are_dead_and_a_producer_says_what_it_waited_for(
    cluster: EmbeddedCluster, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producer, "DELIVERY_SECONDS", 12)
    cluster.create_topics(name, partitions=2)
    wait_until(lambda: are_in_sync(cluster, name), "three replicas of the topic", 60)
    cluster.kill_node(1)
    cluster.kill_node(2)
    try:
        with pytest.raises(BrokerError, match=r"min\.insync\.replicas|more than half of the controllers"):
            cluster.produce(name, [{"value": b"a"}])
    finally:
        cluster.start()
    wait_until(lambda: are_in_sync(cluster, name), "three replicas of the topic", 60)
    monkeypatch.undo()
    assert cluster.produce(name, [{"value": b"a"}]) == 1
