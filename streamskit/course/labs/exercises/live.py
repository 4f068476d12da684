"""Topics and applications of a check's own, on the shared broker; nothing is left of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

from filelock import FileLock, Timeout

from streamskit.broker import Broker, shared_broker
from streamskit.common.errors import StreamsKitError
from streamskit.common.paths import state_dir
from streamskit.runtime.streams import KafkaStreams
from streamskit.topology import Topology

WAIT = 300.0
"""For how many seconds a check waits for another one."""


@contextmanager
def alone() -> Iterator[None]:
    """Let one check at a time, of all notebooks of this project, use topics and applications that all know by name.

    Raises:
        StreamsKitError: another check goes on for five minutes.
    """
    lock = FileLock(state_dir() / "live-check.lock", timeout=WAIT)
    try:
        lock.acquire()
    except Timeout:
        raise StreamsKitError(
            "Another check on the broker has been going on for five minutes, in another notebook of this project. "
            "Wait until it is done, or shut that notebook's kernel down, and run this one again."
        ) from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def topics(**partitions: int) -> Iterator[Broker]:
    """Yield a broker with new topics of so many partitions; an underscore in a name stands for a hyphen."""
    sizes = {name.replace("_", "-"): count for name, count in partitions.items()}
    broker = shared_broker()
    with alone():
        broker.delete_topics(*sizes, missing_ok=True)
        for name, count in sizes.items():
            broker.create_topics(name, partitions=count)
        try:
            yield broker
        finally:
            broker.delete_topics(*sizes, missing_ok=True)


@contextmanager
def application(topology: Topology, application_id: str, broker: Broker, **options: Any) -> Iterator[KafkaStreams]:
    """Yield an application that has not started yet."""
    with TemporaryDirectory(prefix="streamskit-lab-") as folder:
        options = {"state_dir": folder, **options}
        streams = KafkaStreams(topology, application_id, broker.bootstrap_servers, **options)
        streams.clean_up()
        try:
            yield streams
        finally:
            streams.close()
            streams.clean_up()
