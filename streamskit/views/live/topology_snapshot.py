"""What a view shows of a running topology at one moment: how far each task is, how fast each topic, and what failed."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from streamskit.runtime import KafkaStreams
from streamskit.topology import Node, Sink, Source
from streamskit.views.live import streams_source
from streamskit.views.live.streams_source import Offsets

RATE_OVER = 5.0
"""Over how many seconds records are counted for a rate."""

Count = tuple[str, str]
"""What is counted: ("read", a topic) or ("written", a topic)."""


@dataclass(frozen=True)
class Task:
    """One partition that a sub-topology reads: how far it has come, and where the topic ends; None is not known."""

    sub_topology: str
    topic: str
    partition: int
    read: int | None
    end: int | None

    @property
    def lag(self) -> int | None:
        """How many records it is behind."""
        return None if self.read is None or self.end is None else max(0, self.end - self.read)


@dataclass(frozen=True)
class TopologySnapshot:
    """An application at one moment; `taken_at` in seconds since 1970.

    `notes` are the words at nodes; `failed` the nodes to blame, `trouble` says why; `history` has the counts of records
    at moments of the last seconds; `stopped` says why no more will come.
    """

    name: str
    state: str
    sub_topologies: Sequence[Sequence[Node]]
    notes: Mapping[str, str]
    failed: Sequence[str]
    trouble: str
    restarts: int
    tasks: Sequence[Task]
    taken_at: float
    history: Sequence[tuple[float, Mapping[Count, int]]]
    stopped: str = ""


AskEnds = Callable[[Iterable[str]], Offsets]
"""Returns for topics where their partitions end."""


def take_topology(
    streams: KafkaStreams, ask_ends: AskEnds, previous: TopologySnapshot | None = None,
    clock: Callable[[], float] = time.time,
) -> TopologySnapshot:  # fmt: skip
    """Look at an application.

    Args:
        streams: the application.
        ask_ends: asks the broker where topics end.
        previous: the snapshot before, to count from.
        clock: tells the time, in seconds since 1970.
    """
    nodes = list(streams.topology.nodes.values())
    metrics = streams.metrics()
    read = streams_source.read_offsets(streams, metrics)
    ends = ask_ends(_topics(nodes, streams.application_id, read))
    now = clock()
    history = _history(previous, now, _counts(read, ends))
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


def _topics(nodes: Sequence[Node], application_id: str, read: Mapping[str, Offsets]) -> list[str]:
    named = [topic for node in nodes for topic in streams_source.topics_of(node, application_id)]
    logged = [topic for node in nodes for topic in streams_source.changelogs_of(node, application_id)]
    return list(dict.fromkeys([*named, *logged, *(topic for offsets in read.values() for topic in offsets)]))


def _counts(read: Mapping[str, Offsets], ends: Offsets) -> dict[Count, int]:
    counts = {("written", topic): sum(offsets.values()) for topic, offsets in ends.items()}
    for query in read.values():
        counts |= {("read", topic): sum(offsets.values()) for topic, offsets in query.items()}
    return counts


def _history(
    previous: TopologySnapshot | None, now: float, counts: Mapping[Count, int]
) -> list[tuple[float, Mapping[Count, int]]]:
    """Return the counts of the last seconds and these; the last before them stays, to count from."""
    kept = list(previous.history) if previous else []
    while len(kept) > 1 and kept[1][0] < now - RATE_OVER:
        kept.pop(0)
    return [*kept, (now, counts)]


def rate(history: Sequence[tuple[float, Mapping[Count, int]]], what: Count) -> float | None:
    """Return how many records a second were read or written, or None where that was not counted for long enough."""
    counted = [(at, counts[what]) for at, counts in history if what in counts]
    if len(counted) < 2 or counted[-1][0] - counted[0][0] < 0.1 or counted[-1][0] != history[-1][0]:
        return None
    (since, before), (until, after) = counted[0], counted[-1]
    return max(0.0, (after - before) / (until - since))


def _note(node: Node, application_id: str, history: Sequence[tuple[float, Mapping[Count, int]]], dropped: int) -> str:
    """Return the words at a node: what is measured there, and nothing where nothing is."""
    topics = streams_source.topics_of(node, application_id)
    what, unit = ("written", "records/s") if isinstance(node, Sink) else ("read", "records/s")
    if not isinstance(node, Source | Sink):
        topics, what, unit = streams_source.changelogs_of(node, application_id), "written", "updates/s"
    rates = [each for topic in topics if (each := rate(history, (what, topic))) is not None]
    said = [f"{spelled_rate(sum(rates))} {unit}"] if rates else []
    return " · ".join([*said, *([f"{dropped:,} dropped"] if dropped else [])])


def spelled_rate(number: float) -> str:
    """Write a rate: whole numbers from ten on, one decimal below.

    >>> spelled_rate(1234.5), spelled_rate(0.25), spelled_rate(0)
    ('1,234', '0.2', '0')
    """
    return f"{number:,.0f}" if number >= 10 or number == round(number) else f"{number:.1f}"


def _tasks(read: Mapping[str, Offsets], ends: Offsets) -> list[Task]:
    return [
        Task(query, topic, partition, offset, ends.get(topic, {}).get(partition))
        for query, topics in sorted(read.items())
        for topic, offsets in sorted(topics.items())
        for partition, offset in sorted(offsets.items())
    ]
