"""Several real Kafka brokers on this machine that form one cluster: partitions with replicas, leaders that change."""

import threading
from collections.abc import Mapping

from streamskit.broker import java_process
from streamskit.broker.base import Broker
from streamskit.broker.embedded import EmbeddedBroker
from streamskit.broker.settings import HOST, TEACHING_SETTINGS, free_ports
from streamskit.common.errors import BrokerError
from streamskit.common.names import own_name, unknown_name
from streamskit.kafka.connection import admin_client

MOST_NODES = 9


class EmbeddedCluster(Broker):
    """A Kafka cluster of several embedded brokers on loopback; each topic has up to three replicas.

    It starts all nodes at once, keeps its data in temporary folders and ends with this Python process. Each node takes
    about 250 MB of memory.

    Args:
        nodes: how many brokers, from 1 to 9; each is also a controller, so more than half of them have to be alive.
        settings: Kafka broker settings for every node, on top of those for teaching.
        heap: the maximum heap of each node's Java.

    Raises:
        BrokerError: `nodes` is not such a number.
        SetupError: from `start()`: there is a problem with Java, the jars, a port or the disk.

    >>> with EmbeddedCluster(nodes=3) as cluster:  # doctest: +SKIP
    ...     cluster.create_topics("trades", partitions=2)
    ...     cluster.kill_node(1)
    ...     cluster.in_sync_replicas("trades")
    {0: [2, 3], 1: [2, 3]}

    Mirrors `EmbeddedKafkaCluster` of Kafka Streams' own tests.
    """

    kind = "embedded cluster"

    def __init__(self, nodes: int = 3, settings: Mapping[str, str] | None = None, heap: str = "256m") -> None:
        if not isinstance(nodes, int) or isinstance(nodes, bool) or not 1 <= nodes <= MOST_NODES:
            raise BrokerError(f"nodes={nodes!r} is not a number from 1 to {MOST_NODES}.")
        self._count, self._settings, self._heap = nodes, dict(settings or {}), heap
        self.nodes: dict[int, EmbeddedBroker] = {}
        """The brokers by their number, from 1 up; empty before the first start."""

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect to: the addresses of all nodes, with commas.

        Raises:
            BrokerError: before the first start.
        """
        if not self.nodes:
            raise BrokerError("This cluster has no address before its first start: call cluster.start().")
        return ",".join(node.bootstrap_servers for node in self.nodes.values())

    @property
    def is_running(self) -> bool:
        """Whether enough nodes are alive to agree: more than half."""
        return sum(node.is_running for node in self.nodes.values()) > self._count // 2

    def start(self) -> None:
        """Start the nodes that do not run, and return once all answer.

        Raises:
            BrokerError: a node does not start; then none is left running.
            SetupError: a port is taken, or the disk is full.
        """
        if not self.nodes:
            self.nodes = self._made()
        failures: list[BaseException] = []

        def start(node: EmbeddedBroker) -> None:
            try:
                node.start()
            except BaseException as failure:  # a thread's failure would be lost
                failures.append(failure)

        # None of them answers before more than half are running.
        starts = [threading.Thread(target=start, args=[node]) for node in self.nodes.values()]
        for each in starts:
            each.start()
        for each in starts:
            each.join()
        if failures:
            self.kill()
            raise failures[0]

    def stop(self) -> None:
        """Kill all nodes; their data stays until the object is gone."""
        for node in self.nodes.values():
            node.kill()  # in an orderly stop, the last node would wait for controllers that are gone

    kill = stop

    def pause(self) -> None:
        """Freeze all nodes (SIGSTOP): they keep their connections and answer nothing until `resume()`."""
        for node in self.nodes.values():
            if node.is_running:
                node.pause()

    def resume(self) -> None:
        """Let paused nodes go on (SIGCONT)."""
        for node in self.nodes.values():
            if node.is_running:
                node.resume()

    def kill_node(self, number: int) -> None:
        """Kill one node with signal 9; the others elect new leaders of its partitions.

        Raises:
            BrokerError: there is no such node.
        """
        self._node(number).kill()

    def start_node(self, number: int) -> None:
        """Start one node again on its data; it fetches what it has missed.

        Raises:
            BrokerError: there is no such node.
        """
        self._node(number).start()

    def in_sync_replicas(self, topic: str) -> dict[int, list[int]]:
        """Return which nodes have all records of each partition of a topic.

        Raises:
            BrokerError: there is no such topic.
        """
        with admin_client(self.bootstrap_servers) as client:
            (described,) = client.describe_topics([own_name(topic)])
        if described["error_code"]:
            raise BrokerError(f"{unknown_name('topic', topic, self.topics())} create_topics({topic!r}) makes it.")
        return {part["partition_index"]: sorted(part["isr_nodes"]) for part in described["partitions"]}

    def __repr__(self) -> str:
        living = [number for number, node in self.nodes.items() if node.is_running]
        return f"EmbeddedCluster({self._count} nodes, running: {living})"

    def _node(self, number: int) -> EmbeddedBroker:
        if number not in self.nodes:
            known = ", ".join(map(str, self.nodes)) or "none before its first start"
            raise BrokerError(f"This cluster has no node {number!r}; its nodes: {known}.")
        return self.nodes[number]

    def _made(self) -> dict[int, EmbeddedBroker]:
        drawn = free_ports(2 * self._count)
        ports = dict(enumerate(zip(drawn[::2], drawn[1::2], strict=True), start=1))
        replicas, enough = min(3, self._count), min(2, self._count)
        shared = {
            "broker.session.timeout.ms": TEACHING_SETTINGS["broker.session.timeout.ms"],  # others replace a dead one
            "controller.quorum.voters": ",".join(f"{number}@{HOST}:{own}" for number, (_, own) in ports.items()),
            "default.replication.factor": f"{replicas}",
            "min.insync.replicas": f"{enough}",
            "offsets.topic.replication.factor": f"{replicas}",
            "transaction.state.log.replication.factor": f"{replicas}",
            "transaction.state.log.min.isr": f"{enough}",
        }
        cluster_id = java_process.new_cluster_id()
        return {
            number: EmbeddedBroker(
                port=port,
                settings=shared
                | self._settings
                | {
                    "node.id": f"{number}",
                    "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
                },
                heap=self._heap,
                cluster_id=cluster_id,
            )
            for number, (port, controller) in ports.items()
        }

    def _discard(self) -> None:
        for node in self.nodes.values():
            node._discard()
