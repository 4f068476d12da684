"""The graph of a program: nodes, sub-topologies, Kafka's description of it and a picture."""

from streamskit.topology.nodes import Aggregate, Filter, MapValues, Node, Sink, Source, Store, ToStream
from streamskit.topology.topology import Topology

__all__ = ["Aggregate", "Filter", "MapValues", "Node", "Sink", "Source", "Store", "ToStream", "Topology"]
