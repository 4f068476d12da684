"""`ClusterView`: the instances of an application, live in a notebook, with buttons that start and kill one."""

import threading
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from streamskit.common.durations import Duration
from streamskit.views.live import cluster_page
from streamskit.views.live.cluster_snapshot import ClusterSnapshot, Instances, cluster_snapshot
from streamskit.views.live.live_view import LiveView


class ClusterView(LiveView):
    """A live view of the instances that serve an application's stores: what each hosts, restores, and takes over.

    Args:
        instances: tells of them, and starts and kills them.
        name: what they belong to, such as the application's id.
        refresh: how often to look, a duration of at least 50 ms.

    Raises:
        TypeError: `instances` tells of no instances.
        ValueError: `refresh` is not such a duration.

    >>> ClusterView(instances, "trades-app")

    Mirrors what `KafkaStreams#metadataForAllStreamsClients` and a `StateRestoreListener` tell.
    """

    KIND, WHAT = "cluster", "The instances"

    def __init__(self, instances: Instances, name: str = "instances", refresh: Duration = "500 ms") -> None:
        if not isinstance(instances, Instances):
            raise TypeError(
                f"ClusterView shows instances, and this is a {type(instances).__name__}: it needs instances(), start() "
                "and kill(server)."
            )
        self._instances, self._name, self._trouble = instances, name, ""
        self._table, self._moves, self._kills = widgets.HTML(), widgets.HTML(), widgets.HBox()
        self._start = _button("Start an instance", "plus", "success", lambda: self._do(instances.start))
        super().__init__(refresh, [self._start, self._kills], [self._table, self._moves])

    def __repr__(self) -> str:
        return f"<ClusterView of {self._name}>"

    def take(self, previous: ClusterSnapshot | None) -> ClusterSnapshot:
        """Look at the instances."""
        return cluster_snapshot(self._name, self._instances, previous)

    def header(self, snapshot: ClusterSnapshot, state: str, trouble: str = "") -> str:
        """Say how many instances there are."""
        return cluster_page.header(snapshot, state, trouble or self._trouble)

    def show(self, snapshot: ClusterSnapshot) -> None:
        """Show what each instance hosts, a button to kill it, and what changed hands."""
        self._offer_kills([instance.server for instance in snapshot.instances if instance.alive])
        self._table.value = self._part(cluster_page.table(snapshot))
        self._moves.value = self._part(cluster_page.moves(snapshot))

    def static(self, snapshot: Any) -> str:
        """Return the page that stays in a saved notebook."""
        return cluster_page.render_cluster(snapshot)

    def _offer_kills(self, servers: list[str]) -> None:
        wanted = [f"Kill {server}" for server in servers]
        if wanted != [button.description for button in self._kills.children]:
            gone = self._kills.children
            self._kills.children = [
                _button(words, "times", "danger", lambda server=server: self._do(self._instances.kill, server))  # type: ignore[misc]
                for words, server in zip(wanted, servers, strict=True)
            ]
            for button in gone:
                button.close()

    def _do(self, act: Callable[..., object], *arguments: str) -> None:
        """Start or kill an instance in a thread of its own: that takes seconds, and the kernel has more to do."""

        def run() -> None:
            try:
                self._trouble = ""
                act(*arguments)
            except Exception as failure:
                self._trouble = f"{act.__name__}({', '.join(arguments)}) failed: {failure}."
            self.refresh()

        threading.Thread(target=run, name="streamskit-cluster", daemon=True).start()


def _button(words: str, icon: str, style: str, act: Callable[[], None]) -> widgets.Button:
    button = widgets.Button(description=words, icon=icon, button_style=style, layout=widgets.Layout(width="auto"))
    button.on_click(lambda _: act())
    return button
