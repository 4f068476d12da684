"""A Spark standalone cluster on this machine: `Cluster`, its workers and its executors."""

from streamskit.cluster.cluster import Cluster
from streamskit.cluster.reports import Executor, Worker

__all__ = ["Cluster", "Executor", "Worker"]
