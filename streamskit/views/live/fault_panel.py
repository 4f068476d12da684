"""`FaultPanel`: buttons that break things on purpose, and mend them."""

import threading
import time
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from streamskit import faults
from streamskit.broker.base import Broker
from streamskit.cluster import Cluster
from streamskit.common.durations import Duration
from streamskit.faults import Driver, Fault
from streamskit.queries.instances import Instances
from streamskit.runtime import KafkaStreams
from streamskit.views.live import fault_page
from streamskit.views.live.fault_page import READY, FaultSnapshot, FaultState
from streamskit.views.live.live_view import LiveView


class FaultPanel(LiveView):
    """A row of buttons for each fault that is possible with what is given: one injects it, one undoes it.

    A button answers at once: what it starts goes on beside the cells, and the words at its side say how far it is.

    Args:
        broker: to be killed and paused; also where the poison goes.
        cluster: of whose executors one is to be killed.
        instances: of which one is to be killed.
        driver: to be killed.
        application: whose checkpoint is to be damaged, and whose state is to be deleted, while it is closed.
        topic: where poison is to be written to.
        seconds: for how long the broker is away.
        refresh: how often to look, a duration of at least 50 ms.

    Raises:
        ValueError: nothing is given that could be broken, or `refresh` is not such a duration.

    >>> FaultPanel(broker=broker, driver=driver, topic="trades")
    """

    KIND, WHAT = "faults", "The faults"

    def __init__(
        self,
        *,
        broker: Broker | None = None,
        cluster: Cluster | None = None,
        instances: Instances | None = None,
        driver: Driver | None = None,
        application: KafkaStreams | str | None = None,
        topic: str | None = None,
        seconds: float = 20,
        refresh: Duration = "500 ms",
    ) -> None:
        rows: list[FaultRow] = []
        if broker is not None:
            rows += [
                FaultRow(f"Kill the broker for {seconds:g} s", lambda: faults.kill_broker(seconds, broker)),
                FaultRow(f"Pause the broker for {seconds:g} s", lambda: faults.pause_broker(seconds, broker)),
            ]
        if topic is not None:
            rows.append(FaultRow(f"Poison '{topic}'", lambda: faults.poison(topic, broker)))
        if driver is not None:
            rows.append(FaultRow("Kill the driver", lambda: faults.kill_driver(driver)))
        if cluster is not None:
            rows.append(FaultRow("Kill an executor", lambda: faults.kill_executor(cluster)))
        if instances is not None:
            rows.append(FaultRow("Kill an instance", lambda: faults.kill_instance(instances)))
        if application is not None:
            rows += [
                FaultRow("Damage the checkpoint", lambda: faults.corrupt_checkpoint(application)),
                FaultRow("Delete the state", lambda: faults.delete_state(application)),
            ]
        if not rows:
            raise ValueError("FaultPanel has nothing to break: give it a broker, a driver, a cluster, or instances.")
        self._rows, self._last, self._report = rows, "", widgets.HTML()
        for row in rows:
            row.changed = self._on_change
        table = widgets.VBox([row.box for row in rows], layout=widgets.Layout(width="100%"))
        super().__init__(refresh, [table], [self._report])  # among the controls, which are heard while a cell runs

    def __repr__(self) -> str:
        return f"<FaultPanel of {len(self._rows)} faults>"

    def take(self, previous: FaultSnapshot | None) -> FaultSnapshot:
        """Look at the faults."""
        return FaultSnapshot([row.look() for row in self._rows], self._last, time.time())

    def header(self, snapshot: FaultSnapshot, state: str, trouble: str = "") -> str:
        """Say how many last."""
        return fault_page.header(snapshot, state, trouble)

    def show(self, snapshot: FaultSnapshot) -> None:
        """Show the state of each, and the report of the last one."""
        for row, state in zip(self._rows, snapshot.faults, strict=True):
            row.show(state, self._part(fault_page.state_line(state)))
        self._report.value = self._part(fault_page.report(snapshot))

    def static(self, snapshot: Any) -> str:
        """Return the page that stays in a saved notebook."""
        return fault_page.render_faults(snapshot)

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
        self.do = widgets.Button(
            description=words, icon="bolt", button_style="danger", layout=widgets.Layout(width="240px")
        )
        self.undo = widgets.Button(
            description="Undo", icon="undo", tooltip=f"Undo: {words}", layout=widgets.Layout(width="90px")
        )
        self.said = widgets.HTML()
        self.box = widgets.HBox([self.do, self.undo, self.said])
        self.do.on_click(lambda _: self._start("is being done", self._injected))
        self.undo.on_click(lambda _: self._start("is being undone", self._undone))

    def look(self) -> FaultState:
        """Return its state now."""
        fault = self.fault
        active = fault is not None and fault.is_active
        trouble = self._trouble or (fault.trouble if fault else "")
        said = self._busy or trouble or (fault.state if fault else READY)
        return FaultState(self.words, said, active, bool(trouble) and not self._busy)

    def show(self, state: FaultState, html: str) -> None:
        """Show its state; what cannot be done now cannot be pressed."""
        self.said.value = html
        self.do.disabled = bool(self._busy) or state.is_active
        self.undo.disabled = bool(self._busy) or not state.is_active

    def _start(self, busy: str, act: Callable[[], str]) -> None:
        """Do something in a thread of its own: it takes seconds, and the kernel has more to do."""
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

        threading.Thread(target=run, name="streamskit-fault", daemon=True).start()
        self.changed("")

    def _injected(self) -> str:
        self.fault = fault = self._inject()
        return f"{fault.what}\nwatch: {fault.watch}\nundo: {fault.way_back}"

    def _undone(self) -> str:
        if self.fault is not None:
            self.fault.undo()
        return f"Undone: {self.words}."
