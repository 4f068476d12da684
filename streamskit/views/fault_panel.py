"""`FaultPanel`: buttons that break things on purpose and fix them again; their state, and what to watch."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from html import escape
from typing import Any

import ipywidgets as widgets

from streamskit import faults
from streamskit.broker.base import Broker
from streamskit.cluster import Cluster
from streamskit.common.durations import Duration
from streamskit.faults import Driver, Fault
from streamskit.faults.brokers import lasting
from streamskit.queries.instances import Instances
from streamskit.runtime import KafkaStreams
from streamskit.views.charts import counted
from streamskit.views.controls import button, in_background
from streamskit.views.html import TableColumn, TableRow, grid, text_cell
from streamskit.views.live_view import LiveView
from streamskit.views.page import Page, Snapshot

COLUMNS = (TableColumn("fault", 220, left=True), TableColumn("state", 520, left=True))

READY = "not injected"


@dataclass(frozen=True)
class FaultState:
    """One fault that can be injected: its button's words, and its state in words; `is_trouble` if it went wrong."""

    words: str
    state: str
    is_active: bool = False
    is_trouble: bool = False


@dataclass(frozen=True, kw_only=True)
class FaultSnapshot(Snapshot):
    """All faults of a panel at one moment; `last` is the report on the fault injected last."""

    faults: Sequence[FaultState]
    last: str


def facts(snapshot: FaultSnapshot, is_saved: bool) -> list[str]:
    """Say how many faults last now."""
    active = sum(each.is_active for each in snapshot.faults)
    return [f"{active} of {counted(len(snapshot.faults), 'fault')} last now"]


def table(snapshot: FaultSnapshot) -> str:
    """Return a table of the faults, for where there are no buttons."""
    return grid(COLUMNS, [_line(each) for each in snapshot.faults], "state")


def state_line(fault: FaultState) -> str:
    """Return the text beside a fault's buttons: a sign and words, so that nothing depends on colour alone."""
    mark, meaning = sign(fault)
    look = "sk-failed" if fault.is_active or fault.is_trouble else "sk-quiet"
    return f'<div class="{look}" title="{meaning}">{mark} {escape(fault.state)}</div>'


def report(snapshot: FaultSnapshot) -> str:
    """Return what was done last, what to watch, and how to undo it; read out when it changes."""
    if not snapshot.last:
        return '<div class="sk-quiet">Choose a fault. What was done, and what to watch, is then shown here.</div>'
    lines = "".join(f"<div>{escape(line)}</div>" for line in snapshot.last.splitlines())
    return f'<div role="status" aria-live="polite">{lines}</div>'


def sign(fault: FaultState) -> tuple[str, str]:
    """Return a sign for a fault's state, and what it means."""
    if fault.is_trouble:
        return "▲", "could not be done"
    if fault.is_active:
        return "✕", "lasts"
    return ("○", "not injected") if fault.state == READY else ("●", "over")


def _line(fault: FaultState) -> TableRow:
    look = "sk-bad" if fault.is_active or fault.is_trouble else ""
    return TableRow([text_cell(fault.words), text_cell(fault.state)], *sign(fault), look)


# ---- the panel -------------------------------------------------------------------------------------------------------


class FaultPanel(LiveView):
    """A row of buttons for each fault that is possible with what is given: one injects it, one undoes it.

    A button responds at once: what it starts runs in the background, and the text beside it shows the progress.

    Args:
        broker: the broker to kill and pause, and to send poison records to.
        cluster: the cluster of which to kill an executor.
        instances: the instances of which to kill one.
        driver: the driver to kill.
        application: the application whose checkpoint to damage and whose state to delete, while it is closed.
        topic: the topic to write poison records to.
        seconds: for how long the broker is away, in seconds or as a text such as "1 minute"; None for until Undo.
        refresh: how often to look, a duration of at least 50 ms.

    Raises:
        ValueError: nothing is given that could be broken, or `seconds` or `refresh` is not such a duration.

    >>> FaultPanel(broker=broker, driver=driver, topic="trades")  # doctest: +SKIP
    """

    PAGE = Page("faults", "The faults", facts, {"report": report}, saved_parts={"table": table, "report": report})

    def __init__(
        self,
        *,
        broker: Broker | None = None,
        cluster: Cluster | None = None,
        instances: Instances | None = None,
        driver: Driver | None = None,
        application: KafkaStreams | str | None = None,
        topic: str | None = None,
        seconds: str | float | timedelta | None = 20,
        refresh: Duration = "500 ms",
    ) -> None:
        limit = lasting(seconds)
        for_so_long = "" if limit is None else f" for {limit:g} s"
        possible: list[tuple[Any, str, Callable[[Any], Fault]]] = [
            (broker, f"Kill the broker{for_so_long}", lambda it: faults.kill_broker(limit, it)),
            (broker, f"Pause the broker{for_so_long}", lambda it: faults.pause_broker(limit, it)),
            (topic, f"Poison '{topic}'", lambda it: faults.poison(it, broker)),
            (driver, "Kill the driver", lambda it: faults.kill_driver(it)),
            (cluster, "Kill an executor", lambda it: faults.kill_executor(it)),
            (instances, "Kill an instance", lambda it: faults.kill_instance(it)),
            (application, "Damage the checkpoint", lambda it: faults.corrupt_checkpoint(it)),
            (application, "Delete the state", lambda it: faults.delete_state(it)),
        ]
        self._rows = [FaultRow(words, partial(inject, it)) for it, words, inject in possible if it is not None]
        if not self._rows:
            raise ValueError("FaultPanel has nothing to break: give it a broker, a driver, a cluster, or instances.")
        self._last = ""
        for row in self._rows:
            row.changed = self._on_change
        table = widgets.VBox([row.box for row in self._rows], layout={"width": "100%"})
        # The table is one of the controls, which respond even while a cell runs.
        super().__init__(f"{len(self._rows)} faults", refresh, [table])

    def take(self, previous: FaultSnapshot | None) -> FaultSnapshot:
        """Look at the faults."""
        faults = [row.look() for row in self._rows]
        return FaultSnapshot(name="Faults", taken_at=time.time(), faults=faults, last=self._last)

    def redraw(self) -> None:
        """Show the snapshot that there is, and the state of each fault beside its buttons."""
        for row, state in zip(self._rows, self._snapshot.faults, strict=True):
            row.show(state, self._part(state_line(state)))
        super().redraw()

    def _on_change(self, report: str) -> None:
        self._last = report or self._last
        self.refresh()


class FaultRow:
    """One fault: a button that injects it, one that undoes it, and words on its state.

    Args:
        words: what the button says.
        inject: breaks it.
    """

    def __init__(self, words: str, inject: Callable[[], Fault]) -> None:
        self.words, self._inject = words, inject
        self.changed: Callable[[str], None] = lambda report: None
        self.fault: Fault | None = None
        self._trouble, self._busy = "", ""
        do, undo = (
            partial(self._start, "is being done", self._injected),
            partial(self._start, "is being undone", self._undone),
        )
        self.do = button(do, "240px", description=words, icon="bolt", button_style="danger")
        self.undo = button(undo, "90px", description="Undo", icon="undo", tooltip=f"Undo: {words}")
        self.said = widgets.HTML()
        self.box = widgets.HBox([self.do, self.undo, self.said])

    def look(self) -> FaultState:
        """Return its state now."""
        fault = self.fault
        active = fault is not None and fault.is_active
        trouble = self._trouble or (fault.trouble if fault else "")
        said = self._busy or trouble or (fault.state if fault else READY)
        return FaultState(self.words, said, active, bool(trouble) and not self._busy)

    def show(self, state: FaultState, html: str) -> None:
        """Show its state; buttons for what is not possible now are disabled."""
        self.said.value = html
        self.do.disabled = bool(self._busy) or state.is_active
        self.undo.disabled = bool(self._busy) or not state.is_active

    def _start(self, busy: str, act: Callable[[], str]) -> None:
        if self._busy:
            return
        self._busy = busy

        def run() -> None:
            report, self._trouble = "", ""
            try:
                report = act()
            except Exception as failure:
                self._trouble = str(failure)
            self._busy = ""
            self.changed(report)

        in_background("fault", run)
        self.changed("")

    def _injected(self) -> str:
        self.fault = fault = self._inject()
        return f"{fault.description}\nwatch: {fault.watch}\nundo: {fault.way_back}"

    def _undone(self) -> str:
        if self.fault is not None:
            self.fault.undo()
        return f"Undone: {self.words}."
