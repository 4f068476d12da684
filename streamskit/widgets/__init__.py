"""Live views for notebooks. Importing this imports ipywidgets; the rest of streamskit does without."""

from streamskit.interactive.instance_states import InstanceState, TaskState
from streamskit.widgets.asking import SnapshotSource
from streamskit.widgets.cluster_snapshot import Instances
from streamskit.widgets.cluster_view import ClusterView
from streamskit.widgets.fault_panel import FaultPanel
from streamskit.widgets.join_view import JoinView
from streamskit.widgets.store_view import StoreView
from streamskit.widgets.topic_view import TopicView
from streamskit.widgets.topology_view import TopologyView
from streamskit.widgets.window_view import WindowView

__all__ = [
    "ClusterView",
    "FaultPanel",
    "InstanceState",
    "Instances",
    "JoinView",
    "SnapshotSource",
    "StoreView",
    "TaskState",
    "TopicView",
    "TopologyView",
    "WindowView",
]
