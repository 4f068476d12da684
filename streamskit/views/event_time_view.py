"""What the views of event time share: the records in order of arrival, a choice of task, steps, and their text."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from typing import Any

import ipywidgets as widgets

from streamskit.common.durations import Duration
from streamskit.runtime import KafkaStreams
from streamskit.testing import TopologyTestDriver
from streamskit.topology.nodes import Node
from streamskit.views.charts import counted, shortened
from streamskit.views.controls import Stepper, checked_count, field, offer
from streamskit.views.html import TableColumn, TableRow, cell, grid, text_cell, time_beside, time_of_day
from streamskit.views.live_view import LiveView
from streamskit.views.record_source import TimeOf, arrivals_of, as_arrivals, leaves_out
from streamskit.views.replay import EventTimeSnapshot, ReplayedRecord, SeenRecords
from streamskit.views.upstream import UpstreamSource

DROPPED = 8
"""How many dropped records are listed at most."""

MERGED = (
    "The order in which records of several topics were processed is not recorded: here they are merged by their times. "
    "The results do not depend on it, as long as no record is late."
)
"""What differs when the records of a running application are shown."""

COLUMNS = (
    TableColumn("record", 68),
    TableColumn("key", 115, left=True),
    TableColumn("its time", 105),
    TableColumn("stream time", 155),
    TableColumn("why it was dropped", 520, left=True),
)


def story(snapshot: EventTimeSnapshot, sentence: str, *notes: str) -> str:
    """Return in words what the last record did, notes on the picture, and what was dropped and why."""
    lines = "".join(f'<div class="sk-quiet">{escape(note)}</div>' for note in (*notes, snapshot.seen.caveat) if note)
    last = (
        sentence
        if snapshot.done or not snapshot.steps
        else f"None of {counted(len(snapshot.steps), 'record')} has come yet."
    )
    # Read out at a user's step; new records would be read out without an end.
    read_out = ' aria-live="polite"' if snapshot.is_chosen else ""
    return f"<div{read_out}>{escape(last)}</div>" + lines + dropped(snapshot.done, snapshot.seen)


def where(seen: SeenRecords) -> Iterator[str]:
    """Say where the records come from, and which of them these are."""
    yield f"records of {', '.join(seen.topics)}" + (f", partition {seen.partition}" if len(seen.partitions) > 1 else "")
    if seen.before:
        yield f"the last {len(seen.arrivals):,}; {seen.before:,} came before them"


def dropped(done: Sequence[ReplayedRecord], seen: SeenRecords) -> str:
    """Return a table of the records that were dropped, the last one first."""
    lost = [(number, step) for number, step in enumerate(done, 1) if step.is_dropped]
    title = f"Dropped: {counted(len(lost), 'record')} of {len(done):,}, by Kafka Streams' rule"
    counts = ", ".join(f"{count:,} at {node}" for node, count in seen.dropped.items())
    title += f"; what runs has counted {counts or 'none'}" if lost or counts else ""
    lines = [TableRow(_cells(number, step), "✕", "dropped", "sk-bad") for number, step in lost[: -DROPPED - 1 : -1]]
    return f'<div class="sk-quiet">{escape(title)}.</div>' + (grid(COLUMNS, lines, "dropped") if lost else "")


def begun(snapshot: EventTimeSnapshot) -> int:
    """Return the time of the first record: on whose day a time is, is written without it."""
    return next((step.arrival.timestamp for step in snapshot.steps if not step.arrival.refused), 0)


def tooltip(number: int, step: ReplayedRecord) -> str:
    """Return what can be read by pointing at a record."""
    arrival = step.arrival
    value = "null" if arrival.value is None else shortened(arrival.value, 60)
    return f"record {number}: {arrival.key} = {value} at {time_of_day(arrival.timestamp)}" + (
        f"; {step.why}" if step.why else ""
    )


def none_came(snapshot: EventTimeSnapshot, between: str) -> str:
    """Return the sentence for a view that has no record to draw; `between` stands between the names of its topics."""
    which = " that can be read" if snapshot.steps else ""
    return f"No record of {between.join(snapshot.seen.topics)}{which} has come since this view was made."


def _cells(number: int, step: ReplayedRecord) -> list[str]:
    stream_time = "none yet" if step.stream_time < 0 else time_beside(step.stream_time, step.arrival.timestamp)
    times = (cell(time_of_day(step.arrival.timestamp)), cell(stream_time))
    return [cell(str(number)), text_cell(step.arrival.key), *times, cell(step.why, step.why, left=True)]


# ---- the view --------------------------------------------------------------------------------------------------------


class EventTimeView(LiveView):
    """A live view of the records that reach an operator; stepping back pauses it, resuming follows the records again.

    A subclass says in `replay` what the operator makes of them.

    Args:
        name: the operator or its store, as the view's repr names it.
        source: a running application, or a test driver.
        nodes: the nodes of the operator.
        feeding: where its records come from.
        refresh: how often to look.
        records: how many of the last records to show, of each partition.
        time: takes a value and returns its time in milliseconds, where the topology takes times from values.
        controls: what the user sets, beside the steps and the task.
        caveat: a sentence on how reality may differ from what is shown, or nothing.
    """

    def __init__(
        self, name: str, source: KafkaStreams | TopologyTestDriver, nodes: Sequence[Node],
        feeding: Sequence[UpstreamSource],
        refresh: Duration, records: int, time: TimeOf | None, controls: Sequence[widgets.Widget] = (),
        caveat: str = "",
    ) -> None:  # fmt: skip
        self._source, self._nodes, self._feeding, self._time = source, nodes, feeding, time
        self._topics = list(dict.fromkeys(topic for origin in feeding for topic in origin.topics))
        is_merged = isinstance(source, KafkaStreams) and len(self._topics) > 1
        caveats = [caveat, MERGED if is_merged else "", *(origin.caveat for origin in feeding)]
        self._caveat = " ".join(dict.fromkeys(filter(None, caveats)))
        self._arrivals = arrivals_of(source, feeding, checked_count(records, "records", 2000), time)
        self._stepper = Stepper(self._step)
        tooltip = "Each partition is a task of its own, with its own stream time"
        options = [("partition 0", 0)]
        self._task = field(widgets.Dropdown, "Task", 36, 150, self.refresh, options=options, tooltip=tooltip)
        self._task.layout.display = "none"
        super().__init__(name, refresh, [self._stepper, self._task, *controls])

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]} in {self._source!r}>"

    def replay(self, seen: SeenRecords, previous: Any) -> Any:
        """Return a snapshot of what the operator makes of all records that were seen."""
        raise NotImplementedError

    def take(self, previous: Any) -> Any:
        """Look at the records, and show as many of them as the user has chosen."""
        return self._stepped(self.replay(self._look(), previous))

    def redraw(self) -> None:
        """Show the snapshot that there is, and how many records it has."""
        if self._is_seen():
            self._stepper.show(len(self._snapshot.steps))
        super().redraw()

    def rest(self) -> None:
        """Close the connection to the broker."""
        self._arrivals.close()

    def let_go(self) -> None:
        """Note no more records of a test driver."""
        self._arrivals.let_go()

    def _look(self) -> SeenRecords:
        """Return what there is to see of the chosen task."""
        if not self._pause.value:
            self._arrivals.look()
        self._offer_tasks()
        partition = int(self._task.value)
        raw, dropped = self._arrivals.raw(partition), self._arrivals.dropped()
        counting = dict.fromkeys(node.name for node in (*self._nodes, *(origin.source for origin in self._feeding)))
        return SeenRecords(
            topics=self._topics,
            partition=partition,
            partitions=list(self._arrivals.partitions),
            arrivals=as_arrivals(raw, self._feeding, self._time, leaves_out(self._source)),
            before=self._arrivals.before(partition),
            caveat=self._caveat,
            dropped={name: dropped[name] for name in counting if dropped[name]},
            stopped=self._arrivals.stopped(),
        )

    def _stepped(self, snapshot: Any) -> Any:
        """Return a snapshot after as many of its records as the user has chosen, or after all."""
        stepped = snapshot.after(self._stepper.of(len(snapshot.steps)))
        return replace(stepped, is_chosen=self._stepper.chosen is not None)

    def _offer_tasks(self) -> None:
        options = [(f"partition {number}", number) for number in self._arrivals.partitions]
        if options:
            offer(self._task, options)
            self._task.layout.display = None if len(options) > 1 else "none"

    def _step(self) -> None:
        with self._looking:
            if self._snapshot is not None:
                self._snapshot = self._stepped(self._snapshot)
                self.redraw()
        self._pause.value = True

    def _on_pause(self, change: Any) -> None:
        if not change.new:
            self._stepper.release()
        super()._on_pause(change)
