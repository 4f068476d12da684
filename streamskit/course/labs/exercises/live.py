"""Topics and applications of a check's own, on the shared broker; nothing is left of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

from streamskit.broker import Broker, shared_broker
from streamskit.runtime.streams import KafkaStreams
from streamskit.topology import Topology


@contextmanager
def topics(**partitions: int) -> Iterator[Broker]:
    """Yield a broker with new topics of so many partitions; an underscore in a name stands for a hyphen."""
    sizes = {name.replace("_", "-"): count for name, count in partitions.items()}
    broker = shared_broker()
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
