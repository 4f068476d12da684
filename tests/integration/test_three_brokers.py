"""An application on three brokers, with three replicas of each topic: any one of them may die while it runs."""

import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from streamskit.broker import EmbeddedBroker, ExternalBroker, java_process
from streamskit.broker.settings import HOST, free_port
from streamskit.kafka.connection import admin_client
from streamskit.testing import wait_until
from tests.integration.conftest import Run
from tests.integration.counting_program import counting, expected_counts, produce, written

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.timeout(300)]

REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "num.partitions": "2",
}


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[EmbeddedBroker]]:
    """Three nodes of one cluster."""
    ports = {node: (free_port(), free_port()) for node in (1, 2, 3)}
    voters = ",".join(f"{node}@{HOST}:{controller}" for node, (_, controller) in ports.items())
    made = []
    for node, (port, controller) in ports.items():
        own = {
            "node.id": str(node),
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
        }
        data = tmp_path_factory.mktemp(f"node-{node}")
        made.append(EmbeddedBroker(data_dir=data, port=port, settings=REPLICATED | own, heap="256m"))
    one_id = java_process.new_cluster_id()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(java_process, "new_cluster_id", lambda: one_id)
        starts = [threading.Thread(target=each.start) for each in made]  # none answers before a second is there
        for start in starts:
            start.start()
        for start in starts:
            start.join(90)
    try:
        yield made
    finally:
        for each in made:
            each.kill()


def are_in_sync(cluster: ExternalBroker, name: str) -> bool:
    """Return whether each topic of an application has its three replicas."""
    with admin_client(cluster.bootstrap_servers) as client:
        topics = [topic for topic in cluster.topics() if topic.startswith((name, "__"))]
        described = client.describe_topics(topics)
    return all(len(part["isr_nodes"]) == 3 for topic in described for part in topic["partitions"])


@pytest.mark.parametrize(
    ("guarantee", "dying"),
    [
        ("exactly_once", 1),
        pytest.param("exactly_once", 3, marks=pytest.mark.soak),
        pytest.param("at_least_once", 3, marks=pytest.mark.soak),
    ],
)
def test_brokers_of_three_die_one_after_another_while_an_application_runs_and_nothing_is_lost(
    guarantee: str, dying: int, nodes: list[EmbeddedBroker], name: str, run_on: Run
) -> None:
    cluster = ExternalBroker(",".join(node.bootstrap_servers for node in nodes))
    cluster.create_topics(*(f"{name}-{suffix}" for suffix in ("in", "out", "counted")), partitions=2)
    streams = run_on(cluster, counting(name), processing_guarantee=guarantee)
    for turn, node in enumerate(nodes[:dying]):
        produce(cluster, name, range(turn * 100, turn * 100 + 50))
        node.kill()
        produce(cluster, name, range(turn * 100 + 50, turn * 100 + 100))
        streams.await_processed("120 seconds")
        node.start()
        wait_until(lambda: are_in_sync(cluster, name), "three replicas of each topic", 60)
    ids = range(dying * 100)
    assert {row.key: row.value for row in streams.store("counts").all()} == expected_counts(ids)
    times = written(cluster, name)
    assert set(times) == set(ids)
    if guarantee == "exactly_once":
        assert times == Counter(ids)
