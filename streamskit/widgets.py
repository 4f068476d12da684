"""Live views and pictures for notebooks. Importing this imports ipywidgets and matplotlib; the rest does without."""

from streamskit.queries.metadata import InstanceState, TaskState
from streamskit.views.live.cluster_snapshot import Instances
from streamskit.views.live.cluster_view import ClusterView
from streamskit.views.live.fault_panel import FaultPanel
from streamskit.views.live.join_view import JoinView
from streamskit.views.live.store_source import SnapshotSource
from streamskit.views.live.store_view import StoreView
from streamskit.views.live.topic_view import TopicView
from streamskit.views.live.topology_view import TopologyView
from streamskit.views.live.window_view import WindowView
from streamskit.views.task_timelines import hosting, tasks_timeline
from streamskit.views.timelines import (
    as_table,
    join_timeline,
    punctuation_timeline,
    stream_time,
    table_timeline,
    windows_timeline,
)

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
    "as_table",
    "hosting",
    "join_timeline",
    "punctuation_timeline",
    "stream_time",
    "table_timeline",
    "tasks_timeline",
    "windows_timeline",
]
