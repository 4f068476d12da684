"""`TopologyView`: a running topology, live in a notebook: how far tasks are, how fast topics, and what failed."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from streamskit.common.durations import Duration
from streamskit.kafka.tail import Ends
from streamskit.runtime import KafkaStreams
from streamskit.runtime.progress import TopicOffsets
from streamskit.topology.drawing.diagram import draw
from streamskit.topology.nodes import Node, Sink, Source
from streamskit.views import streams_source
from streamskit.views.charts import counted
from streamskit.views.html import TableColumn, TableRow, cell, grid
from streamskit.views.live_view import LiveView
from streamskit.views.page import Page, Snapshot, counted_until, rate

Flow = tuple[str, str]
"""What is counted: ("read", a topic) or ("written", a topic)."""

History = Sequence[tuple[float, Mapping[Flow, int]]]


@dataclass(frozen=True)
class TaskProgress:
    """One partition that a sub-topology reads: how far it has come, and where the topic ends; None if not known."""

    sub_topology: str
    topic: str
    partition: int
    read: int | None
    end: int | None

    @property
    def lag(self) -> int | None:
        """How many records it is behind."""
        return None if self.read is None or self.end is None else max(0, self.end - self.read)


@dataclass(frozen=True, kw_only=True)
class TopologySnapshot(Snapshot):
    """An application at one moment.

    `notes` are the words at nodes; `failed` the nodes to blame; `history` has the counts of records at moments of the
    last seconds.
    """

    state: str
    sub_topologies: Sequence[Sequence[Node]]
    notes: Mapping[str, str]
    failed: Sequence[str]
    restarts: int
    tasks: Sequence[TaskProgress]
    history: History


AskEnds = Callable[[Iterable[str]], TopicOffsets]
"""Returns for topics where their partitions end."""


def topology_snapshot(
    streams: KafkaStreams, ask_ends: AskEnds, previous: TopologySnapshot | None = None,
    clock: Callable[[], float] = time.time,
) -> TopologySnapshot:  # fmt: skip
    """Look at an application.

    Args:
        streams: the application.
        ask_ends: gets the end offsets of topics from the broker.
        previous: the previous snapshot, to count from.
        clock: returns the time, in seconds since 1970.
    """
    nodes = list(streams.topology.nodes.values())
    metrics = streams.metrics()
    read = streams.committed_offsets()
    ends = ask_ends(_topics(nodes, streams.application_id, read))
    now = clock()
    history = counted_until(previous.history if previous else (), now, _counts(read, ends))
    failures = streams_source.failures(streams)
    dropped = streams_source.dropped_by_node(metrics)
    return TopologySnapshot(
        name=streams.application_id,
        state=streams.state.name,
        sub_topologies=streams.topology.sub_topologies(),
        notes={node.name: _note(node, streams.application_id, history, dropped[node.name]) for node in nodes},
        failed=[name for failure in failures for name in failure.nodes],
        trouble=" ".join(failure.sentence for failure in failures),
        restarts=int(metrics.groupby("query")["restarts"].max().sum()),
        tasks=_tasks(read, ends),
        taken_at=now,
        history=history,
        stopped=streams_source.why_stopped(streams),
    )


def _topics(nodes: Sequence[Node], application_id: str, read: Mapping[str, TopicOffsets]) -> list[str]:
    named = [topic for node in nodes for topic in streams_source.topics_of(node, application_id)]
    logged = [topic for node in nodes for topic in streams_source.changelogs_of(node, application_id)]
    return list(dict.fromkeys([*named, *logged, *(topic for offsets in read.values() for topic in offsets)]))


def _counts(read: Mapping[str, TopicOffsets], ends: TopicOffsets) -> dict[Flow, int]:
    counts = {("written", topic): sum(offsets.values()) for topic, offsets in ends.items()}
    for query in read.values():
        counts |= {("read", topic): sum(offsets.values()) for topic, offsets in query.items()}
    return counts


def _note(node: Node, application_id: str, history: History, dropped: int) -> str:
    """Return the words at a node: what is measured there, and nothing where nothing is."""
    topics = streams_source.topics_of(node, application_id)
    way, unit = "written" if isinstance(node, Sink) else "read", "records/s"
    if not isinstance(node, Source | Sink):
        topics, way, unit = streams_source.changelogs_of(node, application_id), "written", "updates/s"
    rates = [each for topic in topics if (each := _rate(history, (way, topic))) is not None]
    said = [f"{spelled_rate(sum(rates))} {unit}"] if rates else []
    return " · ".join([*said, *([f"{dropped:,} dropped"] if dropped else [])])


def _rate(history: History, flow: Flow) -> float | None:
    counts = [(at, each[flow]) for at, each in history if flow in each]
    return rate(counts) if counts and counts[-1][0] == history[-1][0] else None


def spelled_rate(number: float) -> str:
    """Write a rate: whole numbers from ten on, one decimal below.

    >>> spelled_rate(1234.5), spelled_rate(0.25), spelled_rate(0)
    ('1,234', '0.2', '0')
    """
    return f"{number:,.0f}" if number >= 10 or number == round(number) else f"{number:.1f}"


def _tasks(read: Mapping[str, TopicOffsets], ends: TopicOffsets) -> list[TaskProgress]:
    return [
        TaskProgress(query, topic, partition, offset, ends.get(topic, {}).get(partition))
        for query, topics in sorted(read.items())
        for topic, offsets in sorted(topics.items())
        for partition, offset in sorted(offsets.items())
    ]


# ---- the page --------------------------------------------------------------------------------------------------------

MOST_TASKS = 64
"""How many tasks are listed at most: those with the largest lag."""

COLUMNS = (
    TableColumn("sub-topology", 120),
    TableColumn("topic", 280, left=True),
    TableColumn("partition", 95),
    TableColumn("read up to", 110),
    TableColumn("end", 110),
    TableColumn("lag", 90),
)


def facts(snapshot: TopologySnapshot, is_saved: bool) -> list[str]:
    """Say what the application is doing."""
    lags = [task.lag for task in snapshot.tasks if task.lag is not None]
    said = [f"state {snapshot.state}", counted(len(snapshot.sub_topologies), "sub-topology", "sub-topologies")]
    said += [f"{counted(sum(lags), 'record')} behind"] if lags else []
    return said + ([f"run again {counted(snapshot.restarts, 'time')}"] if snapshot.restarts else [])


def failed(snapshot: TopologySnapshot) -> str:
    """Name the nodes to blame."""
    names = ", ".join(snapshot.failed)
    return f'<div class="sk-failed"><b>✕ failed: {escape(names)}</b></div>' if names else ""


def diagram(snapshot: TopologySnapshot) -> str:
    """Return the diagram, with rates at the nodes where records are counted and the failed ones in red."""
    return draw(snapshot.sub_topologies, snapshot.notes, snapshot.failed)


def tasks(snapshot: TopologySnapshot) -> str:
    """Return a table of the tasks: one for each partition that a sub-topology reads."""
    if not snapshot.tasks:
        return '<div class="sk-quiet">No task has read anything yet.</div>'
    shown = sorted(snapshot.tasks, key=lambda task: -(task.lag or 0))[:MOST_TASKS]
    shown.sort(key=lambda task: (task.sub_topology, task.topic, task.partition))
    rest = len(snapshot.tasks) - len(shown)
    title = "Tasks: how far each sub-topology has read each partition" + (f" ({rest} more are not shown)" * bool(rest))
    return f'<div class="sk-quiet">{escape(title)}</div>' + grid(COLUMNS, [_line(task) for task in shown], "behind")


def _line(task: TaskProgress) -> TableRow:
    numbers = ("not known" if number is None else f"{number:,}" for number in (task.read, task.end, task.lag))
    cells = [cell(task.sub_topology), cell(task.topic, task.topic, left=True), cell(str(task.partition))]
    whole = [*cells, *map(cell, numbers)]
    return TableRow(whole, "▸", "has records to read") if task.lag else TableRow(whole)


# ---- the view --------------------------------------------------------------------------------------------------------


class TopologyView(LiveView):
    """A live diagram of an application: how fast its topics are read and written, how far its tasks are, what failed.

    Only what is measured has a number: what sources have read, what was written to sinks' topics and to the changelogs
    of stores (by offsets, over the last five seconds), and what nodes have dropped.

    Args:
        streams: the application, started or not.
        refresh: how often to look at it, a duration of at least 50 ms.

    Raises:
        TypeError: `streams` is no application.
        ValueError: `refresh` is not such a duration.

    >>> TopologyView(streams)  # doctest: +SKIP

    Mirrors the metrics of `KafkaStreams#metrics`: `process-rate`, `records-lag`, `dropped-records-total`.
    """

    PAGE = Page("topology", "The application", facts, {"diagram": diagram, "tasks": tasks}, failed)

    def __init__(self, streams: KafkaStreams, refresh: Duration = "1 second") -> None:
        if not isinstance(streams, KafkaStreams):
            raise TypeError(
                f"TopologyView shows a running application, and this is a {type(streams).__name__}: write "
                "TopologyView(streams), or topology.diagram() for one that does not run."
            )
        self._streams, self._ends = streams, Ends(streams.config.connection)
        super().__init__(streams, refresh)

    def take(self, previous: TopologySnapshot | None) -> TopologySnapshot:
        """Look at the application."""
        return topology_snapshot(self._streams, self._ends.ask, previous)

    def rest(self) -> None:
        """Close the connection to the broker."""
        self._ends.close()
