"""Live views and pictures for notebooks. Importing this imports ipywidgets; matplotlib comes with the first picture."""

from streamskit.course.feed_panel import FeedPanel
from streamskit.queries.metadata import InstanceState, TaskState
from streamskit.views.cluster_view import ClusterView, Instances
from streamskit.views.dashboard import Dashboard
from streamskit.views.execution_diagram import execution_diagram
from streamskit.views.fault_panel import FaultPanel
from streamskit.views.join_view import JoinView
from streamskit.views.store_snapshot import SnapshotSource
from streamskit.views.store_view import ChartView, StoreView
from streamskit.views.task_timelines import hosting, tasks_timeline
from streamskit.views.timelines import (
    as_table,
    join_timeline,
    punctuation_timeline,
    stream_time,
    table_timeline,
    windows_timeline,
)
from streamskit.views.topic_view import TopicView
from streamskit.views.topology_view import TopologyView
from streamskit.views.window_view import WindowView

__all__ = [
    "ChartView",
    "ClusterView",
    "Dashboard",
    "FaultPanel",
    "FeedPanel",
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
    "execution_diagram",
    "hosting",
    "join_timeline",
    "punctuation_timeline",
    "stream_time",
    "table_timeline",
    "tasks_timeline",
    "windows_timeline",
]
