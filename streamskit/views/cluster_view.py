"""`ClusterView`: the instances of an application, live in a notebook, with buttons that start and kill one.

It shows which partitions each hosts, how far it has restored them, and who took over.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Protocol, runtime_checkable

import ipywidgets as widgets

from streamskit.common.durations import Duration
from streamskit.queries.metadata import InstanceState, TaskState
from streamskit.views.charts import counted
from streamskit.views.controls import button, close_whole, in_background
from streamskit.views.html import TableColumn, TableRow, cell, grid, text_cell, time_of_day
from streamskit.views.live_view import LiveView
from streamskit.views.page import Page, Snapshot

MOVES = 12
"""How many of the last moves are remembered."""


@runtime_checkable
class Instances(Protocol):
    """What a `ClusterView` looks at, and what its buttons call."""

    def instances(self) -> Sequence[InstanceState]:
        """Return the instances as they are now."""

    def start(self) -> object:
        """Start one more instance."""

    def kill(self, server: str) -> object:
        """End an instance at once, as a crash would."""


@dataclass(frozen=True)
class Move:
    """Something that changed hands: when, in seconds since 1970, and what, as a sentence."""

    at: float
    sentence: str


@dataclass(frozen=True, kw_only=True)
class ClusterSnapshot(Snapshot):
    """The instances at one moment; `moves` are the last hand-overs, oldest first.

    `last_active` names by partition the instances that were last seen active for it, now or before it was without one.
    """

    instances: Sequence[InstanceState]
    moves: Sequence[Move]
    last_active: Mapping[tuple[str, int], Sequence[str]] = field(default_factory=dict)

    @property
    def unserved(self) -> list[tuple[str, int]]:
        """The partitions of stores that nobody hosts in full: queries for their keys have to wait."""
        tasks = [(each, task) for each in self.instances for task in each.tasks]
        served = {
            _place(task) for each, task in tasks if each.alive and task.role == "active" and not task.is_restoring
        }
        return sorted({_place(task) for _, task in tasks} - served)


def cluster_snapshot(
    name: str, source: Instances, previous: ClusterSnapshot | None = None, clock: Callable[[], float] = time.time
) -> ClusterSnapshot:
    """Look at the instances.

    Args:
        name: what they belong to.
        source: returns the state of the instances.
        previous: the previous snapshot, to find what has changed hands.
        clock: returns the time, in seconds since 1970.
    """
    instances, now = sorted(source.instances(), key=lambda instance: instance.server), clock()
    moves = [*previous.moves, *_moves(previous, instances, now)] if previous else []
    last_active = {**(previous.last_active if previous else {}), **_servers(instances, "active")}
    return ClusterSnapshot(name=name, instances=instances, moves=moves[-MOVES:], last_active=last_active, taken_at=now)


def _moves(previous: ClusterSnapshot, after: Sequence[InstanceState], now: float) -> list[Move]:
    """Return what has changed, in sentences: instances first, then the partitions that have moved."""
    before = previous.instances
    was, now_is = ({each.server for each in side if each.alive} for side in (before, after))
    said = [f"{server} has joined" for server in sorted(now_is - was)]
    said += [f"{server} is gone" for server in sorted(was - now_is)]
    old, new, standbys = _servers(before, "active"), _servers(after, "active"), _servers(before, "standby")
    for place in sorted(old | new):
        one, two, last = (" and ".join(sorted(side.get(place, ()))) for side in (old, new, previous.last_active))
        if one != two:
            promoted = " (its standby until now)" if two in standbys.get(place, ()) else ""
            said.append(
                f"{place[0]} {place[1]}: active on {two or 'no instance'}{promoted}, before on {last or 'none'}"
            )
    return [Move(now, sentence) for sentence in said]


def _servers(instances: Sequence[InstanceState], role: str) -> dict[tuple[str, int], list[str]]:
    """Return by partition the living instances that host it in a role."""
    servers: dict[tuple[str, int], list[str]] = {}
    for instance in instances:
        for task in instance.tasks:
            if instance.alive and task.role == role:
                servers.setdefault(_place(task), []).append(instance.server)
    return servers


def _place(task: TaskState) -> tuple[str, int]:
    return task.store, task.partition


# ---- the page --------------------------------------------------------------------------------------------------------

COLUMNS = (
    TableColumn("instance", 170, left=True),
    TableColumn("store", 200, left=True),
    TableColumn("partition", 95),
    TableColumn("role", 90, left=True),
    TableColumn("restored", 240, left=True),
)


def facts(snapshot: ClusterSnapshot, is_saved: bool) -> list[str]:
    """Say how many instances there are."""
    alive = sum(instance.alive for instance in snapshot.instances)
    return [f"{alive} of {counted(len(snapshot.instances), 'instance')} alive"]


def unserved(snapshot: ClusterSnapshot) -> str:
    """Say what nobody serves."""
    names = [f"{store} {partition}" for store, partition in snapshot.unserved]
    if not names:
        return ""
    places = ", ".join(names[:12]) + ("…" if len(names) > 12 else "")
    sentence = f"Partitions that no instance serves in full at this moment: {places}"
    return f'<div class="sk-failed">▲ {escape(sentence)}</div>'


def table(snapshot: ClusterSnapshot) -> str:
    """Return a table of what each instance hosts."""
    if not snapshot.instances:
        return '<div class="sk-quiet">No instance runs: start one.</div>'
    return grid(COLUMNS, [line for each in snapshot.instances for line in _lines(each)], "alive")


def moves(snapshot: ClusterSnapshot) -> str:
    """Return what changed hands, the last first; what is new is read out."""
    if not snapshot.moves:
        return '<div class="sk-quiet">Nothing has changed hands since this view was made.</div>'
    latest = snapshot.moves[-1].at
    new, old = (
        "".join(
            f"<li>{time_of_day(int(move.at) * 1000)} {escape(move.sentence)}</li>"
            for move in reversed(snapshot.moves)
            if (move.at == latest) is is_new
        )
        for is_new in (True, False)
    )
    said = '<div class="sk-quiet">What changed hands (UTC), the last first</div>'
    return f'{said}<ul aria-live="polite" style="margin-bottom:0">{new}</ul><ul style="margin-top:0">{old}</ul>'


def _lines(instance: InstanceState) -> list[TableRow]:
    sign, meaning, look = ("●", "alive", "") if instance.alive else ("✕", "gone", "sk-bad")
    first = [text_cell(instance.server + ("" if instance.alive else " (gone)"))]
    if not instance.tasks:
        return [TableRow([*first, cell("hosts nothing", left=True), *[cell("")] * 3], sign, meaning, look)]
    lines = []
    for number, task in enumerate(sorted(instance.tasks, key=lambda each: (each.store, each.partition, each.role))):
        named = first if number == 0 else [cell("", left=True)]
        cells = [*named, text_cell(task.store), cell(str(task.partition)), cell(task.role, left=True), _restored(task)]
        lines.append(
            TableRow(cells, sign if number == 0 else "", meaning, look or ("sk-new" if task.is_restoring else ""))
        )
    return lines


def _restored(task: TaskState) -> str:
    """Return a bar and its numbers in words while a store is being restored, and only words before and after that."""
    if not task.is_restoring:
        return cell(f"all {counted(task.total, 'record')}", left=True)
    if task.total <= 0:
        return cell("has nothing to restore yet", left=True)
    share = task.restored / task.total
    words = f"{share:.0%} of {task.total:,}"
    bar = f'<progress max="{task.total}" value="{task.restored}" style="width:90px" aria-label="{words}"></progress>'
    return f'<td style="text-align:left">{bar} {words}</td>'


# ---- the view --------------------------------------------------------------------------------------------------------


class ClusterView(LiveView):
    """A live view of the instances that serve an application's stores: what each hosts, restores, and takes over.

    Args:
        instances: returns their states, and starts and kills them.
        name: what they belong to, such as the application's id.
        refresh: how often to look, a duration of at least 50 ms.

    Raises:
        TypeError: `instances` does not have the methods of `Instances`.
        ValueError: `refresh` is not such a duration.

    >>> ClusterView(instances, "trades-app")  # doctest: +SKIP

    Mirrors what `KafkaStreams#metadataForAllStreamsClients` and a `StateRestoreListener` report.
    """

    PAGE = Page("cluster", "The instances", facts, {"table": table, "moves": moves}, unserved)

    def __init__(self, instances: Instances, name: str = "instances", refresh: Duration = "500 ms") -> None:
        if not isinstance(instances, Instances):
            raise TypeError(
                f"ClusterView shows instances, and this is a {type(instances).__name__}: it needs instances(), start() "
                "and kill(server)."
            )
        self._instances, self._name, self._kills = instances, name, widgets.HBox()
        self._start = _button("Start an instance", "plus", "success", lambda: self._do(instances.start))
        super().__init__(name, refresh, [self._start, self._kills])

    def take(self, previous: ClusterSnapshot | None) -> ClusterSnapshot:
        """Look at the instances."""
        return cluster_snapshot(self._name, self._instances, previous)

    def redraw(self) -> None:
        """Show the snapshot that there is, and a button to kill each instance."""
        self._offer_kills([instance.server for instance in self._snapshot.instances if instance.alive])
        super().redraw()

    def _offer_kills(self, servers: list[str]) -> None:
        offers = [f"Kill {server}" for server in servers]
        if offers != [each.description for each in self._kills.children]:
            gone = self._kills.children
            self._kills.children = [
                _button(words, "times", "danger", lambda server=server: self._do(self._instances.kill, server))  # type: ignore[misc]
                for words, server in zip(offers, servers, strict=True)
            ]
            for each in gone:
                close_whole(each)

    def _do(self, act: Callable[..., object], *arguments: str) -> None:
        def run() -> None:
            try:
                self._trouble = ""
                act(*arguments)
            except Exception as failure:
                self._trouble = f"{act.__name__}({', '.join(arguments)}) failed: {str(failure).removesuffix('.')}."
            self.refresh()

        in_background("cluster", run)


def _button(words: str, icon: str, style: str, act: Callable[[], None]) -> widgets.Button:
    return button(act, description=words, icon=icon, button_style=style)
