"""A one-node broker for teaching: its address and port, its Kafka settings, and the files with them for Kafka."""

import random
import socket
from collections.abc import Collection, Mapping
from pathlib import Path

import javaproperties

from streamskit.common.errors import SetupError

NODE_ID = 1
HOST = "127.0.0.1"

TEACHING_SETTINGS: dict[str, str] = {
    "auto.create.topics.enable": "false",
    # one node can hold one replica
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # small and quick
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "share.coordinator.state.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    # how long a dead broker is waited for, before others lead its partitions or it may register again
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "500",
    # compaction that can be watched; the default buffer would take 128 MB of the heap
    "log.segment.bytes": str(16 * 1024 * 1024),
    "log.index.size.max.bytes": str(1024 * 1024),
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
    "log.segment.delete.delay.ms": "1000",
    # records of a course have timestamps from years ago, and retention by time would delete them within minutes
    "log.retention.ms": "-1",
    "log.retention.check.interval.ms": "5000",
    # ... or of years to come, which Kafka would refuse from an hour on
    "log.message.timestamp.after.max.ms": str(2**63 - 1),
}

LOGGING = """\
status = error
shutdownHook = disable
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = ${sys:kafka.logs.file}
appender.file.filePattern = ${sys:kafka.logs.file}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = [%d] %p %m (%c)%n
appender.file.policies.type = Policies
appender.file.policies.start.type = OnStartupTriggeringPolicy
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 5MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
"""


ALONE = {"broker.session.timeout.ms": "9000"}
"""Settings of a broker that no other could replace, so that its machine may stand still for a while (Kafka's default).
After a crash it starts without them, as its controller admits it only once its old session is over."""


def server_properties(data: Path, port: int, controller_port: int, extra: Mapping[str, str]) -> str:
    """Kafka's server.properties, in ASCII, for a node that is broker and controller, reachable on loopback only."""
    settings = {
        "process.roles": "broker,controller",
        "node.id": str(NODE_ID),
        "controller.quorum.voters": f"{NODE_ID}@{HOST}:{controller_port}",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": data.as_posix(),
        **TEACHING_SETTINGS,
        **extra,
    }
    return "".join(f"{javaproperties.join_key_value(name, str(value))}\n" for name, value in settings.items())


# Below the ports that systems hand out for outgoing connections: one of those could take the port while the
# broker is down, and a client that keeps reconnecting to it can even connect to itself.
CANDIDATES = range(20_000, 32_000)


def is_free(port: int) -> bool:
    """Whether a server could listen on the port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that just ended do not count
        try:
            probe.bind((HOST, port))
            probe.listen()
        except OSError:
            return False
    return True


def free_port(apart_from: Collection[int] = ()) -> int:
    """Return a port of 127.0.0.1 that nobody listens on.

    Args:
        apart_from: ports that are promised to others, who do not listen yet.

    Raises:
        SetupError: none was found.
    """
    for port in random.sample(CANDIDATES, 200):
        if port not in apart_from and is_free(port):
            return port
    raise SetupError(f"No free port found on {HOST} between {CANDIDATES.start} and {CANDIDATES.stop}.")


def free_ports(count: int) -> list[int]:
    """Return several ports of 127.0.0.1 that nobody listens on, each another one.

    Raises:
        SetupError: there are not so many.
    """
    drawn: list[int] = []
    for _ in range(count):
        drawn.append(free_port(apart_from=drawn))
    return drawn
