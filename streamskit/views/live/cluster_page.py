"""The instances of an application as HTML: which partitions each hosts, how far it has restored them, who took over."""

from datetime import UTC, datetime
from html import escape

from streamskit.queries.metadata import InstanceState, TaskState
from streamskit.views.live.chart import counted
from streamskit.views.live.cluster_snapshot import ClusterSnapshot
from streamskit.views.live.html import Column, Line, cell, grid, headline, moment, saved, text_cell

COLUMNS = (
    Column("instance", 170, left=True),
    Column("store", 200, left=True),
    Column("partition", 95),
    Column("role", 90, left=True),
    Column("restored", 240, left=True),
)


def render_cluster(snapshot: ClusterSnapshot) -> str:
    """Return a page of its own for a saved notebook."""
    return saved(header(snapshot, "saved") + table(snapshot) + moves(snapshot), "cluster")


def header(snapshot: ClusterSnapshot, state: str, trouble: str = "") -> str:
    """Return the lines that say how many instances there are, and what nobody serves."""
    alive = sum(instance.alive for instance in snapshot.instances)
    said = [f"{alive} of {counted(len(snapshot.instances), 'instance')} alive"]
    said += [f"as of {moment(int(snapshot.taken_at))} UTC"] if state == "saved" else []
    lines = headline(snapshot.name, state, said, trouble or snapshot.stopped)
    unserved = [f"{store} {partition}" for store, partition in snapshot.unserved]
    if not unserved:
        return lines
    places = ", ".join(unserved[:12]) + ("…" if len(unserved) > 12 else "")
    what = "Partitions that no instance serves in full at this moment"
    return lines + f'<div class="sk-failed">▲ {what}: {escape(places)}</div>'


def table(snapshot: ClusterSnapshot) -> str:
    """Return a table of what each instance hosts."""
    if not snapshot.instances:
        return '<div class="sk-quiet">No instance runs: start one.</div>'
    return grid(COLUMNS, [line for each in snapshot.instances for line in _lines(each)], "alive")


def moves(snapshot: ClusterSnapshot) -> str:
    """Return what changed hands, the last first."""
    if not snapshot.moves:
        return '<div class="sk-quiet">Nothing has changed hands since this view was made.</div>'
    rows = "".join(
        f"<li>{datetime.fromtimestamp(move.at, UTC):%H:%M:%S} {escape(move.sentence)}</li>"
        for move in reversed(snapshot.moves)
    )
    return f'<div class="sk-quiet">What changed hands (UTC), the last first</div><ul aria-live="polite">{rows}</ul>'


def _lines(instance: InstanceState) -> list[Line]:
    sign, meaning, look = ("●", "alive", "") if instance.alive else ("✕", "gone", "sk-bad")
    first = [text_cell(instance.server + ("" if instance.alive else " (gone)"))]
    if not instance.tasks:
        return [Line([*first, cell("hosts nothing", left=True), *[cell("")] * 3], sign, meaning, look)]
    lines = []
    for number, task in enumerate(sorted(instance.tasks, key=lambda each: (each.store, each.partition, each.role))):
        named = first if number == 0 else [cell("", left=True)]
        cells = [*named, text_cell(task.store), cell(str(task.partition)), cell(task.role, left=True), _restored(task)]
        lines.append(Line(cells, sign if number == 0 else "", meaning, look or ("sk-new" if task.is_restoring else "")))
    return lines


def _restored(task: TaskState) -> str:
    """Return a bar and its numbers in words while a store is restored, and only words when it is there."""
    if not task.is_restoring:
        return cell(f"all {counted(task.total, 'record')}", left=True)
    share = task.restored / task.total
    words = f"{share:.0%} of {task.total:,}"
    bar = f'<progress max="{task.total}" value="{task.restored}" style="width:90px" aria-label="{words}"></progress>'
    return f'<td style="text-align:left">{bar} {words}</td>'
