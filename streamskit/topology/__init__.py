"""The graph of a program: nodes, sub-topologies, Kafka's description of it and a picture.

The kinds of nodes are in `streamskit.topology.nodes`.
"""

from streamskit.topology.topology import Topology, check_topology

__all__ = ["Topology", "check_topology"]
