"""Real Kafka brokers for the course: embedded in the project, in a container, or running elsewhere."""

from streamskit.broker.base import Broker
from streamskit.broker.container import ContainerBroker
from streamskit.broker.embedded import EmbeddedBroker
from streamskit.broker.embedded_cluster import EmbeddedCluster
from streamskit.broker.external import ExternalBroker
from streamskit.broker.shared import find_shared_broker, shared_broker, stop_shared_broker

__all__ = [
    "Broker",
    "ContainerBroker",
    "EmbeddedBroker",
    "EmbeddedCluster",
    "ExternalBroker",
    "find_shared_broker",
    "shared_broker",
    "stop_shared_broker",
]
