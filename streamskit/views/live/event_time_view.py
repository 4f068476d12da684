"""What the views of event time share: records as they came, a task to choose, and a way to go step by step."""

from collections.abc import Sequence
from typing import Any

import ipywidgets as widgets

from streamskit.common.durations import Duration
from streamskit.runtime import KafkaStreams
from streamskit.testing import TopologyTestDriver
from streamskit.topology import Node
from streamskit.views.live.live_view import LiveView, checked_count
from streamskit.views.live.record_source import TimeOf, arrivals_of, as_arrivals
from streamskit.views.live.stepper import Stepper
from streamskit.views.live.upstream import Origin
from streamskit.views.live.window_snapshot import Seen


class EventTimeView(LiveView):
    """A live view of the records that reach an operator; to step back in their order pauses it, to resume follows them.

    A snapshot has `at`, the number of records shown, and `after(count)`, which returns the same after so many.

    Args:
        source: a running application, or a test driver.
        nodes: the nodes of the operator.
        feeding: where its records come from.
        refresh: how often to look.
        records: how many of the last records to show, of each partition.
        time: takes a value and returns its time in milliseconds, where the topology takes times from values.
        caveat: a sentence on what may be otherwise than shown, or nothing.
        controls: what the learner sets, beside the steps and the task.
    """

    def __init__(
        self, source: KafkaStreams | TopologyTestDriver, nodes: Sequence[Node], feeding: Sequence[Origin],
        refresh: Duration, records: int, time: TimeOf | None, caveat: str, controls: Sequence[widgets.Widget],
    ) -> None:  # fmt: skip
        self._nodes, self._feeding, self._time = nodes, feeding, time
        caveats = [caveat, *(origin.caveat for origin in feeding)]
        self._caveat = " ".join(dict.fromkeys(filter(None, caveats)))
        self._arrivals = arrivals_of(source, feeding, checked_count(records, "records", 2000), time)
        self._stepper = Stepper(self._step)
        self._task = widgets.Dropdown(
            description="Task",
            options=[("partition 0", 0)],
            tooltip="Each partition is a task of its own, with its own stream time",
            style={"description_width": "36px"},
            layout=widgets.Layout(width="150px", display="none"),
        )
        self._chart, self._story = widgets.HTML(), widgets.HTML()
        super().__init__(refresh, [self._stepper, self._task, *controls], [self._chart, self._story])
        self._task.observe(lambda _: self.refresh(), "value")

    def rest(self) -> None:
        """Leave the broker alone."""
        self._arrivals.close()

    def look(self) -> Seen:
        """Return what there is to see of the chosen task."""
        if not self._pause.value:
            self._arrivals.look()
        self._offer_tasks()
        partition = int(self._task.value)
        raw, dropped = self._arrivals.raw(partition), self._arrivals.dropped()
        return Seen(
            topics=list(dict.fromkeys(topic for origin in self._feeding for topic in origin.topics)),
            partition=partition,
            partitions=list(self._arrivals.partitions),
            arrivals=as_arrivals(raw, self._feeding, self._time),
            before=self._arrivals.before(partition),
            caveat=self._caveat,
            dropped={node.name: dropped[node.name] for node in self._nodes if dropped[node.name]},
            stopped=self._arrivals.stopped(),
        )

    def stepped(self, snapshot: Any) -> Any:
        """Return a snapshot after as many of its records as the learner has chosen, or after all."""
        return snapshot.after(self._stepper.show(len(snapshot.steps)))

    def _offer_tasks(self) -> None:
        options = [(f"partition {number}", number) for number in self._arrivals.partitions]
        if options and options != list(self._task.options):
            chosen = self._task.value
            with self._task.hold_trait_notifications():
                self._task.options = options
                self._task.value = chosen
            self._task.layout.display = None if len(options) > 1 else "none"

    def _step(self) -> None:
        with self._looking:
            if self._snapshot is not None:
                self._snapshot = self.stepped(self._snapshot)
                self.redraw()
        self._pause.value = True

    def _on_pause(self, change: Any) -> None:
        if not change.new:
            self._stepper.release()
        super()._on_pause(change)
